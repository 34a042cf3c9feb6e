//! System recovery (RFC 2544, section 26.5): 110 % of the throughput, or the most that is offered where that is less, for at
//! least a minute; then half of that load at once. The time from the cut to the last frame lost is the recovery.
//!
//! The receiver's samples show when the last frame was lost ([`seen`]): when the count of missing sequence numbers
//! last grew. If they do not show it, frames lost after the cut ÷ the offered rate gives the shortest time it can have
//! taken: as if all of them were lost in a row.

use super::procedure::{BELOW_MAX, Context, Keep, Known, Load, Procedure, Request, Seen, SetUp, loads, nanos};
use super::schedule::{Scheduled, fixed};
use crate::data::plan::Row;
use crate::data::{ForwardingPlan, OutageOfSize, RecoveryTest, Test};
use narrows_model::load::frame_traffic::Modifier;
use narrows_model::load::frames::{FrameInterval, FrameTrial, StreamGot, StreamSent};
use narrows_search::search::SearchError;

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
    pub repetitions: u32,
}

impl RecoveryPlan {
    /// The test of a row of which the throughput is known.
    /// Errors: why the row cannot be overloaded.
    pub fn of(
        plan: &ForwardingPlan,
        test: &RecoveryTest,
        row: Row,
        throughput_pps: Option<f64>,
    ) -> Result<Self, String> {
        let (throughput_pps, most_pps) = loads(plan, row, &Known { throughput_pps, ..Known::default() })?;
        if throughput_pps >= most_pps * BELOW_MAX {
            return Err("its throughput is the maximum load: no overload is possible".to_owned());
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
    /// Frames lost after the cut.
    pub after_lost: u64,
    /// When the last frame was lost; `None`: not known.
    pub last_loss: Option<LastLoss>,
    /// Why it says nothing, if so.
    pub invalid: Option<String>,
}

/// When the last frame was lost, from the cut on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastLoss {
    /// Nanoseconds, if all frames were lost until then: those that came before the look that saw it came in a row.
    pub ns: u64,
    /// At least and at most: the looks before and after.
    pub between_ns: [u64; 2],
}

/// One look of the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Look {
    /// When it was, by any clock.
    pub at_us: u64,
    /// Frames that had come.
    pub frames: u64,
    /// Numbers below the highest of each stream whose frame had not come.
    pub lost: u64,
}

/// What the looks around a cut say. `cut_us` is of their clock, `lost` all frames sent and not received. `at_end` are those of the load
/// after the cut that were sent after the last one that came: the looks cannot know of them.
pub fn seen(plan: &RecoveryPlan, looks: &[Look], cut_us: u64, lost: u64, at_end: u64) -> RecoverySeen {
    // Counters are read while they grow, so a sample may be off by a frame or two: a loss that the next sample does not
    // confirm is ignored, and earlier losses remain.
    let steady = |at: usize| looks[at].lost.min(looks.get(at + 1).map_or(u64::MAX, |next| next.lost));
    let (mut most, mut before_cut, mut last) = (0, 0, None);
    for (at, look) in looks.iter().enumerate() {
        let lost = steady(at);
        if look.at_us <= cut_us {
            before_cut = before_cut.max(lost);
        } else if lost > most.max(before_cut) {
            last = Some(at);
        }
        most = most.max(lost);
    }
    let since_cut = |at_us: u64| at_us.saturating_sub(cut_us).saturating_mul(1_000);
    let end_ns = plan.after_ms.saturating_mul(1_000_000);
    let last_loss = if at_end > 0 {
        Some(LastLoss { ns: end_ns, between_ns: [end_ns; 2] })
    } else {
        last.map(|at| {
            let (look, before) = (looks[at], at.checked_sub(1).map_or(Look::default(), |at| looks[at]));
            let between_ns = [since_cut(before.at_us), since_cut(look.at_us)];
            let came_ns = nanos(look.frames.saturating_sub(before.frames) as f64 / plan.after_pps).unwrap_or(u64::MAX);
            LastLoss { ns: between_ns[1].saturating_sub(came_ns).max(between_ns[0]), between_ns }
        })
    };
    let after_lost = most.saturating_sub(before_cut).saturating_add(at_end).min(lost);
    RecoverySeen { overload_lost: lost.saturating_sub(after_lost), after_lost, last_loss, invalid: None }
}

