//! Whether the goodput of a running load is known well enough to end it early.

use narrows_stats::Estimate;

/// Number of batches in the counted time: batch means are nearly independent, single samples are not
/// (batch means, Law: *Simulation Modeling and Analysis*, chapter 9).
const BATCHES: u32 = 8;
/// Round trips before which a congestion control has shown nothing.
const ROUND_TRIPS: u64 = 40;
/// A batch that differs from the mean by this multiple of the requested precision shows a transient.
const OUTLIER: f64 = 4.0;
/// After so many times the least time, this multiple of what was wanted is enough: a congestion control that answers to loss swings for
/// ever, and causes differ by 15 % and more. Whoever wants less than this part wants the figure itself.
const LATER: f64 = 1.75;
const WIDER: f64 = 2.0;
const COARSE: f64 = 0.05;
/// A load that delivers nothing is stopped after this multiple of the minimum time.
const NOTHING: f64 = 1.5;

/// Follows the bytes that arrived. No clock: the caller says when.
#[derive(Debug, Clone)]
pub struct Steady {
    within: f64,
    from_us: u64,
    least_us: u64,
    points: Vec<(u64, u64)>,
}

impl Steady {
    /// A load whose goodput is wanted `within` this part of itself, at 95 %: counted from `from_us` on, for `least_us` at least and for
    /// some tens of round trips. Of 5 % and more, twice that part is enough where the load has lasted for clearly longer.
    pub fn new(within: f64, from_us: u64, least_us: u64, rtt_us: u64) -> Self {
        Self { within, from_us, least_us: least_us.max(rtt_us.saturating_mul(ROUND_TRIPS)), points: Vec::new() }
    }

    /// Takes how many bytes had arrived at an instant of the load.
    pub fn observe(&mut self, at_us: u64, bytes: u64) {
        let later = self.points.last().is_none_or(|(last_us, before)| at_us > *last_us && bytes >= *before);
        if at_us >= self.from_us && later {
            self.points.push((at_us, bytes));
        }
    }

    /// Whether the goodput is known as well as it was wanted.
    pub fn is_known(&self) -> bool {
        let (Some((from_us, _)), Some((to_us, _))) = (self.points.first(), self.points.last()) else { return false };
        let span_us = to_us - from_us;
        // Samples that are as far apart as the batches say nothing of them.
        if span_us < self.least_us || self.points.len() < 2 * BATCHES as usize {
            return false;
        }
        let lasted = |times: f64| span_us as f64 >= times * self.least_us as f64;
        // Nothing at all, after several retransmission timeouts.
        if self.points.last().is_some_and(|(_, bytes)| *bytes == 0) {
            return lasted(NOTHING);
        }
        let rates = self.rates(*from_us, span_us);
        let Some(estimate) = narrows_stats::mean_interval(&rates, 0.95).filter(|estimate| estimate.value > 0.0) else {
            return false;
        };
        let off = |bps: f64| (bps / estimate.value - 1.0).abs();
        let within = if self.within >= COARSE && lasted(LATER) { WIDER * self.within } else { self.within };
        off(estimate.interval[0]) <= within && rates.iter().all(|rate| off(*rate) <= OUTLIER * within)
    }

    /// The goodput of what was observed, bits a second, with its 95 % interval; `None` of too few samples.
    pub fn goodput_bps(&self) -> Option<Estimate> {
        let ((from_us, _), (to_us, _)) = (self.points.first()?, self.points.last()?);
        let enough = self.points.len() >= 2 * BATCHES as usize;
        let rates = enough.then(|| self.rates(*from_us, to_us - from_us))?;
        let it = narrows_stats::mean_interval(&rates, 0.95)?;
        Some(Estimate {
            value: it.value * 8e6,
            interval: it.interval.map(|rate| rate.max(0.0) * 8e6),
            error: it.error * 8e6,
            ..it
        })
    }

    fn rates(&self, from_us: u64, span_us: u64) -> Vec<f64> {
        (0..BATCHES).map(|n| self.rate(from_us, span_us, n)).collect()
    }

    /// Bytes a microsecond of one batch.
    fn rate(&self, from_us: u64, span_us: u64, batch: u32) -> f64 {
        let at = |n: u32| from_us as f64 + span_us as f64 * f64::from(n) / f64::from(BATCHES);
        (self.bytes_at(at(batch + 1)) - self.bytes_at(at(batch))) * f64::from(BATCHES) / span_us as f64
    }

