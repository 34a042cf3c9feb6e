//! The results of a search: a pure function of the plan and the trials, for a search that is running, ended, or was stored.

use crate::bounds::{Bounds, History};
use crate::classify::Class;
use crate::goal::{Agreed, Target};
use narrows_model::run::search::{Goal, GoalResult, LoadTrial, Outcome, SearchMethod, SearchPlan, TesterLimit};

/// How close to the tester's own maximum a result counts as limited by the tester: a qualification is repeatable within
/// one or two percent.
pub(crate) const TESTER_REPEATS: f64 = 0.02;

/// The result of each goal of the plan, in its order; none for a loss curve.
pub fn results(plan: &SearchPlan, trials: &[LoadTrial]) -> Vec<GoalResult> {
    of_history(plan, &History::of(trials, plan.invalid_retries))
}

/// The same from trials by load.
pub(crate) fn of_history(plan: &SearchPlan, history: &History) -> Vec<GoalResult> {
    if matches!(plan.method, SearchMethod::LossCurve { .. }) {
        return Vec::new();
    }
    plan.goals.iter().map(|goal| result(plan, goal, history)).collect()
}

fn result(plan: &SearchPlan, goal: &Goal, history: &History) -> GoalResult {
    let agreed = Agreed::of(plan, goal)
        .and_then(|agreed| Some((agreed.target, history.agreed(&agreed, plan.min_load_pps, plan.max_load_pps)?)));
    let (target, bounds) = agreed.unwrap_or_else(|| {
        let target = Target::deciding(plan, goal);
        (target, history.bounds(&target))
    });
    GoalResult {
        goal: goal.name.clone(),
        outcome: outcome(plan, &target, history, bounds),
        lower_pps: bounds.lower,
        upper_pps: bounds.upper,
        conditional_throughput_pps: bounds.lower.map(|lower| history.conditional_throughput(&target, lower)),
    }
}

fn outcome(plan: &SearchPlan, target: &Target, history: &History, bounds: Bounds) -> Outcome {
    let beyond_tester =
        |load: f64| plan.tester_max_pps.is_some_and(|tester_max| load >= tester_max * (1.0 - TESTER_REPEATS));
    if !bounds.settled(target, plan.min_load_pps, plan.max_load_pps) {
        return Outcome::Unfinished;
    }
    match (bounds.lower, bounds.upper) {
        (_, Some(upper)) if history.blocked(upper) => Outcome::TesterLimited(TesterLimit::Invalid),
        (_, Some(upper)) if history.class_of_path(target, upper) != Class::Upper => {
            Outcome::TesterLimited(TesterLimit::Unsent)
        }
        (_, Some(load)) | (Some(load), None) if beyond_tester(load) => Outcome::TesterLimited(TesterLimit::AtMaximum),
        (Some(_), Some(_)) => Outcome::Found,
        (None, _) => Outcome::MinLoadFails,
        (Some(_), None) => Outcome::MaxLoadPasses,
    }
}
