//! The open-loop schedule: when each request of a stream is due, whatever became of the ones before.

use std::time::{Duration, Instant};

/// The due times of one stream. The rate is that of all streams together: they take turns, so that the requests of all of them
/// are evenly spaced. Due times are absolute: lateness does not add up, and what is late stays due.
#[derive(Debug, Clone)]
pub(crate) struct Pace {
    start: Instant,
    /// Between two requests of all streams, nanoseconds.
    gap_ns: f64,
    streams: u64,
    position: u64,
    taken: u64,
}

impl Pace {
    /// Of the stream at `position` of `streams`; `rate_per_s` over all of them.
    pub(crate) fn new(rate_per_s: f64, streams: usize, position: usize, start: Instant) -> Self {
        Self { start, gap_ns: 1e9 / rate_per_s, streams: streams.max(1) as u64, position: position as u64, taken: 0 }
    }

    fn nth(&self, n: u64) -> Instant {
        let number = n.saturating_mul(self.streams).saturating_add(self.position);
        let since = Duration::from_nanos((number as f64 * self.gap_ns) as u64);
        // An instant that the clock cannot represent is after every trial.
        self.start.checked_add(since).unwrap_or_else(|| self.start + Duration::from_secs(366 * 24 * 3600))
    }

    /// When the next one is due.
    pub(crate) fn due(&self) -> Instant {
        self.nth(self.taken)
    }

    /// The next one is made; when it was due.
    pub(crate) fn take(&mut self) -> Instant {
        let due = self.due();
        self.taken += 1;
        due
    }

    /// How many were due before an instant and were not made.
    pub(crate) fn missed(&self, before: Instant) -> u64 {
        let passed = before.saturating_duration_since(self.start);
        let due_of_all = (passed.as_nanos() as f64 / self.gap_ns).ceil() as u64;
        due_of_all.saturating_sub(self.position).div_ceil(self.streams).saturating_sub(self.taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_sys::clock;

    #[test]
    fn streams_take_turns_and_nothing_drifts() {
        let start = clock::now();
        let mut paces: Vec<_> = (0..4).map(|position| Pace::new(1000.0, 4, position, start)).collect();
        for round in 0..1000_u64 {
            for (position, pace) in (0_u64..).zip(&mut paces) {
                let due = pace.take().duration_since(start);
                assert_eq!(due.as_nanos().div_ceil(1000), u128::from(round * 4 + position) * 1000);
            }
        }
    }

    #[test]
    fn what_was_not_made_is_counted() {
        let start = clock::now();
        let mut pace = Pace::new(100.0, 1, 0, start);
        let end = start + Duration::from_secs(1);
        assert_eq!(pace.missed(end), 100);
        for _ in 0..98 {
            pace.take();
        }
        assert_eq!(pace.missed(end), 2);
        assert_eq!(pace.missed(start), 0);
        // Of three streams at 100 in all, the last one's turn comes 33 times in a second.
        assert_eq!([0, 1, 2].map(|at| Pace::new(100.0, 3, at, start).missed(end)), [34, 33, 33]);
    }

    #[test]
    fn the_slowest_rate_does_not_overflow() {
        let mut pace = Pace::new(0.01, 128, 127, clock::now());
        pace.taken = u64::MAX - 1;
        assert!(pace.take() > clock::now());
    }
}
