//! When frames are due: the same arithmetic as in the kernel's program (`bpf/generate.c`), for all modes.

use super::tally::Counts;
use narrows_model::frames::{FrameLoad, GeneratePlan};

/// Bits of a nanosecond in which time is kept.
pub(super) const FRACTION: u32 = 20;
/// How many frames leave between two looks at the clock where there is no load to keep.
const UNPACED: u64 = 64;

/// What one worker is to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    /// Its stream.
    pub(super) stream: u16,
    /// Between two frames, in 2^-[`FRACTION`] ns; 0: as fast as can be.
    pub(super) interval: u64,
    /// When the first one is due, likewise.
    pub(super) phase: u64,
    /// The most frames.
    pub(super) limit: u64,
    /// Its part of the flows: the first, and how many.
    pub(super) flows: (u64, u64),
    /// The most frames back to back.
    pub(super) burst: u32,
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
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                FrameLoad::FramesPerSecond(pps) => {
                    (1e9 / pps * workers as f64 * f64::from(1_u32 << FRACTION)).round().max(1.0) as u64
                }
            };
            let first = if flows < workers { 0 } else { worker * flows / workers };
            let after = if flows < workers { flows } else { (worker + 1) * flows / workers };
            let limit = plan.count.map_or(u64::MAX, |count| count / workers + u64::from(worker < count % workers));
            Share {
                stream: plan.first_stream + u16::try_from(worker).unwrap_or(0),
                interval,
                phase: interval / workers * worker,
                limit,
                flows: (first, after - first),
                burst: plan.burst,
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

    /// What was due `since_ns` after the start, of which so many left or were given up: at least these.
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
    /// Frames given up.
    pub(super) skipped: u64,
}

impl Pace {
    pub(super) const fn new(share: Share) -> Self {
        Self { share, next: share.phase, skipped: 0 }
    }

    /// How many frames are due `since_ns` after the start; never more than the burst, nor than are `left` of the count. After
    /// the end it is still told what fell due before it and neither left nor was given up; nothing at last.
    pub(super) fn due(&mut self, since_ns: u64, left: u64) -> u64 {
        let over = since_ns >= self.share.duration_ns;
        if self.share.interval == 0 {
            return if over { 0 } else { UNPACED.min(left) };
        }
        let time = (since_ns.min(self.share.duration_ns) << FRACTION) - u64::from(over);
        let Some(behind) = time.checked_sub(self.next) else { return 0 };
        let mut due = behind / self.share.interval + 1;
        let burst = u64::from(self.share.burst);
        if due > burst {
            // What the count does not ask for was not due; the time has passed all the same.
            self.skipped += due.min(left).saturating_sub(burst);
            self.next += (due - burst) * self.share.interval;
            due = burst;
        }
        due.min(left)
    }

    /// So many of them left.
    pub(super) const fn left(&mut self, frames: u64) {
        self.next += frames * self.share.interval;
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

    fn share(pps: f64, burst: u32) -> Share {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let interval = (1e9 / pps * f64::from(1_u32 << FRACTION)) as u64;
        Share { stream: 0, interval, phase: 0, limit: u64::MAX, flows: (0, 1), burst, duration_ns: 1_000_000_000 }
    }

    #[test]
    fn a_second_has_as_many_frames_as_asked() {
        assert_eq!(share(1e6, 64).due(), Some(1_000_000));
        assert_eq!(Share { limit: 10, ..share(1e6, 64) }.due(), Some(10));
        assert_eq!(Share { interval: 0, ..share(1e6, 64) }.due(), None);
    }

    #[test]
    fn a_stall_gives_up_no_more_than_the_count_asks_for() {
        let share = Share { limit: 10, ..share(1e6, 4) };
        let mut pace = Pace::new(share);
        // 1,000 frames would have been due by the time, but there are only ten.
        assert_eq!((pace.due(1_000_000, 10), pace.skipped), (4, 6));
        pace.left(4);
        assert_eq!((pace.due(1_000_000, 6), pace.skipped), (0, 6), "the stall is not made up for");
        assert_eq!(pace.due(1_001_000, 6), 1, "and the rest comes at its pace");
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
            let share = share(pps, burst);
            let (mut pace, mut now, mut sent) = (Pace::new(share), 0_u64, 0_u64);
            for step in steps {
                now += step;
                let due = pace.due(now, u64::MAX);
                prop_assert!(due <= u64::from(burst));
                pace.left(due);
                sent += due;
                let expected = if now < share.duration_ns { (now << FRACTION) / share.interval + 1 } else { u64::MAX };
                prop_assert_eq!(sent + pace.skipped, expected.min(share.due().unwrap_or(0)));
                prop_assert!(now >= share.duration_ns || pace.wait_ns(now) as f64 <= 1e9 / pps + 1.0);
            }
        }
    }
}
