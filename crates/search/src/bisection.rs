//! Plain bisection, as RFC 2544 throughput (section 26.1) is commonly automated: one trial of the final duration per load
//! decides; a load that passes implies that all below pass, a load that fails that all above fail. A single hiccup misleads
//! it permanently; it is included as a known preset and for comparison.

use crate::bounds::History;
use crate::goal::Target;
use crate::strategy::{Probe, Strategy};
use narrows_model::run::search::{GoalBounds, SearchPlan};

/// The strategy; its only state is the trials.
#[derive(Debug)]
pub struct Bisection {
    goals: Vec<(String, Target)>,
    min: f64,
    max: f64,
    fail_fast: bool,
}

impl Bisection {
    /// One goal after the other, in plan order; a load that was tried for one is not tried again for another of the
    /// same duration.
    pub fn new(plan: &SearchPlan) -> Self {
        Self {
            goals: plan.goals.iter().map(|goal| (goal.name.clone(), Target::single(goal))).collect(),
            min: plan.min_load_pps,
            max: plan.max_load_pps,
            fail_fast: plan.fail_fast,
        }
    }

    /// From the highest load down; the lowest is tried only when nothing above it passed.
    fn load(&self, history: &History, target: &Target) -> Option<f64> {
        let bounds = history.bounds(target);
        if bounds.settled(target, self.min, self.max) {
            return None;
        }
        let Some(upper) = bounds.upper else { return Some(self.max) };
        let lower = bounds.lower.unwrap_or(self.min);
        Some(if bounds.lower.is_none() && target.narrow(lower, upper) {
            self.min
        } else {
            target.rounded(f64::midpoint(lower, upper), lower, upper)
        })
    }
}

impl Strategy for Bisection {
    fn propose(&mut self, history: &History) -> Option<Probe> {
        let fails = |target: &Target| history.bounds(target).upper.is_some_and(|upper| upper <= self.min);
        if self.fail_fast && self.goals.iter().any(|(_, target)| fails(target)) {
            return None;
        }
        self.goals.iter().find_map(|(_, target)| {
            self.load(history, target).map(|load_pps| Probe { load_pps, duration_ms: target.trial_ms })
        })
    }

    fn bounds(&self, history: &History) -> Vec<GoalBounds> {
        let of = |(name, target): &(String, Target)| {
            let bounds = history.bounds(target);
            GoalBounds {
                goal: name.clone(),
                lower_pps: bounds.lower,
                upper_pps: bounds.upper,
                target: 1,
                targets: 1,
                settled: bounds.settled(target, self.min, self.max),
            }
        };
        self.goals.iter().map(of).collect()
    }
}
