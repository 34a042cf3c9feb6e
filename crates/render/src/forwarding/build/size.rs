//! Everything of one frame size.

use super::{device, is_invalid, modified, words};
use crate::figures::{float, nanos, pps};
use narrows_model::forwarding::report::{
    ConfirmationView, Derived, EstimateView, GoalOfSize, SizeView, TesterView, ThroughputView, WorstCaseView,
};
use narrows_model::forwarding::{ForwardingRecord, ForwardingTrial, OutageOfSize, SearchOfSize, Test, Traffic};
use narrows_model::load::frames::{FrameLoad, FrameTrial};
use narrows_model::load::frames_report::FrameRate;
use narrows_model::run::search::{Goal, GoalResult, Outcome, SearchPlan, TesterLimit};
use narrows_model::run::sweep::Spread;

/// The sizes of a traffic, the mix last.
pub(super) fn views(record: &ForwardingRecord, derived: &Derived, traffic: usize, of: &Traffic) -> Vec<SizeView> {
    let mix = (!of.mix.is_empty()).then_some(None);
    of.sizes.iter().copied().map(Some).chain(mix).map(|size| Of { record, derived, traffic, of, size }.view()).collect()
}

/// One size of one traffic.
struct Of<'a> {
    record: &'a ForwardingRecord,
    derived: &'a Derived,
    traffic: usize,
    of: &'a Traffic,
    size: Option<u32>,
}

