//! System recovery (RFC 2544, section 26.5): 110 % of the throughput, or the most that is offered where that is less, for at
//! least a minute; then half of that load at once. The time from the cut to the last frame lost is the recovery.
//!
//! Where time stamps tell when the last frame was lost, they are used. Otherwise the frames lost after the cut, over the rate
//! at which they were offered, say how long it lasted if all of them were lost in a row: the least that it can have been.

use super::{BELOW_MOST, known, nanos};
use crate::search::SearchError;
use narrows_model::forwarding::{ForwardingPlan, RecoveryTest};
use narrows_model::forwarding_plan::Row;

/// The overload, in parts of the throughput.
const OVERLOAD: f64 = 1.1;
/// The load after it, in parts of the overload.
const AFTER: f64 = 0.5;
/// A loss in the last part of the time after the cut: the device had not recovered.
const STILL: f64 = 0.99;

/// The recovery test of one row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecoveryPlan {
    /// The overload, frames a second.
    pub overload_pps: f64,
    /// The load after the cut.
    pub after_pps: f64,
    /// How long the overload lasts.
    pub overload_ms: u64,
    /// How long the load after the cut lasts.
    pub after_ms: u64,
    /// How often.
    pub repetitions: u32,
}

impl RecoveryPlan {
    /// The test of a row of which the throughput is known.
    ///
    /// # Errors
    /// Why the row cannot be overloaded.
    pub fn of(
        plan: &ForwardingPlan,
        test: &RecoveryTest,
        row: Row,
        throughput_pps: Option<f64>,
    ) -> Result<Self, String> {
        let (throughput_pps, most_pps) = known(plan, row, throughput_pps)?;
        if throughput_pps >= most_pps * BELOW_MOST {
            return Err("its throughput is the highest rate that is offered: it cannot be overloaded".to_owned());
        }
        let overload_pps = (throughput_pps * OVERLOAD).min(most_pps);
        Ok(Self {
            overload_pps,
            after_pps: overload_pps * AFTER,
            overload_ms: test.overload_ms,
            after_ms: test.after_ms,
            repetitions: test.repetitions,
        })
    }
}

/// What was seen of one overload and the time after it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RecoverySeen {
    /// Frames of the overload that were lost.
    pub overload_lost: u64,
    /// Frames sent after the cut and lost.
    pub after_lost: u64,
    /// From the cut to the last frame lost, by time stamps; `None`: not known.
    pub last_loss_ns: Option<u64>,
    /// Why it says nothing, if so.
    pub invalid: Option<String>,
}

/// What a repetition says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovered {
    /// After so long no frame was lost any more.
    After {
        /// Nanoseconds since the cut.
        ns: u64,
        /// Whether by time stamps; otherwise by frames lost, and at least so long.
        by_stamps: bool,
    },
    /// The overload lost nothing: there was nothing to recover from.
    NotOverloaded,
    /// It still lost frames when the time was over.
    NotRecovered,
}

/// A recovery test under way.
#[derive(Debug, Clone)]
pub struct Recovery {
    plan: RecoveryPlan,
    found: Vec<Option<Recovered>>,
    asked: bool,
}

impl Recovery {
    /// A test that has not begun.
    #[must_use]
    pub const fn new(plan: RecoveryPlan) -> Self {
        Self { plan, found: Vec::new(), asked: false }
    }

    /// Whether another repetition is to be made; the plan says what it is.
    pub fn ask(&mut self) -> Option<&RecoveryPlan> {
        self.asked = self.found.len() < self.plan.repetitions as usize;
        self.asked.then_some(&self.plan)
    }

    /// Takes what was seen. `None`: the repetition says nothing.
    ///
    /// # Errors
    /// [`SearchError::NothingAsked`] where no repetition is under way.
    pub fn observe(&mut self, seen: &RecoverySeen) -> Result<Option<Recovered>, SearchError> {
        if !std::mem::take(&mut self.asked) {
            return Err(SearchError::NothingAsked);
        }
        let recovered = recovered(&self.plan, seen);
        self.found.push(recovered);
        Ok(recovered)
    }

    /// One per repetition that was made; `None` of those that say nothing.
    #[must_use]
    pub fn results(&self) -> &[Option<Recovered>] {
        &self.found
    }
}

