//! When frames are due: the same arithmetic as in the kernel's program (`bpf/generate.c`), for all modes.

use super::tally::Counts;
use narrows_model::load::frames::{FrameLoad, GeneratePlan};

/// Bits of a nanosecond in which time is kept.
pub(super) const FRACTION: u32 = 20;
/// How many frames leave between two reads of the clock where the load is `max`.
const UNPACED: u64 = 64;

/// What one worker is to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) stream: u16,
    /// Between two frames, in 2^-[`FRACTION`] ns; 0: as fast as can be.
    pub(super) interval: u64,
    /// When the first one is due, in the same unit.
    pub(super) phase: u64,
    /// The maximum of frames.
    pub(super) limit: u64,
    /// Its part of the flows: the first, and how many.
    pub(super) flows: (u64, u64),
    /// The maximum of frames back to back.
    pub(super) burst: u32,
    /// Between two frames while the worker catches up after a stall, in the unit of `interval`.
    pub(super) catch_up: u64,
    /// Frames that may be behind schedule; earlier ones are skipped.
    pub(super) max_behind: u64,
    /// How long it sends.
    pub(super) duration_ns: u64,
}

/// Divides the plan among its workers: the load in turns, the flows in pieces, so that no flow has two senders (unless there
/// are fewer flows than workers).
pub(super) fn shares(plan: &GeneratePlan, flows: u64) -> Vec<Share> {
    let workers = u64::from(plan.workers.max(1));
    (0..workers)
        .map(|worker| {
            let interval = match plan.load {
                FrameLoad::Max => 0,
                FrameLoad::FramesPerSecond(pps) => {
                    (1e9 / pps * workers as f64 * f64::from(1_u32 << FRACTION)).round().max(1.0) as u64
                }
            };
            let first = if flows < workers { 0 } else { worker * flows / workers };
            let after = if flows < workers { flows } else { (worker + 1) * flows / workers };
            let limit = plan.count.map_or(u64::MAX, |count| count / workers + u64::from(worker < count % workers));
            let stall = (u64::from(plan.catch_up_us) * 1_000) << FRACTION;
            Share {
                stream: plan.first_stream + u16::try_from(worker).unwrap_or(0),
                interval,
                phase: interval / workers * worker,
                limit,
                flows: (first, after - first),
                burst: plan.burst,
                catch_up: ((interval as f64 / GeneratePlan::CATCH_UP) as u64).max(1),
                max_behind: u64::from(plan.burst).max(stall.checked_div(interval).unwrap_or(0)),
                duration_ns: plan.duration_ms * 1_000_000,
            }
        })
        .collect()
}

impl Share {
    /// Frames that are due within the whole duration; `None` without a load.
    pub(super) fn due(&self) -> Option<u64> {
        if self.interval == 0 {
            return None;
        }
        Some(self.due_by_time(self.duration_ns).min(self.limit))
    }

    /// What was due `since_ns` after the start, at least those that left or were skipped.
    pub(super) fn due_so_far(&self, since_ns: u64, counts: Counts) -> u64 {
        let seen = counts.handed.saturating_add(counts.skipped);
        if self.interval == 0 {
            return seen;
        }
        self.due_by_time(since_ns).min(self.limit.saturating_add(counts.skipped)).max(seen)
    }

    fn due_by_time(&self, since_ns: u64) -> u64 {
        let last = (since_ns.min(self.duration_ns) << FRACTION).checked_sub(self.phase + 1);
        last.map_or(0, |last| last / self.interval + 1)
    }
}

/// Tells how many frames may leave now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    share: Share,
    next: u64,
    /// Schedule position of catch-up frames, which leave faster than the load: once it lags the clock by a burst, the
    /// whole burst may leave.
    gate: u64,
    pub(super) skipped: u64,
}

impl Pace {
    pub(super) const fn new(share: Share) -> Self {
        Self { share, next: share.phase, gate: 0, skipped: 0 }
    }

    /// How many frames may leave `since_ns` after the start; never more than the burst, nor than are `left` of the
    /// count. `None`: there will be no more. After the end,
    /// that is once all frames that were due before it and not skipped have left.
    pub(super) fn due(&mut self, since_ns: u64, left: u64) -> Option<u64> {
        let over = since_ns >= self.share.duration_ns;
        if self.share.interval == 0 {
            return (!over).then_some(UNPACED.min(left));
        }
        let time = (since_ns.min(self.share.duration_ns) << FRACTION) - u64::from(over);
        let Some(behind) = time.checked_sub(self.next) else { return (!over).then_some(0) };
        let mut due = behind / self.share.interval + 1;
        if due > self.share.max_behind {
            // Frames above the count were not due; the time has passed nevertheless.
            self.skipped += due.min(left).saturating_sub(self.share.max_behind);
            self.next += (due - self.share.max_behind) * self.share.interval;
            due = self.share.max_behind;
        }
        let burst = u64::from(self.share.burst);
        if due > burst {
            let now = since_ns << FRACTION;
            self.gate = self.gate.max(now.saturating_sub(burst * self.share.catch_up));
            due = (now.saturating_sub(self.gate) / self.share.catch_up).min(burst);
        }
        Some(due.min(left))
    }

    /// So many of them left.
    pub(super) const fn left(&mut self, frames: u64) {
        self.next += frames * self.share.interval;
        self.gate += frames * self.share.catch_up;
    }

