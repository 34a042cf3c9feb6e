//! The view of a search from its record.

use narrows_diagnose::evidence::profile::PathProfile;
use narrows_model::run::report::{PathProfileView, RunView};
use narrows_model::run::search::{
    Goal, GoalResult, LoadTrial, LossPoint, Outcome, SearchMethod, SearchPlan, SearchRecord, Spent, TesterLimit,
};
use narrows_model::run::search_report::{BoundsAt, GoalView, LoadUnit, SCHEMA, SearchReport};
use narrows_model::words::units;
use narrows_model::{Flow, Run, run::RunPlan};
use narrows_search::{Search, Step};
use std::time::Duration;

/// The search of a run; `None` where it holds none.
pub fn of_run(run: &Run) -> Option<SearchReport> {
    let (record, RunPlan::Search(order)) = (run.search.as_ref()?, &run.plan) else { return None };
    let flow = order.load.flows().first().copied()?;
    let context = Context {
        flow,
        path_profile: PathProfile::of(run, 0, flow).as_ref().map(PathProfile::view),
        unit: order.unit,
        sizes: Some(order.load.sizes.list()).filter(|sizes| sizes.len() > 1).unwrap_or_default().to_vec(),
        history: history(record),
        curve: curve(record),
    };
    Some(build(record, context, run.into()))
}

/// The bounds of the goals after each trial of a record, by replaying the search.
fn history(record: &SearchRecord) -> Vec<BoundsAt> {
    let Ok(mut search) = Search::new(&record.plan) else { return Vec::new() };
    let mut history = Vec::new();
    for trial in &record.trials {
        let at = Duration::from_millis(trial.ended_at_ms);
        // Another version may have chosen other loads.
        let step = search.next(at.saturating_sub(Duration::from_millis(trial.duration_ms)));
        let made = Step::Trial { load_pps: trial.load_pps, duration: Duration::from_millis(trial.duration_ms) };
        if step != made || search.observe(trial.seen.clone(), at).is_err() {
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
    /// The sizes of a mix.
    pub sizes: Vec<u32>,
    /// The bounds of the goals after each trial.
    pub history: Vec<BoundsAt>,
    /// The points of a loss curve, derived from the record.
    pub curve: Vec<LossPoint>,
    /// The profile of the path before the first trial.
    pub path_profile: Option<PathProfileView>,
}

pub fn build(record: &SearchRecord, context: Context, run: RunView) -> SearchReport {
    let Context { flow, unit, sizes, history, curve, path_profile } = context;
    let load = |pps: Option<f64>| pps.map(|pps| unit.load(pps));
    let sustained = sustained_pps(record);
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
                why: match (
                    unproven(goal, result, (record, &history), &unit).or_else(|| why(result, &record.plan, &unit)),
                    queued(goal, result, record, (&unit, sustained)),
                ) {
                    (Some(why), Some(queued)) => Some(format!("{why}; {queued}")),
                    (why, queued) => why.or(queued),
                },
            })
        })
        .collect();
    let mut remarks = Vec::new();
    if record.plan.tester_max_pps.is_none() {
        remarks.push("the tester was not calibrated: the result may be its own limit".to_owned());
    }
    SearchReport {
        schema: SCHEMA.to_owned(),
        run,
        flow,
        unit,
        sizes,
        path_profile,
        plan: record.plan.clone(),
        trials: record.trials.clone(),
        history,
        goals,
        curve,
        remarks,
        spent: spent(record),
    }
}

/// What took time: what was recorded, then the trials, with what they had around their loads.
fn spent(record: &SearchRecord) -> Vec<Spent> {
    let sum = |of: fn(&LoadTrial) -> u64| record.trials.iter().map(of).fold(0, u64::saturating_add);
    let load_ms = sum(|trial| trial.duration_ms);
    let whole_ms = sum(|trial| trial.seen.effective_ms.max(trial.duration_ms));
    let around_ms = whole_ms.saturating_sub(load_ms);
    let of_trials =
        [("load of the trials", load_ms), ("set-up of the trials, and waiting for their last packets", around_ms)];
    let of_trials = of_trials.map(|(what, ms)| Spent { what: what.to_owned(), ms });
    record.spent.iter().cloned().chain(of_trials).collect()
}

/// A lower bound above what the path sustains: in its trial the excess waited in a queue, and arrived late.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exceeded {
    /// At most what the path sustains, in packets a second: what a bucket of tokens let pass arrived without a delay.
    pub sustained_pps: f64,
    /// By so much the one-way delay grew.
    pub grew_us: u64,
    /// How long the trial was.
    pub trial_ms: u64,
}

/// Whether a goal's lower bound exceeds what the path sustains by more than half of its width.
pub fn exceeded(goal: &Goal, result: &GoalResult, record: &SearchRecord) -> Option<Exceeded> {
    let lower = result.lower_pps?;
    // What counts as queued is no excess that was overlooked.
    let at_lower =
        |trial: &&LoadTrial| trial.load_pps == lower && trial.seen.invalid.is_none() && trial.seen.queued == 0;
    // The trial in which the delay grew least: a moment's pause of a host is not in all of them.
    let growth =
        |trial: &LoadTrial| Some((trial.seen.delay_growth_us? as f64 / 1e3 / trial.duration_ms as f64, trial.clone()));
    let grew = record.trials.iter().filter(at_lower).filter_map(growth).min_by(|a, b| a.0.total_cmp(&b.0));
    let (growth, trial) = grew.filter(|(growth, _)| *growth > 0.51 * goal.width)?;
    let arrived = trial.seen.received as f64 / trial.seen.sent.max(1) as f64;
    Some(Exceeded {
        sustained_pps: lower * arrived / (1.0 + growth),
        grew_us: (growth * trial.duration_ms as f64 * 1e3).round() as u64,
        trial_ms: trial.duration_ms,
    })
}