/// What one repetition says.
#[must_use]
pub fn recovered(plan: &RecoveryPlan, seen: &RecoverySeen) -> Option<Recovered> {
    if seen.invalid.is_some() {
        return None;
    }
    if seen.overload_lost == 0 {
        return Some(Recovered::NotOverloaded);
    }
    let by_stamps = seen.last_loss_ns.is_some();
    let ns = match seen.last_loss_ns {
        _ if seen.after_lost == 0 => 0,
        Some(ns) => ns,
        None => nanos(seen.after_lost as f64 / plan.after_pps)?,
    };
    Some(if ns as f64 >= STILL * plan.after_ms as f64 * 1e6 {
        Recovered::NotRecovered
    } else {
        Recovered::After { ns, by_stamps }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::procedures::device::{Queue, plan, row};
    use proptest::prelude::*;

    fn test() -> RecoveryTest {
        RecoveryTest { overload_ms: 5_000, after_ms: 5_000, repetitions: 3 }
    }

    fn planned(throughput_pps: f64) -> RecoveryPlan {
        RecoveryPlan::of(&plan(), &test(), row(64), Some(throughput_pps)).expect("it can be overloaded")
    }

    #[test]
    fn the_overload_is_a_tenth_more_and_never_beyond_the_line() {
        assert!((planned(1e6).overload_pps - 1.1e6).abs() < 1e-3);
        assert!((planned(1e6).after_pps - 0.55e6).abs() < 1e-3);
        assert!((planned(14.5e6).overload_pps - 14_880_952.38).abs() < 0.01);
        let full = RecoveryPlan::of(&plan(), &test(), row(64), Some(14_880_952.380_952_38));
        assert!(full.expect_err("the line").contains("cannot be overloaded"));
    }

    #[test]
    fn lost_frames_and_time_stamps_say_how_long_it_took() {
        let plan = planned(1e6);
        // 55,000 frames at 550,000 a second are 100 ms.
        let seen = RecoverySeen { overload_lost: 9, after_lost: 55_000, ..RecoverySeen::default() };
        assert_eq!(recovered(&plan, &seen), Some(Recovered::After { ns: 100_000_000, by_stamps: false }));
        let stamped = RecoverySeen { last_loss_ns: Some(120_000_000), ..seen.clone() };
        assert_eq!(recovered(&plan, &stamped), Some(Recovered::After { ns: 120_000_000, by_stamps: true }));
        let never = RecoverySeen { last_loss_ns: Some(4_990_000_000), ..seen.clone() };
        assert_eq!(recovered(&plan, &never), Some(Recovered::NotRecovered));
        assert_eq!(recovered(&plan, &RecoverySeen::default()), Some(Recovered::NotOverloaded));
        let at_once = RecoverySeen { after_lost: 0, ..seen.clone() };
        assert_eq!(recovered(&plan, &at_once), Some(Recovered::After { ns: 0, by_stamps: false }));
        let invalid = RecoverySeen { invalid: Some("no".to_owned()), ..seen };
        assert_eq!(recovered(&plan, &invalid), None);
    }

    proptest! {
        #[test]
        fn a_device_that_stands_still_after_the_cut_is_timed(standstill_ms in 0_u64..4_000, capacity in 1e5..1e7_f64) {
            let device = Queue { queue: 0, drain_pps: capacity };
            let mut test = Recovery::new(planned(capacity));
            let mut made = 0;
            while let Some(plan) = test.ask() {
                made += 1;
                let overload_lost = ((plan.overload_pps - device.drain_pps) * plan.overload_ms as f64 / 1e3) as u64;
                let after_lost = (plan.after_pps * standstill_ms as f64 / 1e3) as u64;
                let seen = RecoverySeen { overload_lost, after_lost, ..RecoverySeen::default() };
                let found = test.observe(&seen).expect("asked for");
                let Some(Recovered::After { ns, .. }) = found else { panic!("{found:?}") };
                prop_assert!((ns as f64 / 1e6 - standstill_ms as f64).abs() < 0.1, "{ns} ns, not {standstill_ms} ms");
            }
            prop_assert_eq!((made, test.results().len()), (3, 3));
        }
    }
}
