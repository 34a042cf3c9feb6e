//! The view of a search from its record.

use narrows_model::run::report::RunView;
use narrows_model::run::search::{GoalResult, LossPoint, Outcome, SearchMethod, SearchPlan, SearchRecord, TesterLimit};
use narrows_model::run::search_report::{BoundsAt, GoalView, LoadUnit, SCHEMA, SearchReport};
use narrows_model::{Flow, Run, run::RunPlan};
use narrows_search::Search;
use std::time::Duration;

/// The search of a run; `None` where it holds none.
#[must_use]
pub fn of_run(run: &Run) -> Option<SearchReport> {
    let (record, RunPlan::Search(order)) = (run.search.as_ref()?, &run.plan) else { return None };
    let context = Context {
        flow: order.load.flows().first().copied()?,
        unit: order.unit,
        history: history(record),
        curve: curve(record),
    };
    Some(build(record, context, run.into()))
}

/// Where the goals stood after each trial of a record: the search, told the same again.
fn history(record: &SearchRecord) -> Vec<BoundsAt> {
    let Ok(mut search) = Search::new(&record.plan) else { return Vec::new() };
    let mut history = Vec::new();
    for trial in &record.trials {
        let at = Duration::from_millis(trial.ended_at_ms);
        let _ = search.next(at.saturating_sub(Duration::from_millis(trial.duration_ms)));
        if search.observe(trial.seen.clone(), at).is_err() {
            break;
        }
        history.push(BoundsAt { at_ms: trial.ended_at_ms, bounds: search.bounds() });
    }
    history
}

/// The loss at each load of a record.
fn curve(record: &SearchRecord) -> Vec<LossPoint> {
    match record.plan.method {
        SearchMethod::LossCurve { .. } => narrows_search::loss_curve(&record.plan, &record.trials),
        _ => Vec::new(),
    }
}

/// Context that the record does not hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Context {
    /// The direction of the load.
    pub flow: Flow,
    /// The packet of the load.
    pub unit: LoadUnit,
    /// The bounds of the goals after each trial.
    pub history: Vec<BoundsAt>,
    /// The points of a loss curve, derived from the record.
    pub curve: Vec<LossPoint>,
}

/// The view of a search.
#[must_use]
pub fn build(record: &SearchRecord, context: Context, run: RunView) -> SearchReport {
    let Context { flow, unit, history, curve } = context;
    let load = |pps: Option<f64>| pps.map(|pps| unit.load(pps));
    let goals = record
        .plan
        .goals
        .iter()
        .filter_map(|goal| {
            let result = record.results.iter().find(|result| result.goal == goal.name)?;
            Some(GoalView {
                goal: goal.clone(),
                result: result.clone(),
                lower: load(result.lower_pps),
                upper: load(result.upper_pps),
                conditional_throughput: load(result.conditional_throughput_pps),
                why: why(result, &record.plan, &unit),
            })
        })
        .collect();
    let mut remarks = Vec::new();
    if record.plan.tester_max_pps.is_none() {
        remarks.push(
            "the tester was not qualified: what it carries by itself is not known, and may be what was found"
                .to_owned(),
        );
    }
    SearchReport {
        schema: SCHEMA.to_owned(),
        run,
        flow,
        unit,
        plan: record.plan.clone(),
        trials: record.trials.clone(),
        history,
        goals,
        curve,
        remarks,
    }
}

/// Why a bound is missing, or what set it.
fn why(result: &GoalResult, plan: &SearchPlan, unit: &LoadUnit) -> Option<String> {
    let load = |pps: f64| {
        format!(
            "{} ({})",
            narrows_model::words::figures::pps(pps),
            narrows_model::words::units::bps(unit.load(pps).payload_bps)
        )
    };
    Some(match result.outcome {
        Outcome::Found => return None,
        Outcome::MinLoadFails => format!("the lowest load, {}, fails already", load(plan.min_load_pps)),
        Outcome::MaxLoadPasses => {
            format!("the highest load, {}, passes: the limit is above it", load(plan.max_load_pps))
        }
        Outcome::Unfinished => "the search ended before the bounds were near each other".to_owned(),
        Outcome::TesterLimited(TesterLimit::Unsent) => {
            "limited by the tester: above the lower bound it could not send what was due".to_owned()
        }
        Outcome::TesterLimited(TesterLimit::Invalid) => {
            "limited by the tester: above the lower bound its trials stayed invalid".to_owned()
        }
        Outcome::TesterLimited(TesterLimit::AtMaximum) => match plan.tester_max_pps {
            Some(max) => format!("limited by the tester: it carries {} by itself", load(max)),
            None => "limited by the tester".to_owned(),
        },
    })
}