/// What the path sustains by the trials of all goals: it is one path, and each of them says at most how much.
fn sustained_pps(record: &SearchRecord) -> Option<f64> {
    let goal = |result: &GoalResult| record.plan.goals.iter().find(|goal| goal.name == result.goal);
    let of = |result: &GoalResult| Some(exceeded(goal(result)?, result, record)?.sustained_pps);
    record.results.iter().filter_map(of).min_by(f64::total_cmp)
}

/// By how much the lower bound may exceed what the path sustains.
fn queued(
    goal: &Goal,
    result: &GoalResult,
    record: &SearchRecord,
    (unit, sustained_pps): (&LoadUnit, Option<f64>),
) -> Option<String> {
    let lower = result.lower_pps?;
    if let Some((Exceeded { grew_us, trial_ms, .. }, pps)) = exceeded(goal, result, record).zip(sustained_pps) {
        let sustained = unit.load(pps);
        return Some(format!(
            "above what the path sustains (about {}, {} on the wire): in {} the one-way delay grew by {} because a queue absorbed the \
             excess; use longer trials (--duration)",
            units::bps(sustained.payload_bps),
            units::bps(sustained.wire_bps),
            units::micros(trial_ms.saturating_mul(1000)),
            units::micros(grew_us)
        ));
    }
    let hint = record.plan.hint?;
    let [_, most] = hint.range(goal.loss_ratio, goal.final_trial_ms);
    let trials = format!("trials of {}", units::micros(goal.final_trial_ms.saturating_mul(1000)));
    // What waits in a queue counts where the plan says so.
    let hides = if record.plan.sustained { "bucket" } else { "queue or bucket" };
    if lower > most {
        let [least, most] = hint.interval_pps.map(|pps| units::bps(unit.load(pps).payload_bps));
        return Some(format!(
            "above the profiled capacity ({least} to {most} of payload): {trials} may hide the excess in the {hides}; \
            use longer trials (--duration)"
        ));
    }
    let hidden = hint.hidden(goal.final_trial_ms);
    (hidden > 0.51 * goal.width).then(|| {
        let (us, enough_ms) = (hint.buffer_us.round() as u64, hint.filling_ms(goal.width));
        format!(
            "{trials} may hide an excess of {} in the profiled {hides} of {}; use trials of {} (--duration)",
            units::percent(hidden),
            units::micros(us),
            units::micros(enough_ms.div_ceil(1000) * 1_000_000)
        )
    })
}

/// `25.3 kpps (12.3 Mbit/s)`.
fn load_words(pps: f64, unit: &LoadUnit) -> String {
    format!("{} ({})", narrows_model::words::figures::pps(pps), units::bps(unit.load(pps).payload_bps))
}

/// What is known of a search that ended before any load was proven: the bounds of its shorter trials, or what passed so far.
fn unproven(
    goal: &Goal,
    result: &GoalResult,
    (record, history): (&SearchRecord, &[BoundsAt]),
    unit: &LoadUnit,
) -> Option<String> {
    let words = |pps: f64| load_words(pps, unit);
    let so_far = history.last().and_then(|it| it.bounds.iter().find(|bounds| bounds.goal == goal.name));
    let found = narrows_search::unproven(goal, result, &record.trials);
    let upper = so_far
        .and_then(|it| it.upper_pps)
        .filter(|_| result.outcome == Outcome::Unfinished && result.lower_pps.is_none());
    let Some(upper) = upper else { return found.map(|it| it.words(&words(it.load_pps))) };
    let lower = so_far.and_then(|it| it.lower_pps).or(found.map(|it| it.load_pps).filter(|load| *load < upper));
    let lower = lower.map_or_else(|| "none is known to pass".to_owned(), |lower| format!("{} passed", words(lower)));
    Some(format!("not finished: in trials so far {lower} and {} failed; the highest rate is not known", words(upper)))
}

/// Why a bound is missing, or what set it.
fn why(result: &GoalResult, plan: &SearchPlan, unit: &LoadUnit) -> Option<String> {
    let load = |pps: f64| load_words(pps, unit);
    Some(match result.outcome {
        Outcome::Found => return None,
        Outcome::MinLoadFails => format!("the minimum load, {}, fails", load(plan.min_load_pps)),
        Outcome::MaxLoadPasses => {
            format!("the maximum load, {}, passes: the limit is higher", load(plan.max_load_pps))
        }
        Outcome::Unfinished => "the search ended before it reached its width".to_owned(),
        Outcome::TesterLimited(TesterLimit::Unsent) => {
            "limited by the tester: above the lower bound it left frames unsent".to_owned()
        }
        Outcome::TesterLimited(TesterLimit::Invalid) => {
            "limited by the tester: trials above the lower bound were invalid".to_owned()
        }
        Outcome::TesterLimited(TesterLimit::AtMaximum) => match plan.tester_max_pps {
            Some(max) => format!("limited by the tester: its calibrated maximum is {}", load(max)),
            None => "limited by the tester".to_owned(),
        },
    })
}