    fn bytes_at(&self, at_us: f64) -> f64 {
        let after = self.points.partition_point(|(us, _)| (*us as f64) < at_us).clamp(1, self.points.len() - 1);
        let [(t0, b0), (t1, b1)] = [self.points[after - 1], self.points[after]];
        b0 as f64 + (b1 - b0) as f64 * (at_us - t0 as f64) / (t1 - t0) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// When a load of 8 s that carries so many bytes in each tenth of a second is known within a part, in seconds.
    fn known_at(rtt_us: u64, rate: impl Fn(u64) -> u64) -> Option<f64> {
        known_within(0.03, rtt_us, rate)
    }

    fn known_within(part: f64, rtt_us: u64, rate: impl Fn(u64) -> u64) -> Option<f64> {
        let mut steady = Steady::new(part, 2_000_000, 3_000_000, rtt_us);
        let mut bytes = 0;
        (0..=80_u64).find_map(|n| {
            steady.observe(n * 100_000, bytes);
            bytes += rate(n);
            steady.is_known().then_some(n as f64 / 10.0)
        })
    }

    #[test]
    fn a_level_rate_is_known_after_the_least_time_and_some_tens_of_round_trips() {
        assert_eq!(known_at(1_000, |_| 1_000_000), Some(5.0));
        assert_eq!(known_at(100_000, |_| 1_000_000), Some(6.0));
        assert_eq!(known_at(200_000, |_| 1_000_000), None);
    }

    #[test]
    fn the_goodput_of_what_was_observed_has_an_interval() {
        let mut steady = Steady::new(0.0, 1_000_000, 0, 0);
        assert_eq!(steady.goodput_bps(), None);
        for n in 0..=40_u64 {
            steady.observe(n * 100_000, n * 1_000_000 + if n % 2 == 0 { 0 } else { 50_000 });
        }
        let it = steady.goodput_bps().expect("three seconds");
        assert!((it.value - 80e6).abs() < 1e6 && it.interval[0] < 80e6 && it.interval[1] > 80e6, "{it:?}");
        assert!(it.interval[1] - it.interval[0] < 8e6, "{it:?}");
    }

    #[test]
    fn a_rate_that_swings_is_known_less_well_and_later() {
        // Bytes in each tenth of a second: a sawtooth of 1.3 s.
        let sawtooth = |step: u64| move |n: u64| 1_000_000 - 6 * step + step * (n % 13);
        assert!(known_within(0.05, 1_000, sawtooth(20_000)).is_some_and(|at| at < 5.5));
        assert_eq!(known_within(0.049, 1_000, sawtooth(60_000)), None);
        assert!(known_within(0.05, 1_000, sawtooth(60_000)).is_some_and(|at| at >= 7.25));
    }

    #[test]
    fn a_rate_that_changes_grows_or_swings_for_long_is_not() {
        assert_eq!(known_at(1_000, |n| if n < 40 { 1_000_000 } else { 150_000 }), None);
        assert_eq!(known_at(1_000, |n| 100_000 + 20_000 * n), None);
        assert_eq!(known_at(1_000, |n| 500_000 + 25_000 * (n % 20)), None);
        assert_eq!(known_at(1_000, |n| if n < 10 { 1_000 } else { 0 }), None);
    }

    #[test]
    fn nothing_at_all_is_known_to_be_nothing() {
        assert_eq!(known_at(1_000, |_| 0), Some(6.5));
    }

    proptest! {
        #[test]
        fn what_is_called_known_is(noise in prop::collection::vec(0.8..1.2_f64, 81)) {
            let rate = |n: u64| (1e6 * noise[n as usize]) as u64;
            if let Some(at) = known_at(1_000, rate) {
                prop_assert!(at >= 5.0);
            }
        }

        #[test]
        fn foreign_samples_never_panic(points in prop::collection::vec((0..u64::MAX, 0..u64::MAX), 0..40)) {
            let mut steady = Steady::new(0.03, 0, 0, 0);
            for (at_us, bytes) in points {
                steady.observe(at_us, bytes);
                let _ = steady.is_known();
            }
        }
    }
}
