//! When samples are taken.

/// The first instants: slow start is over before the first interval is. Milliseconds.
const EARLY_MS: [u64; 8] = [0, 2, 5, 10, 20, 40, 70, 100];

/// The instants of a trial, in microseconds since its start.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    interval_us: u64,
    extra_us: Vec<u64>,
}

impl Schedule {
    /// `duration_ms`: `None` where bytes end the trial.
    pub(crate) fn new(interval_ms: u64, omit_ms: u64, duration_ms: Option<u64>) -> Self {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn instants(schedule: &Schedule, until_ms: u64) -> Vec<u64> {
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
        assert_eq!(
            instants(&Schedule::new(100, 0, Some(450)), 500),
            [0, 2, 5, 10, 20, 40, 70, 100, 200, 300, 400, 450, 500]
        );
    }

    #[test]
    fn only_intervals_end_in_progress_and_omit_has_its_sample() {
        let schedule = Schedule::new(1000, 1500, Some(10_000));
        assert_eq!(schedule.next(70_000), (100_000, false));
        assert_eq!(schedule.next(100_000), (1_000_000, true));
        assert_eq!(schedule.next(1_000_000), (1_500_000, false));
        assert_eq!(schedule.next(1_700_000), (2_000_000, true));
        // Late by more than an interval: missed intervals are skipped.
        assert_eq!(schedule.next(3_100_000), (4_000_000, true));
    }
}