/// What a repetition says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovered {
    /// No frame was lost after this time.
    After {
        /// Nanoseconds since the cut.
        ns: u64,
        /// At least and at most by the receiver's looks; `None`: by frames lost, and at least so long.
        between_ns: Option<[u64; 2]>,
    },
    /// The overload lost nothing: there was nothing to recover from.
    NotOverloaded,
    /// It still lost frames when the time was over.
    NotRecovered,
}

/// How often the receiver is sampled, ms: it samples no more often.
const SAMPLE_MS: u64 = 10;

pub(super) fn set_up(plan: &ForwardingPlan, row: Row, known: &Known) -> Option<SetUp> {
    let ready = RecoveryPlan::of(plan, plan.tests.recovery.as_ref()?, row, known.throughput_pps);
    // The samples count test frames alone.
    let modifier = plan.traffic.get(row.traffic).and_then(|traffic| traffic.modifier.as_ref());
    let test_share = 1.0 - modifier.map_or(0.0, Modifier::broadcast_share);
    Some(ready.map(|plan| Box::new(Recovery { row, plan, test_share, made: 0 }) as _))
}

pub(super) fn schedule(plan: &ForwardingPlan, row: Row) -> Vec<Scheduled> {
    let test = plan.tests.recovery.as_ref();
    let of = |test: &RecoveryTest| {
        fixed(plan, Test::Recovery, row, test.repetitions, test.overload_ms.saturating_add(test.after_ms))
    };
    test.map(of).into_iter().collect()
}

/// Recoveries of a row.
struct Recovery {
    row: Row,
    plan: RecoveryPlan,
    /// The part of the load that are test frames.
    test_share: f64,
    made: u32,
}

impl Procedure for Recovery {
    fn next(&mut self, _: &mut Context<'_>) -> Result<Option<Request>, SearchError> {
        if self.made >= self.plan.repetitions {
            return Ok(None);
        }
        let RecoveryPlan { overload_pps: pps, overload_ms: duration_ms, after_pps, after_ms, .. } = self.plan;
        let load = Load::Cut { pps, duration_ms, after_pps, after_ms };
        let note = Some(format!("overload of {pps:.0} frames/s, then {after_pps:.0}"));
        let request = Request::new(Test::Recovery, self.made, load, Keep::Always);
        self.made += 1;
        Ok(Some(Request { sample_ms: Some(SAMPLE_MS), note, ..request }))
    }

    fn take(&mut self, seen: &Seen, context: &mut Context<'_>) -> Result<(), SearchError> {
        let by_samples = RecoveryPlan { after_pps: self.plan.after_pps * self.test_share, ..self.plan };
        let frames = seen.trial.directions.first();
        let mut found = frames.map_or_else(RecoverySeen::default, |frames| around(&by_samples, frames, seen.cut_ns));
        found.invalid = seen.invalid.clone().or(found.invalid);
        let recovered = recovered(&self.plan, &found);
        let (outage_ns, between_ns) = match recovered {
            Some(Recovered::After { ns, between_ns }) => (Some(ns), between_ns),
            _ => (None, None),
        };
        let why = recovered.map_or_else(
            || Some(format!("invalid trial: {}", found.invalid.unwrap_or_default())),
            |recovered| recovered.why(&self.plan),
        );
        (context.says)(&match (outage_ns, &why) {
            (Some(ns), _) => format!("recovered after {:.1} ms", ns as f64 / 1e6),
            (None, why) => why.clone().unwrap_or_default(),
        });
        context.record.outages.push(OutageOfSize {
            test: Test::Recovery,
            traffic: self.row.traffic,
            size: self.row.size,
            outage_ns,
            between_ns,
            since_ns: seen.cut_ns,
            remarks: why.into_iter().collect(),
        });
        Ok(())
    }
}

/// What the samples say; invalid where they cannot.
fn around(plan: &RecoveryPlan, frames: &FrameTrial, cut_ns: Option<u64>) -> RecoverySeen {
    let cannot = |why: &str| RecoverySeen { invalid: Some(why.to_owned()), ..RecoverySeen::default() };
    let Some(after_ns) = cut_ns.zip(frames.got.began_ns).and_then(|(cut, began)| cut.checked_sub(began)) else {
        return cannot("the end of the overload is unknown on the receiver's clock");
    };
    let look = |it: &FrameInterval| Some(Look { at_us: it.at_us, frames: it.frames, lost: it.lost()? });
    let Some(looks) = frames.got.intervals.iter().map(look).collect::<Option<Vec<_>>>() else {
        return cannot("the receiver does not report the time of loss");
    };
    seen(plan, &looks, after_ns / 1_000, u64::try_from(frames.lost()).unwrap_or(0), at_end(frames))
}