impl Of<'_> {
    fn view(&self) -> SizeView {
        let (record, derived) = (self.record, self.derived);
        let frame_bytes = match self.size {
            Some(size) => f64::from(size),
            None => {
                self.of.mix.iter().map(|size| f64::from(*size)).sum::<f64>() / float(self.of.mix.len().max(1) as u64)
            }
        };
        let of = |test: Test| record.outages.iter().filter(move |it| it.test == test && self.is((it.traffic, it.size)));
        let outage = |test: Test| spread(of(test).filter_map(|it| it.outage_ns).map(float));
        let notes = |test: Test| outage_notes(&of(test).collect::<Vec<_>>());
        let tester = record.tester.iter().find(|it| self.is((it.traffic, it.size)));
        let estimate = derived.estimates.iter().find(|it| self.size.is_none() && it.traffic == self.traffic);
        let curve = derived.curves.iter().find(|it| self.is((it.traffic, it.size)));
        SizeView {
            size: self.size,
            frame_bytes,
            line: FrameRate::line(frame_bytes, record.plan.link_bps),
            tester: tester.map(|it| TesterView { rate: self.rate(frame_bytes, it.pps), method: it.method.clone() }),
            throughput: record
                .searches
                .iter()
                .find(|it| self.is((it.traffic, it.size)))
                .map(|it| self.search(frame_bytes, it)),
            confirmation: self.confirmation(frame_bytes),
            estimate: estimate
                .map(|it| EstimateView { rate: self.rate(frame_bytes, it.pps), method: it.method.clone() }),
            latency: derived.latencies.iter().find(|it| self.is((it.traffic, it.size))).cloned(),
            loss: curve.map(|it| it.points.clone()).unwrap_or_default(),
            bursts: derived.bursts.iter().find(|it| self.is((it.traffic, it.size))).cloned(),
            recovery_ns: outage(Test::Recovery),
            reset_ns: outage(Test::Reset),
            recovery_notes: notes(Test::Recovery),
            reset_notes: notes(Test::Reset),
            worst_case: self.worst_case(frame_bytes),
            modified: self.of.modifier.as_ref().map(|_| modified::seen(self.own())),
            devices: device::views(self.own()),
        }
    }

    fn is(&self, other: (usize, Option<u32>)) -> bool {
        other == (self.traffic, self.size)
    }

    /// The trials of this size that are in the record.
    fn own(&self) -> impl Iterator<Item = &ForwardingTrial> + Clone {
        self.record.trials.iter().filter(|it| self.is((it.traffic, it.size)))
    }

    fn rate(&self, frame_bytes: f64, pps: f64) -> FrameRate {
        FrameRate::new(pps, frame_bytes, Some(self.record.plan.link_bps))
    }

    fn search(&self, frame_bytes: f64, of: &SearchOfSize) -> ThroughputView {
        let it = &of.record;
        let rate = |pps: Option<f64>| pps.map(|pps| self.rate(frame_bytes, pps));
        let goal = |goal: &Goal| {
            let result = it.results.iter().find(|result| result.goal == goal.name)?;
            let line = rate(result.lower_pps).and_then(|it| it.of_line).is_some_and(|part| part > 0.9999);
            Some(GoalOfSize {
                goal: goal.clone(),
                outcome: result.outcome,
                word: words::outcome(result, line).to_owned(),
                why: [again(of), why(result, &it.plan, line)].into_iter().flatten().reduce(|a, b| format!("{a}; {b}")),
                lower: rate(result.lower_pps),
                upper: rate(result.upper_pps),
                conditional_throughput: rate(result.conditional_throughput_pps),
            })
        };
        ThroughputView {
            goals: it.plan.goals.iter().filter_map(goal).collect(),
            trials: it.trials.len() as u64,
            invalid: it.trials.iter().filter(|trial| trial.seen.invalid.is_some()).count() as u64,
            took_ms: it.trials.iter().map(|trial| trial.ended_at_ms).max().unwrap_or(0),
        }
    }

    /// The trials of a test, each with whether it says nothing.
    fn trials(&self, test: Test) -> Vec<(&ForwardingTrial, bool)> {
        let all = self.record.trials.iter().enumerate();
        all.filter(|(_, it)| it.test == test && self.is((it.traffic, it.size)) && !it.directions.is_empty())
            .map(|(at, it)| (it, is_invalid(self.record, self.derived, at)))
            .collect()
    }

    fn confirmation(&self, frame_bytes: f64) -> Option<ConfirmationView> {
        let test = self.record.plan.tests.throughput.as_ref();
        let planned = test.map_or(0, |test| test.confirm);
        let allowed = test.and_then(|test| test.goals.first()).map_or(0.0, |goal| goal.loss_ratio);
        let trials = self.trials(Test::Confirmation);
        if trials.is_empty() {
            return None;
        }
        let valid = || trials.iter().filter(|(_, invalid)| !invalid).map(|(trial, _)| *trial);
        let loads: Vec<f64> = trials.iter().flat_map(|(trial, _)| &trial.directions).filter_map(load).collect();
        let load = loads.first().copied().filter(|first| loads.iter().all(|load| (load - first).abs() <= first * 1e-9));
        let passed = count(valid().filter(|trial| trial.directions.iter().all(|it| passes(it, allowed))).count());
        let repetitions = count(trials.len());
        let invalid = count(trials.iter().filter(|(_, invalid)| *invalid).count());
        let sound = repetitions - invalid;
        let exceed = test.and_then(|test| test.goals.first()).map_or(0.0, |goal| goal.exceed_ratio);
        Some(ConfirmationView {
            load: load.map(|pps| self.rate(frame_bytes, pps)),
            repetitions,
            planned,
            passed,
            invalid,
            received_pps: spread(valid().filter_map(slower)),
            lost: spread(valid().map(lost)),
            all_passed: passed == sound && sound > 0 && sound >= planned,
            holds: passed > 0 && sound >= planned && f64::from(sound - passed) <= exceed * f64::from(sound),
        })
    }

    fn worst_case(&self, frame_bytes: f64) -> Option<WorstCaseView> {
        let trials = self.trials(Test::WorstCase);
        if trials.is_empty() {
            return None;
        }
        let valid: Vec<&ForwardingTrial> =
            trials.iter().filter(|(_, invalid)| !invalid).map(|(trial, _)| *trial).collect();
        let received_pps = spread(valid.iter().filter_map(|trial| slower(trial)));
        let sent: u64 =
            valid.iter().flat_map(|trial| &trial.directions).fold(0, |sum, it| sum.saturating_add(it.sent.sent()));
        let gone: f64 = valid.iter().map(|trial| lost(trial)).sum();
        let least =
            |trial: &&&ForwardingTrial| trial.directions.iter().map(|it| it.sent.sent_pps()).min_by(f64::total_cmp);
        Some(WorstCaseView {
            repetitions: count(valid.len()),
            invalid: count(trials.len() - valid.len()),
            offered_pps: spread(valid.iter().filter_map(|trial| least(&trial))),
            received_pps,
            received: received_pps.map(|it| self.rate(frame_bytes, it.median)),
            loss_ratio: (sent > 0).then(|| gone / float(sent)),
        })
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn load(of: &FrameTrial) -> Option<f64> {
    match of.sent.plan.load {
        FrameLoad::FramesPerSecond(pps) => Some(pps),
        FrameLoad::Max => None,
    }
}

/// Whether what was due came, but for the part that may be lost. More than was sent is no pass.
fn passes(of: &FrameTrial, allowed: f64) -> bool {
    let missing = float(of.sent.due()) - float(of.got.distinct());
    of.lost() >= 0 && missing <= allowed * float(of.sent.due())
}

/// What the slower direction received, frames a second.
fn slower(of: &ForwardingTrial) -> Option<f64> {
    of.directions.iter().map(|it| it.got.received_pps()).min_by(f64::total_cmp)
}

/// Frames lost in all directions.
fn lost(of: &ForwardingTrial) -> f64 {
    #[allow(clippy::cast_precision_loss)]
    of.directions.iter().map(|it| it.lost() as f64).sum()
}

pub(super) fn spread(values: impl Iterator<Item = f64>) -> Option<Spread> {
    Spread::of(&values.collect::<Vec<_>>())
}

/// What must be known of the recoveries or resets of a size.
fn outage_notes(of: &[&OutageOfSize]) -> Vec<String> {
    let mut notes = Vec::new();
    let between: Vec<[u64; 2]> = of.iter().filter_map(|it| it.between_ns).collect();
    match between.as_slice() {
        [] => {}
        [[least, most]] => {
            notes.push(format!("between {} and {} by the receiver's looks", nanos(*least), nanos(*most)));
        }
        all => {
            let apart = all.iter().map(|[least, most]| most.saturating_sub(*least)).max().unwrap_or(0);
            notes.push(format!("to within {} by the receiver's looks", nanos(apart)));
        }
    }
    let mut told: Vec<(&str, usize)> = Vec::new();
    for remark in of.iter().flat_map(|it| &it.remarks) {
        match told.iter_mut().find(|(other, _)| other == remark) {
            Some((_, times)) => *times += 1,
            None => told.push((remark, 1)),
        }
    }
    notes.extend(told.into_iter().map(|(remark, times)| match of.len() {
        1 => remark.to_owned(),
        all => format!("{times} of {all}: {remark}"),
    }));
    notes
}

/// That it was searched twice.
fn again(of: &SearchOfSize) -> Option<String> {
    let before = pps(of.not_confirmed_pps?);
    Some(format!("searched once more: the repetitions did not confirm {before}, which was found first"))
}

/// Why a bound is missing, or whose it is.
fn why(result: &GoalResult, plan: &SearchPlan, is_line: bool) -> Option<String> {
    Some(match result.outcome {
        Outcome::Found => return None,
        Outcome::MaxLoadPasses if is_line => return None,
        Outcome::MinLoadFails => format!("the lowest load, {}, fails already", pps(plan.min_load_pps)),
        Outcome::MaxLoadPasses => {
            format!("the highest load, {}, passes: the device's limit is above it", pps(plan.max_load_pps))
        }
        Outcome::Unfinished => "the search ended before the bounds were near each other".to_owned(),
        Outcome::TesterLimited(TesterLimit::Unsent) => {
            "limited by the tester: above the lower bound it could not send what was due".to_owned()
        }
        Outcome::TesterLimited(TesterLimit::Invalid) => "above the lower bound the trials stayed invalid".to_owned(),
        Outcome::TesterLimited(TesterLimit::AtMaximum) => match plan.tester_max_pps {
            Some(most) => format!("limited by the tester: it carries {} by itself", pps(most)),
            None => "limited by the tester".to_owned(),
        },
    })
}
