//! Targets: the requirements on a load at one stage of the search for a goal. The last target of a goal is the goal itself;
//! the earlier ones are wider and need shorter sums of trials, so that long trials are made only near the result.

use narrows_model::run::search::{Goal, SearchMethod, SearchPlan};

/// The share of a target's width that steps and splits aim at, so that rounded loads stay within it.
const AIM: f64 = 0.97;

/// The requirements on a load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Target {
    /// A trial above it is a high-loss trial.
    pub loss_ratio: f64,
    /// The maximum share of high-loss trials in the sum, for a load that passes.
    pub exceed_ratio: f64,
    /// A shorter trial is a short trial; new trials are of this duration.
    pub trial_ms: u64,
    /// Sum of effective durations that decides a load.
    pub sum_ms: f64,
    /// The final `ln(upper ÷ lower)`: doubling it doubles the distance at every load.
    pub log_width: f64,
}

impl Target {
    pub fn last(goal: &Goal) -> Self {
        Self {
            loss_ratio: goal.loss_ratio,
            exceed_ratio: goal.exceed_ratio,
            trial_ms: goal.final_trial_ms,
            sum_ms: goal.duration_sum_ms as f64,
            log_width: -f64::ln(1.0 - goal.width),
        }
    }

    /// The goal with one deciding trial per load.
    pub fn single(goal: &Goal) -> Self {
        Self { exceed_ratio: 0.0, sum_ms: goal.final_trial_ms as f64, ..Self::last(goal) }
    }

    /// The targets of a goal from the coarsest to the goal itself: sums in a geometric sequence from the initial
    /// trial to the duration sum, each twice as wide as the next. Trials are as long as the sum, up to the final
    /// duration. Where a second witness may shorten the sum, all are as wide as the goal: one trial per load first, since its loads are
    /// likely those of the result.
    pub fn chain(plan: &SearchPlan, goal: &Goal) -> Vec<Self> {
        let (last, preceding) = (Self::last(goal), plan.preceding_targets);
        if plan.hint.is_some() || plan.agreed_sum_ms.is_some() {
            let one = Self { sum_ms: last.trial_ms as f64, ..last };
            let agreed = Agreed::of(plan, goal).map(|agreed| agreed.target);
            return [Some(one), agreed, Some(last)].into_iter().flatten().collect();
        }
        let shortest_ms = goal.initial_trial_ms as f64;
        let mut targets: Vec<Self> = (1..=preceding)
            .rev()
            .map(|back| {
                let part = f64::from(back) / f64::from(preceding);
                let sum_ms = (last.sum_ms * (shortest_ms / last.sum_ms).powf(part)).max(shortest_ms);
                let longest_ms = goal.final_trial_ms as f64;
                // Between the initial and the final duration, which are whole milliseconds: nothing is
                // truncated.
                let trial_ms = sum_ms.min(longest_ms).round() as u64;
                Self { trial_ms, sum_ms, log_width: last.log_width * 2.0_f64.powf(f64::from(back)), ..last }
            })
            .collect();
        targets.push(last);
        targets
    }

    /// The deciding target for the plan's method, whatever a profile saw.
    pub fn deciding(plan: &SearchPlan, goal: &Goal) -> Self {
        match plan.method {
            SearchMethod::Mlr => Self::last(goal),
            SearchMethod::Bisection | SearchMethod::LossCurve { .. } => Self::single(goal),
        }
    }

    /// The distance of two loads in widths.
    pub fn widths(&self, lower: f64, upper: f64) -> f64 {
        (upper / lower).ln() / self.log_width
    }

    /// Whether two loads are within the width, with a small tolerance for the logarithm.
    pub fn narrow(&self, lower: f64, upper: f64) -> bool {
        self.widths(lower, upper) <= 1.0 + 1e-9
    }

    /// The step that leads to bounds within the width.
    pub fn step(&self) -> f64 {
        self.log_width * AIM
    }

    /// A load between two bounds that are too far apart. The interval is split where the fewest trials are
    /// expected: one part is a power of two of the width, so that halving leaves no remainder.
    pub fn split(&self, lower: f64, upper: f64) -> f64 {
        let steps = (upper / lower).ln() / self.step();
        if steps <= 2.0 {
            return (lower * upper).sqrt();
        }
        let half = 2.0_f64.powf(steps.log2().ceil() - 1.0);
        let piece = if steps <= 1.5 * half { half / 2.0 } else { half };
        lower * (piece * self.step()).exp()
    }