/// Frames of the load that goes on after the cut that were sent after the last one of each stream that came.
fn at_end(frames: &FrameTrial) -> u64 {
    let behind = |sent: &StreamSent| {
        let came = frames.got.streams.iter().find(|stream| stream.stream == sent.stream && stream.received > 0);
        sent.handed.saturating_sub(came.map_or(0, |stream: &StreamGot| stream.highest.saturating_add(1)))
    };
    frames.sent.streams.iter().filter(|sent| sent.stream < Load::CUT_STREAM).map(behind).sum()
}

/// What one repetition says.
pub fn recovered(plan: &RecoveryPlan, seen: &RecoverySeen) -> Option<Recovered> {
    if seen.invalid.is_some() {
        return None;
    }
    if seen.overload_lost == 0 {
        return Some(Recovered::NotOverloaded);
    }
    let (ns, between_ns) = match seen.last_loss {
        _ if seen.after_lost == 0 => (0, None),
        Some(last) => (last.ns, Some(last.between_ns)),
        None => (nanos(seen.after_lost as f64 / plan.after_pps)?, None),
    };
    Some(if ns as f64 >= STILL * plan.after_ms as f64 * 1e6 {
        Recovered::NotRecovered
    } else {
        Recovered::After { ns, between_ns }
    })
}

