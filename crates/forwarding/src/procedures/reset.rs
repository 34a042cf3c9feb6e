//! Reset (RFC 2544, section 26.6, as RFC 6201 makes it precise): frames at the throughput while the device is reset; the
//! outage is how long it forwarded nothing.
//!
//! RFC 6201 knows two ways. *By loss*: frames lost ÷ rate offered. *By time stamps*: from the last frame before the
//! outage to
//! the first one after it. Both are made where they can be. The former is the finer one, within the bounds of the
//! latter: where
//! it is beyond them, frames were lost at other times, too, or the device stalled more than once, and the result
//! says so. It
//! needs a load without gaps: where the generator stalled itself, the time stamps alone tell.

use super::procedure::{Context, Keep, Known, Load, Procedure, Request, Seen, SetUp, loads, nanos};
use super::schedule::{Scheduled, fixed};
use crate::data::plan::Row;
use crate::data::{ForwardingPlan, OutageOfSize, ResetTest, Test};
use narrows_model::load::frames::{FrameInterval, FrameTrial};
use narrows_search::search::SearchError;

/// The part of the load's time over which frames must have come.
const WHOLE: f64 = 0.99;
/// The part of what was due that may be missing from the load, so that frames lost still tell a time.
const GAPS: f64 = 0.005;

/// Samples of an outage that a record has room for, and how near to one another a receiver can take them.
const MAX_SAMPLES: u64 = 2_000;
const SAMPLE_MS: u64 = 10;

pub(super) fn set_up(plan: &ForwardingPlan, row: Row, known: &Known) -> Option<SetUp> {
    let test = plan.tests.reset.as_ref()?.clone();
    Some(loads(plan, row, known).map(|(load_pps, _)| Box::new(Reset { row, test, load_pps, made: false }) as _))
}

pub(super) fn schedule(plan: &ForwardingPlan, row: Row) -> Vec<Scheduled> {
    plan.tests.reset.as_ref().map(|test| fixed(plan, Test::Reset, row, 1, test.within_ms)).into_iter().collect()
}

/// A reset under way.
struct Reset {
    row: Row,
    test: ResetTest,
    load_pps: f64,
    made: bool,
}

impl Procedure for Reset {
    fn next(&mut self, _: &mut Context<'_>) -> Result<Option<Request>, SearchError> {
        if std::mem::replace(&mut self.made, true) {
            return Ok(None);
        }
        let (pps, duration_ms) = (self.load_pps, self.test.within_ms);
        let (program, seconds) = (self.test.command.first().map_or("", String::as_str), duration_ms as f64 / 1e3);
        let note = format!("`{program}` resets the device: {pps:.0} frames/s for {seconds:.1} s");
        Ok(Some(Request {
            sample_ms: Some(duration_ms.div_ceil(MAX_SAMPLES).max(SAMPLE_MS)),
            command: Some(self.test.command.clone()),
            note: Some(note),
            ..Request::new(Test::Reset, 0, Load::Rate { pps, duration_ms }, Keep::Always)
        }))
    }

    fn take(&mut self, seen: &Seen, context: &mut Context<'_>) -> Result<(), SearchError> {
        let (outage_ns, between_ns, mut remarks) = match seen.trial.directions.first().map(outage) {
            Some(Ok(outage)) => (Some(outage.ns), outage.stamps_ns, outage.remarks),
            Some(Err(why)) => (None, None, vec![why]),
            None => (None, None, vec![seen.invalid.clone().unwrap_or_else(|| "nothing was sent".to_owned())]),
        };
        remarks.extend(seen.command_failed.clone());
        remarks.iter().for_each(|remark| (context.says)(remark));
        if let Some(ns) = outage_ns {
            (context.says)(&format!("out of service for {:.1} ms", ns as f64 / 1e6));
        }
        let Row { traffic, size } = self.row;
        let outage = OutageOfSize { test: Test::Reset, traffic, size, outage_ns, between_ns, since_ns: None, remarks };
        context.record.outages.push(outage);
        Ok(())
    }
}

