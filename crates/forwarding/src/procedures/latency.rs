//! Latency at the throughput (RFC 2544, section 26.2; RFC 8219, sections 7.1 to 7.3).
//!
//! RFC 2544 reports the average over at least 20 trials; RFC 8219 of at least 500 stamped frames a trial the median
//! (*typical*), the 99.9th percentile (*worst case*) and PDV = p99.9 − minimum, and the median of each over the trials.
//! Both are here.

use super::procedure::{Known, Repeated, SetUp, loads};
use super::schedule::{Scheduled, fixed};
use crate::data::plan::Row;
use crate::data::{ForwardingPlan, Test};
use narrows_model::load::udp::record::Distribution;
use narrows_stats::{mean, median};

/// Time stamps that a trial should have (RFC 8219, section 7.1).
pub const MIN_STAMPS: u64 = 500;
/// Time stamps below which a 99.9th percentile is the largest value and nothing else.
const STAMPS_FOR_TAIL: u64 = 1_000;

/// Why a tester of two hosts measures no latency.
pub const TWO_CLOCKS: &str = "generator and receiver are on two hosts, with two clocks";

pub(super) fn set_up(plan: &ForwardingPlan, row: Row, known: &Known) -> Option<SetUp> {
    let test = plan.tests.latency.as_ref()?;
    if !plan.one_clock() {
        return Some(Err(TWO_CLOCKS.to_owned()));
    }
    let loads = loads(plan, row, known);
    Some(loads.map(|(pps, _)| Repeated::set_up(Test::Latency, pps, test.duration_ms, test.repetitions)))
}

pub(super) fn schedule(plan: &ForwardingPlan, row: Row) -> Vec<Scheduled> {
    let test = plan.tests.latency.as_ref().filter(|_| plan.one_clock());
    test.map(|test| fixed(plan, Test::Latency, row, test.repetitions, test.duration_ms)).into_iter().collect()
}

/// Time stamps a second: enough for any percentile, and far from being a load of their own.
const STAMPS_A_SECOND: f64 = 5_000.0;

/// One of so many frames carries a time stamp: some thousands a second, and in a trial at least ten times [`MIN_STAMPS`] where it
/// has so many frames.
pub fn stamp_every(load_pps: f64, duration_ms: u64) -> u32 {
    let by_rate = (load_pps / STAMPS_A_SECOND).ceil();
    let by_trial = (load_pps * duration_ms as f64 / 1e3 / (10 * MIN_STAMPS) as f64).floor();
    // Not above a million, which is far enough apart for any rate. A NaN is the least.
    let every = by_rate.min(by_trial).clamp(1.0, 1e6) as u32;
    every.max(1)
}

/// Latency over all trials of one row.
#[derive(Debug, Clone, PartialEq)]
pub struct Latency {
    /// Trials that had time stamps.
    pub repetitions: u32,
    /// Time stamps over all of them.
    pub stamps: u64,
    pub min_ns: u64,
    pub max_ns: u64,
    /// Mean of the trials' means: the latency of RFC 2544.
    pub mean_ns: f64,
    /// Median of the trials' medians: the typical latency of RFC 8219.
    pub typical_ns: f64,
    /// Median of their 99th percentiles.
    pub p99_ns: f64,
    /// Median of their 99.9th percentiles: the worst-case latency of RFC 8219.
    pub worst_case_ns: f64,
    /// Median of their p99.9 − minimum: the PDV of RFC 8219.
    pub pdv_ns: f64,
    /// Caveats: too few trials or timestamps.
    pub remarks: Vec<String>,
}

