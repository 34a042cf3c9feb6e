//! The results of a search: a pure function of the plan and the trials, for a search that is running, ended, or was stored.

use crate::bounds::{Bounds, History};
use crate::classify::{Class, reduce};
use crate::goal::{Agreed, Target};
use narrows_model::run::search::{Goal, GoalResult, LoadTrial, Outcome, SearchMethod, SearchPlan, TesterLimit};

/// How close to the tester's own maximum a result counts as limited by the tester: a qualification is repeatable within
/// one or two percent.
pub const TESTER_REPEATS: f64 = 0.02;

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

/// A load that passed, in fewer trials than its goal asks for when the search ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unproven {
    pub load_pps: f64,
    /// Trials within the goal.
    pub passed: u32,
    /// Trials that failed for nothing but what the tester left unsent: they say nothing of the path.
    pub unsent: u32,
}

impl Unproven {
    /// `25.3 kpps passed 2 of 2 trials …`; `rate`: the load in words.
    pub fn words(&self, rate: &str) -> String {
        let Self { passed, unsent, .. } = self;
        let unsent = match unsent {
            0 => String::new(),
            n => format!(" ({n} more lost nothing, with frames unsent)"),
        };
        format!("not finished: {rate} passed {passed} of {passed} trials{unsent}; the highest rate is not known")
    }
}

/// Where a search ended before any load was proven to pass: the highest load below the one that fails, if there is one, that lost no
/// more than the goal allows in any valid trial. `None` of every other result.
pub fn unproven(goal: &Goal, result: &GoalResult, trials: &[LoadTrial]) -> Option<Unproven> {
    if result.outcome != Outcome::Unfinished || result.lower_pps.is_some() {
        return None;
    }
    let at = |load: f64| {
        let valid = trials.iter().filter(|trial| trial.load_pps == load).filter_map(|trial| reduce(trial).ok());
        let mut found = Unproven { load_pps: load, passed: 0, unsent: 0 };
        for trial in valid {
            match (trial.loss_ratio <= goal.loss_ratio, trial.path_loss_ratio <= goal.loss_ratio) {
                (true, _) => found.passed += 1,
                (false, true) => found.unsent += 1,
                (false, false) => return None,
            }
        }
        (found.passed > 0).then_some(found)
    };
    let below = |load: &f64| result.upper_pps.is_none_or(|upper| *load < upper);
    trials
        .iter()
        .map(|trial| trial.load_pps)
        .filter(below)
        .filter_map(at)
        .max_by(|a, b| a.load_pps.total_cmp(&b.load_pps))
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::run::search::Observation;

    #[test]
    fn a_load_that_passed_each_trial_is_named_although_the_time_was_over() {
        let trial = |load_pps: f64, unsent: u64, lost: u64| {
            let intended = load_pps as u64;
            let sent = intended - unsent;
            let seen = Observation { intended, offered: sent, sent, received: sent - lost, ..Observation::default() };
            LoadTrial { load_pps, duration_ms: 1_000, ended_at_ms: 0, seen }
        };
        let trials = [
            trial(100_000.0, 0, 74_671),
            trial(25_080.0, 0, 0),
            trial(25_324.0, 0, 0),
            trial(25_324.0, 3, 0),
            trial(25_324.0, 0, 0),
            trial(25_447.0, 0, 118),
            trial(25_447.0, 171, 0),
        ];
        let plan = SearchPlan { goals: vec![Goal::ndr()], ..SearchPlan::between(100.0, 100_000.0) };
        let found = results(&plan, &trials);
        assert_eq!((found[0].outcome, found[0].lower_pps), (Outcome::Unfinished, None));
        let it = unproven(&plan.goals[0], &found[0], &trials).expect("25,324/s");
        assert_eq!(it, Unproven { load_pps: 25_324.0, passed: 2, unsent: 1 });
        let says = it.words("25.3 kpps");
        assert!(says.starts_with("not finished: 25.3 kpps passed 2 of 2 trials"), "{says}");
        assert_eq!(unproven(&plan.goals[0], &found[0], &trials[..1]), None, "nothing passed");
    }
}