/// The outage of a reset.
#[derive(Debug, Clone, PartialEq)]
pub struct Outage {
    /// By loss, within the bounds of the time stamps; where the load had gaps their middle.
    pub ns: u64,
    /// By time stamps: at least and at most, by the receiver's looks before and after; `None` where it looked too seldom.
    pub stamps_ns: Option<[u64; 2]>,
    /// What must be known of it.
    pub remarks: Vec<String>,
}

/// Outage by loss: the frames over the rate at which they were offered; `None` without a rate.
pub fn by_loss(lost: u64, offered_pps: f64) -> Option<u64> {
    if offered_pps > 0.0 { nanos(lost as f64 / offered_pps) } else { None }
}

/// The longest time in which a cumulative count did not grow, at least and at most, ns: it grew somewhere before the look that
/// began it, and again somewhere before the look that ended it. `None` where it grew between any two looks, or is silent to
/// the end.
pub fn longest_silence(looks: &[FrameInterval]) -> Option<[u64; 2]> {
    let mut longest: Option<[u64; 2]> = None;
    // The look that saw the last growth, and the one before it.
    let mut grew: Option<(u64, u64)> = None;
    for pair in looks.windows(2) {
        let [before, now] = pair else { continue };
        if now.frames <= before.frames {
            continue;
        }
        if let Some((last_us, last_before_us)) = grew {
            let least_ns = before.at_us.saturating_sub(last_us).saturating_mul(1_000);
            let most_ns = now.at_us.saturating_sub(last_before_us).saturating_mul(1_000);
            if least_ns > 0 && longest.is_none_or(|[least, _]| least_ns > least) {
                longest = Some([least_ns, most_ns]);
            }
        }
        grew = Some((now.at_us, before.at_us));
    }
    longest
}