/// Sums up the trials; those without time stamps are left out. `None` where none is left.
pub fn latency(trials: &[Distribution]) -> Option<Latency> {
    let stamped: Vec<&Distribution> = trials.iter().filter(|trial| trial.count > 0 && trial.mean.is_finite()).collect();
    let means: Vec<f64> = stamped.iter().map(|trial| trial.mean).collect();
    let middle =
        |value: fn(&Distribution) -> u64| median(&stamped.iter().map(|trial| value(trial) as f64).collect::<Vec<_>>());
    let mut remarks = Vec::new();
    let least = stamped.iter().map(|trial| trial.count).min()?;
    if least < MIN_STAMPS {
        remarks.push(format!("a trial has {least} timestamps; RFC 8219 requires {MIN_STAMPS}"));
    }
    if least < STAMPS_FOR_TAIL {
        remarks.push(format!("with {least} timestamps the 99.9th percentile is the maximum"));
    }
    if stamped.len() < trials.len() {
        remarks.push(format!("{} of {} trials had no time stamps", trials.len() - stamped.len(), trials.len()));
    }
    Some(Latency {
        repetitions: u32::try_from(stamped.len()).unwrap_or(u32::MAX),
        stamps: stamped.iter().fold(0, |sum, trial| sum.saturating_add(trial.count)),
        min_ns: stamped.iter().map(|trial| trial.min).min()?,
        max_ns: stamped.iter().map(|trial| trial.max).max()?,
        mean_ns: mean(&means)?,
        typical_ns: middle(|trial| trial.p50)?,
        p99_ns: middle(|trial| trial.p99)?,
        worst_case_ns: middle(|trial| trial.p99_9)?,
        pdv_ns: middle(|trial| trial.p99_9.saturating_sub(trial.min))?,
        remarks,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::LatencyTest;
    use crate::procedures::device::row;
    use crate::testing::plan;
    use proptest::prelude::*;

    fn trial(min: u64, mean: f64, p50: u64, p99_9: u64) -> Distribution {
        let (p99, max) = (p99_9 - 1, p99_9 + 10);
        Distribution { count: 5_000, min, mean, p50, p90: p50, p99, p99_9, p99_99: max, max, buckets: Vec::new() }
    }

    #[test]
    fn averages_of_rfc_2544_and_medians_of_rfc_8219() {
        let trials = [trial(100, 210.0, 200, 900), trial(110, 220.0, 205, 1_000), trial(120, 260.0, 230, 5_000)];
        let all = latency(&trials).expect("trials");
        assert_eq!((all.repetitions, all.stamps, all.min_ns, all.max_ns), (3, 15_000, 100, 5_010));
        assert!((all.mean_ns - 230.0).abs() < 1e-9, "(210 + 220 + 260) ÷ 3");
        assert_eq!((all.typical_ns, all.worst_case_ns), (205.0, 1_000.0));
        assert_eq!(all.pdv_ns, 890.0, "1,000 − 110");
        assert_eq!(all.remarks, [""; 0]);
    }

    #[test]
    fn what_is_missing_is_said() {
        assert_eq!(latency(&[]), None);
        let none = Distribution { count: 0, ..trial(1, 1.0, 1, 2) };
        assert_eq!(latency(std::slice::from_ref(&none)), None);
        let few = Distribution { count: 40, ..trial(100, 200.0, 190, 300) };
        let all = latency(&[few, none]).expect("one trial");
        assert_eq!(all.remarks.len(), 3, "{:?}", all.remarks);
    }

    #[test]
    fn enough_frames_carry_a_time_stamp() {
        assert_eq!(stamp_every(1e6, 10_000), 200, "5,000 a second");
        assert_eq!(stamp_every(1e6, 100), 20, "100,000 frames ÷ 5,000");
        assert_eq!((stamp_every(100.0, 10_000), stamp_every(f64::NAN, 0)), (1, 1));
        let mut plan = plan();
        plan.tests.latency = Some(LatencyTest { duration_ms: 10_000, repetitions: 5 });
        let why = |plan: &ForwardingPlan, pps| {
            let known = Known { throughput_pps: Some(pps), ..Known::default() };
            set_up(plan, row(64), &known).and_then(Result::err)
        };
        assert_eq!(why(&plan, 1e6), None);
        assert!(why(&plan, 0.0).is_some());
        plan.receiver.host = Some("rcv.example.org".to_owned());
        assert_eq!(why(&plan, 1e6).as_deref(), Some(TWO_CLOCKS));
    }

    proptest! {
        #[test]
        fn figures_lie_between_those_of_the_trials(means in prop::collection::vec(1.0..1e9_f64, 1..30)) {
            let trials: Vec<_> = means.iter().map(|mean| trial(1, *mean, *mean as u64 + 1, *mean as u64 + 2)).collect();
            let all = latency(&trials).expect("trials");
            let (low, high) = (means.iter().copied().fold(f64::MAX, f64::min), means.iter().copied().fold(0.0, f64::max));
            prop_assert!(low * (1.0 - 1e-9) <= all.mean_ns && all.mean_ns <= high * (1.0 + 1e-9));
            prop_assert!(all.pdv_ns <= all.worst_case_ns);
        }
    }
}
