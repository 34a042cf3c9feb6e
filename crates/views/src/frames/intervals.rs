//! The difference between two samples of the counters of a generator or a receiver.

use narrows_model::load::frames::{FrameInterval, OVERHEAD_BYTES};
use narrows_model::load::frames_report::{FrameRate, ReceivedInterval, SentInterval, UnsentFrames};
use narrows_model::words::figures::float;

/// Applies `of` to each sample and the one before it; the counters start at 0.
pub(super) fn each<T>(samples: &[FrameInterval], of: impl Fn(FrameInterval, FrameInterval) -> T) -> Vec<T> {
    let start = [FrameInterval::default()];
    start.iter().chain(samples).zip(samples).map(|(from, to)| of(*from, *to)).collect()
}

fn seconds(us: u64) -> f64 {
    float(us) / 1e6
}

fn pps(frames: u64, from: FrameInterval, to: FrameInterval) -> f64 {
    let us = to.at_us.saturating_sub(from.at_us);
    if us == 0 { 0.0 } else { float(frames) * 1e6 / float(us) }
}

/// A difference with its sign: a counter may shrink.
fn change(from: u64, to: u64) -> i64 {
    let size = i64::try_from(from.abs_diff(to)).unwrap_or(i64::MAX);
    if to < from { -size } else { size }
}

/// An interval of a generator. `frame_bytes`: the mean frame size with FCS, where the samples do not have it.
pub(super) fn sent(from: FrameInterval, to: FrameInterval, frame_bytes: f64, link_bps: Option<u64>) -> SentInterval {
    let handed = to.frames.saturating_sub(from.frames);
    // A missing first value is 0.
    let both = to.sent.map(|now| (from.sent.unwrap_or_default(), now));
    let refused = |now: Option<u64>, before: Option<u64>| now.map(|n| n.saturating_sub(before.unwrap_or(0)));
    let refused = both.and_then(|(before, now)| refused(now.refused, before.refused));
    let frames = handed.saturating_sub(refused.unwrap_or(0));
    let wire_bytes = both.map(|(before, now)| now.wire_bytes.saturating_sub(before.wire_bytes));
    let mean = match wire_bytes {
        Some(bytes) if handed > 0 => float(bytes) / float(handed) - f64::from(OVERHEAD_BYTES),
        _ => frame_bytes,
    };
    let unsent = both.map(|(before, now)| {
        let behind = |frames: u64, due: u64, skipped: u64| due.saturating_sub(frames.saturating_add(skipped));
        let skipped = now.skipped.saturating_sub(before.skipped);
        let behind = change(behind(from.frames, before.due, before.skipped), behind(to.frames, now.due, now.skipped));
        let gone = i64::try_from(skipped.saturating_add(refused.unwrap_or(0))).unwrap_or(i64::MAX);
        UnsentFrames { frames: behind.saturating_add(gone), behind, skipped, refused }
    });
    SentInterval {
        from_s: seconds(from.at_us),
        to_s: seconds(to.at_us),
        frames,
        wire_bytes,
        rate: FrameRate::new(pps(frames, from, to), mean, link_bps),
        unsent,
    }
}