    /// A load rounded to the digits that the width justifies, strictly between two others.
    pub fn rounded(&self, load: f64, above: f64, below: f64) -> f64 {
        let exponent = (load * self.log_width / 50.0).log10().floor();
        let round = if exponent >= 0.0 {
            let unit = 10.0_f64.powf(exponent);
            (load / unit).round() * unit
        } else {
            let parts = 10.0_f64.powf(-exponent);
            (load * parts).round() / parts
        };
        if above < round && round < below { round } else { load }
    }
}

/// A target with a shorter duration sum, which decides a goal where its bounds agree with a second witness.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Agreed {
    pub target: Target,
    witness: Witness,
}

/// Who says where the limit is, beside the trials at the bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Witness {
    /// A profile, between these loads.
    Profile([f64; 2]),
    /// What passes of a load somewhat above.
    Above,
}

impl Agreed {
    /// That of a goal; `None` where its own sum is to decide.
    pub fn of(plan: &SearchPlan, goal: &Goal) -> Option<Self> {
        let last = Target::last(goal);
        let profile =
            plan.hint.and_then(|hint| Some((hint.agreed_sum_ms?, hint.range(goal.loss_ratio, goal.final_trial_ms))));
        let (sum_ms, witness) = match profile {
            _ if plan.method != SearchMethod::Mlr => return None,
            Some((sum_ms, range)) => (sum_ms, Witness::Profile(range)),
            None => (plan.agreed_sum_ms?, Witness::Above),
        };
        let sum_ms = Some(sum_ms.max(last.trial_ms) as f64).filter(|ms| *ms < last.sum_ms)?;
        Some(Self { target: Target { sum_ms, ..last }, witness })
    }

    /// Whether the limit may lie between these bounds. `passed`: what passed of the lowest load that was tried from this one on.
    pub fn holds(&self, lower: Option<f64>, upper: Option<f64>, passed: impl FnOnce(f64) -> Option<f64>) -> bool {
        let width = self.target.log_width.exp();
        let range = match self.witness {
            Witness::Profile(range) => range,
            Witness::Above => {
                let Some(pps) = upper.and_then(|upper| passed(upper * width)) else { return false };
                let limit = pps / (1.0 - self.target.loss_ratio);
                [limit / width, limit * width]
            }
        };
        lower.is_none_or(|lower| lower <= range[1]) && upper.is_none_or(|upper| range[0] <= upper)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_grow_and_widths_halve_towards_the_goal() {
        let plan = SearchPlan::between(1_000.0, 1e6);
        let chain = Target::chain(&plan, &Goal::rfc2544());
        let trials: Vec<u64> = chain.iter().map(|target| target.trial_ms).collect();
        // √(1 s × 60 s) = 7.746 s
        assert_eq!(trials, [1_000, 7_746, 60_000]);
        assert!((chain[0].log_width / chain[2].log_width - 4.0).abs() < 1e-12);
        assert_eq!(chain[2], Target::last(&Goal::rfc2544()));
        let sums = |plan: &SearchPlan| -> Vec<f64> {
            Target::chain(plan, &Goal::ndr()).iter().map(|target| target.sum_ms.round()).collect()
        };
        assert_eq!(sums(&plan), [1_000.0, 3_317.0, 11_000.0]);
        assert_eq!(sums(&SearchPlan { preceding_targets: 0, ..plan.clone() }), [11_000.0]);
        assert_eq!(sums(&plan.from_profile([1e4, 1e4], 0.0, true)), [1_000.0, 3_000.0, 11_000.0]);
    }

    #[test]
    fn a_split_leaves_what_halves_without_a_remainder() {
        let target = Target::last(&Goal::ndr());
        let at = |steps: f64| 1_000.0 * (steps * target.step()).exp();
        for (steps, piece) in [(1.4, 0.7), (1.9, 0.95), (2.2, 1.0), (2.9, 1.0), (3.1, 2.0), (3.9, 2.0), (7.0, 4.0)] {
            let load = target.split(1_000.0, at(steps));
            assert!((load - at(piece)).abs() < 1e-6, "{steps} steps: {load}, not {}", at(piece));
        }
    }

    #[test]
    fn loads_are_rounded_to_the_width() {
        let target = Target::last(&Goal::ndr());
        assert_eq!(target.rounded(1_234_567.89, 1e6, 2e6), 1_234_600.0);
        assert_eq!(target.rounded(14.123_456, 1.0, 20.0), 14.123);
        assert_eq!(target.rounded(1_234_567.89, 1_234_567.0, 1_234_568.0), 1_234_567.89, "not onto a bound");
    }
}
