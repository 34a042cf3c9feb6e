//! The search of a row, its confirmation, and what a mix should carry by the results of single sizes.

use super::super::size::{Of, count, lost, slower, spread};
use super::super::words::outcome;
use super::entry::Entry;
use crate::data::plan::Row;
use crate::data::procedures::Results;
use crate::data::procedures::throughput::{ConfirmationView, EstimateView, GoalOfSize, ThroughputView};
use crate::data::{SearchOfSize, Test};
use crate::procedures::estimate::{OfSize, estimate};
use crate::procedures::throughput;
use narrows_model::load::frames::{FrameLoad, FrameTrial};
use narrows_model::run::search::{Goal, GoalResult, Outcome, SearchPlan, TesterLimit};
use narrows_model::words::figures::{float, pps};

pub(super) const ENTRY: Entry = Entry::new(Test::Throughput, fill, |it| it.throughput.search.is_some(), false);

fn fill(of: &Of<'_>, results: &mut Results, _: &mut Vec<String>) {
    results.throughput.search = of.record.search(of.row).map(|found| search(of, found));
    results.throughput.confirmation = confirmation(of);
    results.throughput.estimate = mix(of);
}

/// The estimate for a mix.
fn mix(of: &Of<'_>) -> Option<EstimateView> {
    if of.row.size.is_some() || of.record.searches.is_empty() {
        return None;
    }
    let single = |search: &&SearchOfSize| search.traffic == of.row.traffic;
    let result = |search: &SearchOfSize| {
        let (pps, at_least) = throughput::of_row(of.record, Row { traffic: search.traffic, size: search.size })?;
        Some(OfSize { size: search.size?, pps, at_least })
    };
    let results: Vec<OfSize> = of.record.searches.iter().filter(single).filter_map(result).collect();
    let estimate = estimate(&of.record.plan, of.row.traffic, &results).ok()?;
    let at_least = if estimate.at_least { "; lower bound, as the throughput of a size is" } else { "" };
    Some(EstimateView { rate: of.rate(estimate.pps), method: format!("{}{at_least}", estimate.method) })
}

fn search(of: &Of<'_>, search: &SearchOfSize) -> ThroughputView {
    let it = &search.record;
    let rate = |pps: Option<f64>| pps.map(|pps| of.rate(pps));
    let goal = |goal: &Goal| {
        let result = it.results.iter().find(|result| result.goal == goal.name)?;
        let line = rate(result.lower_pps).and_then(|it| it.of_line).is_some_and(|part| part > 0.9999);
        let unproven = narrows_search::unproven(goal, result, &it.trials);
        let says = unproven.map(|found| found.words(&pps(found.load_pps)));
        let why = says.or_else(|| why(result, &it.plan, line));
        Some(GoalOfSize {
            goal: goal.clone(),
            outcome: result.outcome,
            word: outcome(result, line).to_owned(),
            why: [again(search), why].into_iter().flatten().reduce(|a, b| format!("{a}; {b}")),
            lower: rate(result.lower_pps),
            unproven: rate(unproven.map(|found| found.load_pps)),
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

fn confirmation(of: &Of<'_>) -> Option<ConfirmationView> {
    let test = of.record.plan.tests.throughput.as_ref();
    let planned = test.map_or(0, |test| test.confirm);
    let allowed = test.and_then(|test| test.goals.first()).map_or(0.0, |goal| goal.loss_ratio);
    let trials = of.trials(Test::Confirmation);
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
        load: load.map(|pps| of.rate(pps)),
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

/// That it was searched twice.
fn again(of: &SearchOfSize) -> Option<String> {
    let before = pps(of.not_confirmed_pps?);
    Some(format!("searched again: the repetitions did not confirm the first result, {before}"))
}

/// Why a bound is missing, or whose it is.
fn why(result: &GoalResult, plan: &SearchPlan, is_line: bool) -> Option<String> {
    Some(match result.outcome {
        Outcome::Found => return None,
        Outcome::MaxLoadPasses if is_line => return None,
        Outcome::MinLoadFails => format!("the minimum load, {}, fails", pps(plan.min_load_pps)),
        Outcome::MaxLoadPasses => {
            format!("the maximum load, {}, passes: the device's limit is higher", pps(plan.max_load_pps))
        }
        Outcome::Unfinished => "the search ended before it reached its width".to_owned(),
        Outcome::TesterLimited(TesterLimit::Unsent) => {
            "limited by the tester: above the lower bound it left frames unsent".to_owned()
        }
        Outcome::TesterLimited(TesterLimit::Invalid) => "trials above the lower bound were invalid".to_owned(),
        Outcome::TesterLimited(TesterLimit::AtMaximum) => match plan.tester_max_pps {
            Some(most) => format!("limited by the tester: its calibrated maximum is {}", pps(most)),
            None => "limited by the tester".to_owned(),
        },
    })
}
