//! Frames to the hardware broadcast address among the others (RFC 2544, section 11.1): the last of each so many of a worker.

use narrows_model::frames::{BROADCAST_STREAM, StreamSent};

/// Where all stations listen.
pub(super) const TO_ALL: [u8; 6] = [0xff; 6];

/// Whether the frame of that number goes to all; 0: none does.
pub(super) const fn is_to_all(sequence: u64, every: u32) -> bool {
    every > 0 && (sequence + 1).is_multiple_of(every as u64)
}

/// The streams of the workers without the frames to all, and those as a stream of their own.
pub(super) fn set_apart(mut streams: Vec<StreamSent>, every: u32) -> Vec<StreamSent> {
    if every == 0 {
        return streams;
    }
    let mut to_all = StreamSent { stream: BROADCAST_STREAM, ..StreamSent::default() };
    for stream in &mut streams {
        // What was due and not handed over would have had its part of them.
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
        let numbers: Vec<u64> = (0..300).filter(|sequence| is_to_all(*sequence, 100)).collect();
        assert_eq!(numbers, [99, 199, 299]);
        assert!((0..300).all(|sequence| !is_to_all(sequence, 0)));
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
            let apart = set_apart(all.clone(), every);
            let sum = |streams: &[StreamSent], of: fn(&StreamSent) -> u64| streams.iter().map(of).sum::<u64>();
            prop_assert_eq!(sum(&all, |it| it.due), sum(&apart, |it| it.due));
            prop_assert_eq!(sum(&all, |it| it.handed), sum(&apart, |it| it.handed));
            prop_assert!(apart.iter().all(|it| it.handed <= it.due));
            let sent = all.iter().flat_map(|it| (0..it.handed.min(2_000)).filter(|at| is_to_all(*at, every))).count();
            if all.iter().all(|it| it.handed <= 2_000) {
                prop_assert_eq!(apart.last().map(|it| it.handed), Some(sent as u64));
            }
            prop_assert_eq!(set_apart(all.clone(), 0), all);
        }
    }
}
