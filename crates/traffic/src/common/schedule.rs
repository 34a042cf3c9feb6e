//! When samples are taken, and how many are kept.

use narrows_model::{Limit, TcpPlan};

/// The first instants: slow start is over before the first interval is. Milliseconds.
const EARLY_MS: [u64; 8] = [0, 2, 5, 10, 20, 40, 70, 100];

/// The instants of a trial, in microseconds since its start.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    interval_us: u64,
    extra_us: Vec<u64>,
}

impl Schedule {
    pub(crate) fn new(plan: &TcpPlan) -> Self {
        let duration_ms = match plan.limit {
            Limit::DurationMs(ms) => Some(ms),
            Limit::BytesPerStream(_) => None,
        };
        Self::of(plan.interval_ms, plan.omit_ms, duration_ms)
    }

    /// From a plan's times, whatever its engine.
    pub(crate) fn of(interval_ms: u64, omit_ms: u64, duration_ms: Option<u64>) -> Self {
        let mut extra_us: Vec<u64> = EARLY_MS.iter().map(|ms| ms * 1000).collect();
        // Where the counted part begins and ends there is a sample, whatever the interval.
        extra_us.push(omit_ms.saturating_mul(1000));
        extra_us.extend(duration_ms.map(|ms| ms.saturating_mul(1000)));
        extra_us.sort_unstable();
        extra_us.dedup();
        Self { interval_us: interval_ms.max(1) * 1000, extra_us }
    }

    /// The first instant after `after_us`, and whether an interval ends there.
    pub(crate) fn next(&self, after_us: u64) -> (u64, bool) {
        let interval = (after_us / self.interval_us + 1) * self.interval_us;
        match self.extra_us.iter().find(|&&at| at > after_us) {
            Some(&extra) if extra < interval => (extra, false),
            _ => (interval, true),
        }
    }
}

/// Keeps memory bounded: when too many samples were kept, every other one goes and from then on only every other one is kept.
#[derive(Debug)]
pub(crate) struct Keep {
    most: usize,
    step: u64,
    seen: u64,
}

impl Keep {
    /// Samples of all streams together: about 1 KB each.
    const MOST_IN_ALL: usize = 40_000;
    /// Samples of one stream.
    const MOST: usize = 20_000;

    pub(crate) fn new(streams: usize) -> Self {
        // Even, so that after thinning the kept ones stay evenly spaced.
        let most = (Self::MOST_IN_ALL / streams.max(1)).clamp(200, Self::MOST) & !1;
        Self { most, step: 1, seen: 0 }
    }

    /// Whether the next sample is to be kept; call it once an instant.
    pub(crate) fn wanted(&mut self) -> bool {
        let wanted = self.seen.is_multiple_of(self.step);
        self.seen += 1;
        wanted
    }

    /// Whether `kept` samples are too many: then call [`Keep::thin`] on each list.
    pub(crate) fn is_full(&mut self, kept: usize) -> bool {
        let full = kept >= self.most;
        if full {
            self.step *= 2;
        }
        full
    }

    /// Every how many instants one is kept.
    pub(crate) const fn step(&self) -> u64 {
        self.step
    }

    /// Drops every other one, the first stays.
    pub(crate) fn thin<T>(list: &mut Vec<T>) {
        let mut index = 0;
        list.retain(|_| {
            index += 1;
            index % 2 == 1
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instants(plan: &TcpPlan, until_ms: u64) -> Vec<u64> {
        let schedule = Schedule::new(plan);
        let mut at = 0;
        let mut all = vec![0];
        while at < until_ms * 1000 {
            at = schedule.next(at).0;
            all.push(at / 1000);
        }
        all
    }

    #[test]
    fn closer_at_first_then_every_interval() {
        let plan = TcpPlan { interval_ms: 100, limit: Limit::DurationMs(450), ..TcpPlan::default() };
        assert_eq!(instants(&plan, 500), [0, 2, 5, 10, 20, 40, 70, 100, 200, 300, 400, 450, 500]);
    }

    #[test]
    fn only_intervals_end_in_progress_and_omit_has_its_sample() {
        let plan = TcpPlan { interval_ms: 1000, omit_ms: 1500, ..TcpPlan::default() };
        let schedule = Schedule::new(&plan);
        assert_eq!(schedule.next(70_000), (100_000, false));
        assert_eq!(schedule.next(100_000), (1_000_000, true));
        assert_eq!(schedule.next(1_000_000), (1_500_000, false));
        assert_eq!(schedule.next(1_700_000), (2_000_000, true));
        // Late by more than an interval: what was missed is not made up for.
        assert_eq!(schedule.next(3_100_000), (4_000_000, true));
    }

    #[test]
    fn memory_is_bounded_and_spacing_stays_even() {
        let mut keep = Keep { most: 8, step: 1, seen: 0 };
        let mut list = Vec::new();
        for at in 0..100 {
            if keep.wanted() {
                list.push(at);
                if keep.is_full(list.len()) {
                    Keep::thin(&mut list);
                }
            }
        }
        assert!(list.len() < 8);
        assert_eq!(list, (0..100).step_by(16).collect::<Vec<_>>());
        assert_eq!(keep.step(), 16);
        assert_eq!(Keep::new(1).most, 20_000);
        assert_eq!(Keep::new(256).most, 200);
    }
}