/// The outage that a trial through a reset shows.
/// Errors: why it shows none: nothing was lost, or the device did not come back.
pub fn outage(trial: &FrameTrial) -> Result<Outage, String> {
    if let Some(why) = &trial.sent.ended {
        return Err(format!("the generator ended early: {why}"));
    }
    let lost = u64::try_from(trial.lost()).map_err(|_| "more frames received than sent".to_owned())?;
    if lost == 0 {
        return Err("no frame was lost: the device was not reset, or kept forwarding".to_owned());
    }
    // Frames came from the begin of the load to its end, or the outage is not inside it and only part of it was seen.
    if trial.got.distinct() == 0 || (trial.got.elapsed_ns as f64) < WHOLE * trial.sent.elapsed_ns as f64 {
        return Err("no frames at the end of the load: the device did not come back in time".to_owned());
    }
    let lost_ns = by_loss(lost, trial.sent.sent_pps()).ok_or("the rate of the generator is unknown")?;
    let Some([least_ns, most_ns]) = longest_silence(&trial.got.intervals) else {
        let why = "the receiver's sample interval is too long for the outage, and there are no timestamps";
        return Ok(Outage { ns: lost_ns, stamps_ns: None, remarks: vec![why.to_owned()] });
    };
    let ms = |ns: u64| ns as f64 / 1e6;
    let gaps = trial.sent.unsent() as f64 / trial.sent.due().max(1) as f64;
    let (ns, remark) = match lost_ns {
        _ if gaps > GAPS => (
            least_ns.midpoint(most_ns),
            Some(format!(
                "from timestamps: {:.1} % of the frames were unsent, so the loss gives no time",
                gaps * 100.0
            )),
        ),
        ns if ns > most_ns => {
            (most_ns, Some(format!("{:.1} ms by loss: frames were also lost at other times", ms(ns))))
        }
        ns if ns < least_ns => {
            (least_ns, Some(format!("{:.1} ms by loss: frames were queued, or the load had a gap", ms(ns))))
        }
        ns => (ns, None),
    };
    Ok(Outage { ns, stamps_ns: Some([least_ns, most_ns]), remarks: remark.into_iter().collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::frame_trial;
    use proptest::prelude::*;

    fn look(at_us: u64, frames: u64) -> FrameInterval {
        FrameInterval { at_us, frames, ..FrameInterval::default() }
    }

    /// A load of 10 s at 100,000 frames a second that an outage interrupts, looked at every `look_ms`.
    fn trial(from_ms: u64, to_ms: u64, look_ms: u64) -> FrameTrial {
        let arrived = |ms: u64| 100 * (ms.min(from_ms) + ms.saturating_sub(to_ms.max(from_ms)));
        let mut trial = frame_trial(1_000_000, arrived(10_000), 10_000_000_000);
        trial.got.intervals =
            (0..=10_000 / look_ms).map(|nth| look(nth * look_ms * 1_000, arrived(nth * look_ms))).collect();
        if to_ms >= 10_000 {
            trial.got.elapsed_ns = from_ms * 1_000_000;
        }
        trial
    }

    #[test]
    fn both_ways_tell_the_same_outage() {
        let outage = outage(&trial(3_000, 5_500, 100)).expect("an outage");
        assert_eq!(outage.ns, 2_500_000_000);
        let [least, most] = outage.stamps_ns.expect("time stamps");
        assert_eq!((least, most), (2_500_000_000, 2_700_000_000));
        assert_eq!(outage.remarks, [""; 0]);
    }

    #[test]
    fn loss_beside_the_outage_is_named() {
        let mut other = trial(3_000, 5_500, 100);
        other.got.streams[0].received -= 100_000;
        let outage = outage(&other).expect("an outage");
        assert_eq!(outage.ns, 2_700_000_000, "what the time stamps allow");
        assert_eq!(outage.remarks, ["3500.0 ms by loss: frames were also lost at other times"]);
    }

    #[test]
    fn a_load_with_gaps_tells_by_time_stamps() {
        let mut gaps = trial(3_000, 5_500, 100);
        gaps.sent.streams[0].due += 100_000;
        let of = outage(&gaps).expect("an outage");
        assert_eq!((of.ns, of.stamps_ns), (2_600_000_000, Some([2_500_000_000, 2_700_000_000])));
        assert!(of.remarks[0].contains("9.1 % of the frames were unsent"), "{:?}", of.remarks);
        gaps.got.intervals.clear();
        assert_eq!(outage(&gaps).expect("by loss").ns, 2_500_000_000);
    }

    #[test]
    fn no_outage_is_no_zero() {
        assert!(outage(&trial(3_000, 3_000, 100)).expect_err("none").contains("was not reset"));
        assert!(outage(&trial(3_000, 10_000, 100)).expect_err("gone").contains("did not come back"));
        assert_eq!(by_loss(1, 0.0), None);
        assert_eq!(longest_silence(&[]), None);
    }

    proptest! {
        #[test]
        fn time_stamps_enclose_what_loss_says(from_ms in 500_u64..5_000, lasts_ms in 300_u64..4_000, look_ms in 10_u64..100) {
            let outage = outage(&trial(from_ms, from_ms + lasts_ms, look_ms)).expect("an outage");
            prop_assert_eq!(outage.ns, lasts_ms * 1_000_000);
            let [least, most] = outage.stamps_ns.expect("it is longer than a look");
            prop_assert!(least <= outage.ns && outage.ns <= most, "{} not in {}..={}", outage.ns, least, most);
            prop_assert_eq!(outage.remarks.len(), 0);
        }

        #[test]
        fn any_looks_are_read(looks in prop::collection::vec((any::<u64>(), any::<u64>()), 0..40)) {
            let looks: Vec<_> = looks.into_iter().map(|(at_us, frames)| look(at_us, frames)).collect();
            if let Some([least, _]) = longest_silence(&looks) {
                prop_assert!(least > 0);
            }
        }
    }
}