impl Recovered {
    /// Why there is no time, if there is none.
    pub fn why(self, plan: &RecoveryPlan) -> Option<String> {
        match self {
            Self::After { .. } => None,
            Self::NotOverloaded => Some(format!(
                "{:.0} frames/s for {} ms caused no loss: no overload",
                plan.overload_pps, plan.overload_ms
            )),
            Self::NotRecovered => Some(format!(
                "no recovery: at {:.0} frames/s frames were still lost {} ms after the overload",
                plan.after_pps, plan.after_ms
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::procedures::device::{Queue, row};
    use crate::testing::plan;
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
        assert!(full.expect_err("the line").contains("no overload is possible"));
    }

    #[test]
    fn lost_frames_and_time_stamps_say_how_long_it_took() {
        let plan = planned(1e6);
        // 55,000 frames at 550,000 a second are 100 ms.
        let seen = RecoverySeen { overload_lost: 9, after_lost: 55_000, ..RecoverySeen::default() };
        assert_eq!(recovered(&plan, &seen), Some(Recovered::After { ns: 100_000_000, between_ns: None }));
        let at = |ns, between_ns| RecoverySeen { last_loss: Some(LastLoss { ns, between_ns }), ..seen.clone() };
        let between_ns = [115_000_000, 125_000_000];
        let by_looks = Some(Recovered::After { ns: 120_000_000, between_ns: Some(between_ns) });
        assert_eq!(recovered(&plan, &at(120_000_000, between_ns)), by_looks);
        assert_eq!(recovered(&plan, &at(4_990_000_000, [4_990_000_000; 2])), Some(Recovered::NotRecovered));
        assert_eq!(recovered(&plan, &RecoverySeen::default()), Some(Recovered::NotOverloaded));
        let at_once = RecoverySeen { after_lost: 0, ..seen.clone() };
        assert_eq!(recovered(&plan, &at_once), Some(Recovered::After { ns: 0, between_ns: None }));
        let invalid = RecoverySeen { invalid: Some("no".to_owned()), ..seen };
        assert_eq!(recovered(&plan, &invalid), None);
    }

    /// Looks every 10 ms at a device that lets through `carries` of the overload for 5 s and then stands still for so long.
    fn looks(plan: &RecoveryPlan, carries: f64, standstill_ms: u64) -> Vec<Look> {
        let cut_ms = plan.overload_ms;
        let pps = |ms: u64| if ms < cut_ms { plan.overload_pps } else { plan.after_pps };
        let (mut frames, mut lost, mut silent, mut looks) = (0.0, 0.0, 0.0, Vec::new());
        for ms in 0..cut_ms + plan.after_ms {
            if ms % 10 == 0 {
                looks.push(Look { at_us: 7_000 + ms * 1_000, frames: frames as u64, lost: lost as u64 });
            }
            let due = pps(ms) / 1e3;
            match ms {
                _ if ms < cut_ms => {
                    frames += due * carries;
                    lost += due * (1.0 - carries);
                }
                // Missing frames are noticed only when a later frame arrives.
                _ if ms < cut_ms + standstill_ms => silent += due,
                _ => {
                    frames += due;
                    lost += std::mem::take(&mut silent);
                }
            }
        }
        looks.push(Look { at_us: 7_000 + (cut_ms + plan.after_ms) * 1_000, frames: frames as u64, lost: lost as u64 });
        looks
    }

    #[test]
    fn looks_that_are_off_by_a_frame_tell_no_loss() {
        let plan = planned(1e6);
        let mut looks = looks(&plan, 0.9, 0);
        let (lost, cut_us) = (looks.last().expect("looks").lost, 5_007_000);
        looks[700].lost += 2;
        looks[800].lost -= 2;
        let seen = seen(&plan, &looks, cut_us, lost, 0);
        assert_eq!((seen.after_lost, seen.last_loss), (0, None), "{seen:?}");
        assert_eq!(recovered(&plan, &seen), Some(Recovered::After { ns: 0, between_ns: None }));
    }

    #[test]
    fn a_single_frame_is_a_loss_and_a_device_that_is_gone_does_not_recover() {
        let plan = planned(1e6);
        let mut all = looks(&plan, 0.9, 0);
        let lost = all.last().expect("looks").lost + 1;
        all.iter_mut().filter(|look| look.at_us >= 5_507_000).for_each(|look| look.lost += 1);
        let one = seen(&plan, &all, 5_007_000, lost, 0);
        assert_eq!((one.after_lost, one.last_loss.map(|last| last.between_ns)), (1, Some([490_000_000, 500_000_000])));
        let gone = seen(&plan, &looks(&plan, 0.9, 5_000), 5_007_000, 3_300_000, 2_750_000);
        assert_eq!((gone.after_lost, gone.overload_lost), (2_750_000, 550_000));
        let found = recovered(&plan, &gone).expect("it says something");
        assert_eq!(found, Recovered::NotRecovered);
        let why = found.why(&plan).expect("a sentence");
        assert_eq!(why, "no recovery: at 550000 frames/s frames were still lost 5000 ms after the overload");
    }

    proptest! {
        #[test]
        fn looks_tell_how_long_a_device_stood_still(standstill_ms in 1_u64..4_000, carries in 0.5..0.99_f64) {
            let plan = planned(1e6);
            let looks = looks(&plan, carries, standstill_ms);
            let lost = looks.last().expect("looks").lost;
            let seen = seen(&plan, &looks, 5_007_000, lost, 0);
            let Some(Recovered::After { ns, between_ns: Some([least, most]) }) = recovered(&plan, &seen) else {
                panic!("{seen:?}")
            };
            let is_ns = standstill_ms * 1_000_000;
            prop_assert!(ns.abs_diff(is_ns) <= 1_100_000, "{ns} ns, not {standstill_ms} ms");
            prop_assert!(least <= is_ns && is_ns <= most && most - least == 10_000_000, "{least} {most}");
        }

        #[test]
        fn any_looks_are_taken(
            looks in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>()), 0..40),
            numbers in any::<(u64, u64, u64)>(),
        ) {
            let looks: Vec<_> = looks.into_iter().map(|(at_us, frames, lost)| Look { at_us, frames, lost }).collect();
            let seen = seen(&planned(1e6), &looks, numbers.0, numbers.1, numbers.2);
            prop_assert_eq!(seen.overload_lost + seen.after_lost, numbers.1);
        }

        #[test]
        fn a_device_that_stands_still_after_the_cut_is_timed(standstill_ms in 0_u64..4_000, capacity in 1e5..1e7_f64) {
            let device = Queue { queue: 0, drain_pps: capacity };
            let plan = planned(capacity);
            {
                let overload_lost = ((plan.overload_pps - device.drain_pps) * plan.overload_ms as f64 / 1e3) as u64;
                let after_lost = (plan.after_pps * standstill_ms as f64 / 1e3) as u64;
                let seen = RecoverySeen { overload_lost, after_lost, ..RecoverySeen::default() };
                let found = recovered(&plan, &seen);
                let Some(Recovered::After { ns, .. }) = found else { panic!("{found:?}") };
                prop_assert!((ns as f64 / 1e6 - standstill_ms as f64).abs() < 0.1, "{ns} ns, not {standstill_ms} ms");
            }
        }
    }
}
