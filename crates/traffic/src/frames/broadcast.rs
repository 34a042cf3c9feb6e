//! Frames to the hardware broadcast address among the others (RFC 2544, section 11.1): one in every N of a worker.

use narrows_model::load::frames::{BROADCAST_STREAM, StreamSent};

/// The hardware broadcast address.
pub(super) const BROADCAST: [u8; 6] = [0xff; 6];

/// The sequence number (from 0) of a worker's `nth` frame in its stream, and whether that is the broadcast stream. `every` 0: none
/// are. Both streams are numbered without gaps, so that a gap at the receiver is a frame that is missing.
pub(super) const fn numbered(nth: u64, every: u32) -> (u64, bool) {
    if every == 0 {
        return (nth, false);
    }
    let before = nth / every as u64;
    let to_all = (nth + 1).is_multiple_of(every as u64);
    (if to_all { before } else { nth - before }, to_all)
}

/// The workers' streams without broadcast frames, followed by the broadcast frames as separate streams.
pub(super) fn split(mut streams: Vec<StreamSent>, every: u32) -> Vec<StreamSent> {
    if every == 0 {
        return streams;
    }
    let mut to_all = StreamSent { stream: BROADCAST_STREAM, ..StreamSent::default() };
    for stream in &mut streams {
        // Frames that were due but not sent would have included the same share of broadcast frames.
        let (due, handed) = (stream.due / u64::from(every), stream.handed / u64::from(every));
        stream.due -= due;
        stream.handed -= handed;
        to_all.due += due;
        to_all.handed += handed;
    }
    streams.push(to_all);
    streams
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_hundredth_is_to_all() {
        let to_all: Vec<u64> = (0..300).filter(|nth| numbered(*nth, 100).1).collect();
        assert_eq!(to_all, [99, 199, 299]);
        assert!((0..300).all(|nth| numbered(nth, 0) == (nth, false)));
        for every in [2, 3, 100] {
            let of = |kind| (0..300).map(|nth| numbered(nth, every)).filter(move |it| it.1 == kind).map(|it| it.0);
            for kind in [false, true] {
                assert!(of(kind).eq(0..of(kind).count() as u64), "{every} {kind}: no gap");
            }
        }
    }

    proptest! {
        #[test]
        fn no_frame_is_lost_or_made_by_counting_them_apart(
            counts in prop::collection::vec((0..10_000_000_u64, 0..1_000_u64), 1..9), every in 2..1_000_u32
        ) {
            let stream = |(stream, (handed, unsent)): (u16, &(u64, u64))| {
                StreamSent { stream, due: handed + unsent, handed: *handed }
            };
            let all: Vec<StreamSent> = (0..).zip(&counts).map(stream).collect();
            let apart = split(all.clone(), every);
            let sum = |streams: &[StreamSent], of: fn(&StreamSent) -> u64| streams.iter().map(of).sum::<u64>();
            prop_assert_eq!(sum(&all, |it| it.due), sum(&apart, |it| it.due));
            prop_assert_eq!(sum(&all, |it| it.handed), sum(&apart, |it| it.handed));
            prop_assert!(apart.iter().all(|it| it.handed <= it.due));
            let sent = all.iter().flat_map(|it| (0..it.handed.min(2_000)).filter(|at| numbered(*at, every).1)).count();
            if all.iter().all(|it| it.handed <= 2_000) {
                prop_assert_eq!(apart.last().map(|it| it.handed), Some(sent as u64));
            }
            prop_assert_eq!(split(all.clone(), 0), all);
        }
    }
}