    /// How long until the next one is due, ns.
    pub(super) const fn wait_ns(&self, since_ns: u64) -> u64 {
        (self.next >> FRACTION).saturating_sub(since_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DURATION_NS: u64 = 1_000_000_000;

    fn share(pps: f64, burst: u32, catch_up_ms: u64) -> Share {
        let interval = (1e9 / pps * f64::from(1_u32 << FRACTION)) as u64;
        Share {
            stream: 0,
            interval,
            phase: 0,
            limit: u64::MAX,
            flows: (0, 1),
            burst,
            catch_up: interval * 4 / 5,
            max_behind: u64::from(burst).max(((catch_up_ms * 1_000_000) << FRACTION) / interval),
            duration_ns: DURATION_NS,
        }
    }

    #[test]
    fn a_second_has_as_many_frames_as_asked() {
        assert_eq!(share(1e6, 64, 0).due(), Some(1_000_000));
        assert_eq!(Share { limit: 10, ..share(1e6, 64, 0) }.due(), Some(10));
        assert_eq!(Share { interval: 0, ..share(1e6, 64, 0) }.due(), None);
    }

    #[test]
    fn after_a_stall_the_rate_is_a_quarter_above_the_load() {
        // A million a second; no poll for 10 ms, then each microsecond.
        let mut pace = Pace::new(share(1e6, 64, 20));
        assert_eq!(pace.due(0, u64::MAX), Some(1));
        pace.left(1);
        let mut sent = Vec::new();
        for now in (10_000_000..).step_by(1_000) {
            let due = pace.due(now, u64::MAX).expect("not over");
            pace.left(due);
            sent.push(due);
            if pace.wait_ns(now) > 0 {
                break;
            }
        }
        assert_eq!((sent[0], pace.skipped), (64, 0), "the burst at once");
        // Each microsecond 1.25 frames leave and one falls due: some 9,900 frames are caught up within 40 ms.
        assert!(
            sent[1..].iter().all(|due| *due <= 64) && sent[1..100].iter().sum::<u64>() <= 125,
            "{:?}",
            &sent[..100]
        );
        assert!((39_000..41_000).contains(&sent.len()), "{}", sent.len());
    }

    /// What is sent and skipped when it is polled after these steps, and then often until nothing more is due.
    fn run(share: Share, steps: &[u64]) -> (u64, u64) {
        let (mut pace, mut now, mut sent) = (Pace::new(share), 0_u64, 0_u64);
        let mut steps = steps.iter().copied().chain(std::iter::repeat(50_000));
        while let Some(due) = pace.due(now, u64::MAX) {
            assert!(due <= u64::from(share.burst), "{due} at once");
            pace.left(due);
            sent += due;
            now += steps.next().unwrap_or(1);
        }
        (sent, pace.skipped)
    }

    #[test]
    fn a_stall_skips_no_more_than_the_count() {
        let share = Share { limit: 10, ..share(1e6, 4, 0) };
        let mut pace = Pace::new(share);
        // 1,000 frames would have been due by the time, but there are only ten.
        assert_eq!((pace.due(1_000_000, 10), pace.skipped), (Some(4), 6));
        pace.left(4);
        assert_eq!((pace.due(1_000_000, 6), pace.skipped), (Some(0), 6), "the stall is not made up for");
        assert_eq!(pace.due(1_001_000, 6), Some(1), "and the rest comes at its pace");
        let counts = Counts { handed: 4, skipped: 6, ..Counts::default() };
        assert_eq!(share.due_so_far(1_000_000, counts), 16);
        assert_eq!(share.due_so_far(0, Counts::default()), 0);
        assert_eq!(share.due_so_far(5_000, Counts::default()), 5);
        assert_eq!(Share { interval: 0, ..share }.due_so_far(5_000, counts), 10, "as fast as can be: what was tried");
    }

    proptest! {
        #[test]
        fn nothing_is_forgotten_and_no_burst_too_long(
            pps in 10.0..2e7_f64, burst in 1..300_u32, steps in prop::collection::vec(0..2_000_000_u64, 1..200)
        ) {
            let share = share(pps, burst, 0);
            let (mut pace, mut now, mut sent) = (Pace::new(share), 0_u64, 0_u64);
            for step in steps {
                now += step;
                let Some(due) = pace.due(now, u64::MAX) else { break };
                prop_assert!(due <= u64::from(burst));
                pace.left(due);
                sent += due;
                let expected = if now < share.duration_ns { (now << FRACTION) / share.interval + 1 } else { u64::MAX };
                prop_assert_eq!(sent + pace.skipped, expected.min(share.due().unwrap_or(0)));
                prop_assert!(now >= share.duration_ns || pace.wait_ns(now) as f64 <= 1e9 / pps + 1.0);
            }
        }

        #[test]
        fn all_is_sent_where_no_stall_is_too_long(
            pps in 1e5..1e6_f64, burst in 64..300_u32, steps in prop::collection::vec(0..2_000_000_u64, 1..200)
        ) {
            // Stalls follow each other, so that in all they may be as long as they like: all of them are caught up.
            let share = share(pps, burst, 1_000);
            let (sent, skipped) = run(share, &steps);
            prop_assert_eq!((sent, skipped), (share.due().unwrap_or(0), 0));
        }

        #[test]
        fn every_frame_is_sent_or_skipped(
            pps in 1e4..1e6_f64, burst in 64..300_u32, catch_up_ms in 0..20_u64,
            steps in prop::collection::vec(0..60_000_000_u64, 1..40)
        ) {
            let share = share(pps, burst, catch_up_ms);
            let (sent, skipped) = run(share, &steps);
            prop_assert_eq!(sent + skipped, share.due().unwrap_or(0));
        }
    }
}