/// An interval of a receiver; `frame_bytes` as for a generator.
pub(super) fn received(
    from: FrameInterval,
    to: FrameInterval,
    frame_bytes: f64,
    link_bps: Option<u64>,
) -> ReceivedInterval {
    let frames = to.frames.saturating_sub(from.frames);
    let both = to.got.map(|now| (from.got.unwrap_or_default(), now));
    let bytes = both.map(|(before, now)| now.bytes.saturating_sub(before.bytes));
    let mean = match bytes {
        Some(bytes) if frames > 0 => float(bytes) / float(frames),
        _ => frame_bytes,
    };
    ReceivedInterval {
        from_s: seconds(from.at_us),
        to_s: seconds(to.at_us),
        frames,
        bytes,
        rate: FrameRate::new(pps(frames, from, to), mean, link_bps),
        lost: to.lost().map(|now| change(from.lost().unwrap_or(0), now)),
        reordered: both.map(|(before, now)| now.reordered.saturating_sub(before.reordered)),
        duplicates: both.map(|(before, now)| now.duplicates.saturating_sub(before.duplicates)),
        foreign: both.map(|(before, now)| now.foreign.saturating_sub(before.foreign)),
        missed: both.and_then(|(before, now)| Some(now.missed?.saturating_sub(before.missed.unwrap_or(0)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::load::frames::{GotSoFar, SentSoFar};
    use proptest::prelude::*;

    fn sample(s: u64, frames: u64) -> FrameInterval {
        FrameInterval { at_us: s * 1_000_000, frames, ..FrameInterval::default() }
    }

    #[test]
    fn intervals_are_differences() {
        let of = each(&[sample(1, 100), sample(3, 400), sample(3, 400)], |from, to| sent(from, to, 64.0, None));
        let found: Vec<_> = of.iter().map(|it| (it.frames, it.rate.pps)).collect();
        assert_eq!(found, [(100, 100.0), (300, 150.0), (0, 0.0)], "an interval without time has no rate");
        assert!((of[1].rate.wire_bps - 150.0 * 672.0).abs() < 1e-9);
        assert_eq!((of[0].unsent, of[0].wire_bytes), (None, None), "what old records do not have is not zero");
    }

    #[test]
    fn what_did_not_leave_has_its_reasons_and_may_catch_up() {
        let at = |s, frames, due, skipped, refused| FrameInterval {
            sent: Some(SentSoFar { due, skipped, refused: Some(refused), wire_bytes: frames * 84 }),
            ..sample(s, frames)
        };
        let samples = [at(1, 900, 1000, 0, 0), at(2, 1950, 2000, 30, 10), at(3, 2970, 3000, 30, 10)];
        let of = each(&samples, |from, to| sent(from, to, 1518.0, None));
        let unsent: Vec<_> = of.iter().filter_map(|it| it.unsent).collect();
        let expected = [(100, 100, 0, 0), (-40, -80, 30, 10), (-20, -20, 0, 0)];
        let found: Vec<_> =
            unsent.iter().map(|it| (it.frames, it.behind, it.skipped, it.refused.unwrap_or(9))).collect();
        assert_eq!(found, expected);
        assert_eq!(of[1].frames, 1040, "of 1,050 handed over the device refused ten");
        assert!((of[1].rate.wire_bps - 1040.0 * 672.0).abs() < 1e-6, "by its bytes: {:?}", of[1].rate);
        let total: i64 = unsent.iter().map(|it| it.frames).sum();
        assert_eq!(Some(total), samples[2].unsent().and_then(|n| i64::try_from(n).ok()));
    }

    #[test]
    fn late_frames_take_losses_back() {
        let at = |s, frames, numbers, reordered| FrameInterval {
            got: Some(GotSoFar { numbers, reordered, bytes: frames * 100, ..GotSoFar::default() }),
            ..sample(s, frames)
        };
        let of = each(&[at(1, 90, 100, 0), at(2, 197, 200, 7)], |from, to| received(from, to, 0.0, None));
        let found: Vec<_> = of.iter().map(|it| (it.lost, it.reordered, it.bytes)).collect();
        assert_eq!(found, [(Some(10), Some(0), Some(9_000)), (Some(-7), Some(7), Some(10_700))]);
        assert!((of[0].rate.wire_bps - 90.0 * 960.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn any_samples_are_accepted(samples in prop::collection::vec(any::<[u64; 6]>(), 0..12)) {
            let samples: Vec<_> = samples
                .into_iter()
                .map(|[at_us, frames, a, b, c, d]| FrameInterval {
                    at_us,
                    frames,
                    sent: Some(SentSoFar { due: a, skipped: b, refused: Some(c), wire_bytes: d }),
                    got: Some(GotSoFar { numbers: a, duplicates: b, reordered: c, foreign: d, missed: Some(d), bytes: a }),
                })
                .collect();
            for it in each(&samples, |from, to| sent(from, to, 64.0, Some(1))) {
                prop_assert!(it.rate.pps >= 0.0 && it.unsent.is_some());
            }
            for it in each(&samples, |from, to| received(from, to, 64.0, Some(1))) {
                prop_assert!(it.rate.pps >= 0.0 && it.lost.is_some());
            }
        }
    }
}
