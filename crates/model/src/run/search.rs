//! The search for the highest load within a loss goal: what is sought, each trial as it was seen, and what follows from
//! it. Loads are datagrams (or frames) a second in one direction. The trials are the raw data; results are derived from
//! the plan and the trials, so that they can be derived again. Words as in draft-ietf-bmwg-mlrsearch-15 (RFC 9971) and
//! RFC 2285.

use crate::load::kind::{within, within_if};
pub use crate::run::search_trial::{LoadTrial, Observation, TesterLimit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What counts as passing a load, and how surely it must be known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Goal {
    /// How reports call it; each goal of a plan has its own.
    pub name: String,
    /// A trial with a greater loss ratio is a high-loss trial; from 0 to below 1.
    pub loss_ratio: f64,
    /// The part of the duration sum that may be high-loss trials at a load that still passes; from 0 to below 1.
    pub exceed_ratio: f64,
    /// A shorter trial alone does not make a load pass.
    pub final_trial_ms: u64,
    /// Effective durations of trials at one load after which it is decided in any case.
    pub duration_sum_ms: u64,
    /// The shortest trial used for this goal, with which the search begins.
    pub initial_trial_ms: u64,
    /// The search ends when `(upper − lower) ÷ upper` is not greater.
    pub width: f64,
}

impl Goal {
    fn named(name: &str, loss_ratio: f64, exceed_ratio: f64, durations_ms: [u64; 3]) -> Self {
        let [initial_trial_ms, final_trial_ms, duration_sum_ms] = durations_ms;
        Self {
            name: name.to_owned(),
            loss_ratio,
            exceed_ratio,
            final_trial_ms,
            duration_sum_ms,
            initial_trial_ms,
            width: 0.005,
        }
    }

    /// Non-drop rate: no loss in more than half of the trials of a second, up to eleven of them.
    pub fn ndr() -> Self {
        Self::named("NDR", 0.0, 0.5, [1_000, 1_000, 11_000])
    }

    /// Partial drop rate: at most 0.5 % lost in more than half of the trials of a second, up to eleven of them.
    pub fn pdr() -> Self {
        Self::named("PDR", 0.005, 0.5, [1_000, 1_000, 11_000])
    }

    /// Throughput as in RFC 2544, section 26.1: no loss in one trial of a minute.
    pub fn rfc2544() -> Self {
        Self::named("RFC 2544", 0.0, 0.0, [1_000, 60_000, 60_000])
    }

    /// The goal with trials of this length, decided after trials of `duration_sum_ms` at one load.
    pub fn timed(self, trial_ms: u64, duration_sum_ms: u64) -> Self {
        Self {
            final_trial_ms: trial_ms,
            initial_trial_ms: self.initial_trial_ms.min(trial_ms),
            duration_sum_ms: duration_sum_ms.max(trial_ms),
            ..self
        }
    }

    /// Like ETSI GS NFV-TST 009: no loss in one of two trials of a minute.
    pub fn tst009() -> Self {
        Self::named("TST009", 0.0, 0.5, [1_000, 60_000, 120_000])
    }

    /// The goal of a plan's word.
    pub fn by_name(word: &str) -> Option<Self> {
        Some(match word {
            "ndr" => Self::ndr(),
            "pdr" => Self::pdr(),
            "rfc2544" => Self::rfc2544(),
            "tst009" => Self::tst009(),
            _ => return None,
        })
    }
}

/// How loads are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum SearchMethod {
    /// Multiple loss ratio search: several trials a load, all goals at once, short trials first.
    #[default]
    Mlr,
    /// Plain bisection as RFC 2544 is commonly automated: one trial of the final duration a load, which decides. The
    /// exceed ratio and the duration sum of the goals have no meaning here.
    Bisection,
    /// Loss at falling loads (RFC 2544, section 26.3): from the highest load down until two trials in a row lose
    /// nothing.
    LossCurve {
        /// By which part of the highest load the next one is lower; the RFC allows 0.1 and less.
        step: f64,
        /// Trial duration.
        trial_ms: u64,
    },
}

/// One search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchPlan {
    /// How loads are chosen.
    pub method: SearchMethod,
    /// No lower load is tried. High enough that losses at it mean something.
    pub min_load_pps: f64,
    /// No higher load is tried; the 100 % of a loss curve.
    pub max_load_pps: f64,
    /// What is sought, all in the same search; not used by a loss curve.
    pub goals: Vec<Goal>,
    /// A trial that would end later is not begun.
    pub max_search_ms: u64,
    /// The most trials.
    pub max_trials: u32,
    /// The highest load that the tester itself was seen to carry without loss, over loopback or with the device left
    /// out. `None`: not qualified.
    pub tester_max_pps: Option<f64>,
    /// Whether a goal that fails at the lowest load ends the search for all.
    pub fail_fast: bool,
    /// Coarser searches with shorter sums before the final one of each goal, each twice as wide as the next.
    pub preceding_targets: u32,
    /// By how much a step grows when one into the unknown did not find the other bound.
    pub expansion: f64,
    /// How often an invalid trial is repeated before its load counts as beyond the tester.
    pub invalid_retries: u32,
    /// The capacity that a path profile saw; `None`: the search starts at the highest load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<CapacityHint>,
    /// Whether what a queue took in counts as not forwarded: a load passes only if the path keeps up with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sustained: bool,
    /// Without a capacity of a profile: the duration sum that decides a load where the result agrees with what passed of a load somewhat
    /// above; `None`: that of the goal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreed_sum_ms: Option<u64>,
}

/// The capacity that a path profile saw, in the unit of a search. Only a hint: the trials decide.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapacityHint {
    /// Packets per second that the path sustains: the least and the most that the profile allows.
    pub interval_pps: [f64; 2],
    /// What a queue or a token bucket takes in above the capacity, in microseconds at the capacity, as far as the profile saw it.
    pub buffer_us: f64,
    /// The duration sum that decides a load where the result agrees with the profile; `None`: that of the goal.
    pub agreed_sum_ms: Option<u64>,
}

impl CapacityHint {
    /// The part of the capacity by which a load may exceed it in a trial of this length without loss: the excess waits in the queue.
    pub fn hidden(&self, trial_ms: u64) -> f64 {
        self.buffer_us / 1e3 / trial_ms.max(1) as f64
    }

    /// The trial length in which an excess of half the width fills the queue, milliseconds.
    pub fn filling_ms(&self, width: f64) -> u64 {
        (self.buffer_us / 1e3 / (width / 2.0)).ceil() as u64
    }

    /// The loads at which trials of this length can meet their limit for a loss ratio, if the profile is right.
    pub fn range(&self, loss_ratio: f64, trial_ms: u64) -> [f64; 2] {
        let [least, most] = self.interval_pps.map(|pps| pps / (1.0 - loss_ratio));
        [least, most * (1.0 + self.hidden(trial_ms))]
    }
}

impl SearchPlan {
    /// The most goals.
    pub const MAX_GOALS: usize = 16;
    /// The longest trial.
    pub const LONGEST_TRIAL_MS: u64 = 24 * 3600 * 1000;
    /// The longest search.
    pub const LONGEST_MS: u64 = 14 * 24 * 3600 * 1000;
    /// The most trials of a search.
    pub const MAX_TRIALS: u32 = 100_000;

    /// NDR and PDR together, for someone who waits for them: about half a minute on a quiet path, five minutes at most.
    pub fn between(min_load_pps: f64, max_load_pps: f64) -> Self {
        Self {
            method: SearchMethod::Mlr,
            min_load_pps,
            max_load_pps,
            goals: vec![Goal::ndr(), Goal::pdr()],
            max_search_ms: 300_000,
            max_trials: 1_000,
            tester_max_pps: None,
            fail_fast: false,
            preceding_targets: 2,
            expansion: 2.0,
            invalid_retries: 4,
            hint: None,
            sustained: false,
            agreed_sum_ms: None,
        }
    }

    /// The growth of the delay, as a part of a trial, from which on its queue counts: two thirds of the half width by which loads are set
    /// beside the limit, since a host's pauses make it larger only; at least what two clocks may drift apart. `None`: a queue does not
    /// count.
    pub fn least_growth(&self) -> Option<f64> {
        const CLOCKS: f64 = 200e-6;
        let width = self.goals.iter().map(|goal| goal.width).reduce(f64::min).filter(|_| self.sustained)?;
        Some(f64::max(width / 3.0, CLOCKS))
    }

    /// What trials at one load may take where the profile agrees: with the profile, NDR and PDR (three loads, a first trial) then take 12 s.
    pub const AT_ONE_LOAD_MS: u64 = 2_300;

    /// The same search from the capacity that a profile saw. Final trials are long enough that an excess of half the
    /// width fills the queue, or empties the bucket, that hides it, up to [`Self::AT_ONE_LOAD_MS`]. `shorten`: where the result agrees with the profile, which is a
    /// second witness unless its interval is wide, the majority of as many trials as fit into that time decides.
    pub fn from_profile(mut self, interval_pps: [f64; 2], buffer_us: f64, shorten: bool) -> Self {
        let mut hint = CapacityHint { interval_pps, buffer_us, agreed_sum_ms: None };
        for goal in &mut self.goals {
            let filling_ms = hint.filling_ms(goal.width).min(Self::AT_ONE_LOAD_MS);
            goal.final_trial_ms = goal.final_trial_ms.max(filling_ms);
            goal.duration_sum_ms = goal.duration_sum_ms.max(goal.final_trial_ms);
        }
        let trial_ms = self.goals.iter().map(|goal| goal.final_trial_ms).max();
        let narrow = interval_pps[1] <= 1.1 * interval_pps[0];
        hint.agreed_sum_ms = trial_ms.filter(|_| shorten && narrow).map(Self::agreed_ms);
        self.hint = Some(hint);
        self
    }

    /// The same search where no profile saw a capacity, or none that is narrow enough for a witness: what passes of a load somewhat above the result is the second witness.
    pub fn without_profile(self) -> Self {
        let trial_ms = self.goals.iter().map(|goal| goal.final_trial_ms).max();
        Self { agreed_sum_ms: trial_ms.map(Self::agreed_ms), ..self }
    }

    /// Trials whose majority decides where there is a second witness: as many as [`Self::AT_ONE_LOAD_MS`] has room for must agree.
    fn agreed_ms(trial_ms: u64) -> u64 {
        let agreeing = (Self::AT_ONE_LOAD_MS / trial_ms.max(1)).max(1);
        ((2 * agreeing - 1) * trial_ms).min(trial_ms.max(5_000))
    }

    /// What is wrong with the plan, if anything.
    /// Errors: one sentence that names the field, its value and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        within("minimum load in packets/s", self.min_load_pps, 0.01, 1e12)?;
        within("maximum load in packets/s", self.max_load_pps, 0.01, 1e12)?;
        if self.min_load_pps >= self.max_load_pps {
            return Err(format!(
                "minimum load is {} packets/s, but must be below the maximum load of {} packets/s",
                self.min_load_pps, self.max_load_pps
            ));
        }
        within("maximum search duration in ms", self.max_search_ms, 10, Self::LONGEST_MS)?;
        within("maximum number of trials", self.max_trials, 1, Self::MAX_TRIALS)?;
        within_if("maximum of the tester in packets/s", self.tester_max_pps, 0.01, 1e12)?;
        within("number of preceding targets", self.preceding_targets, 0, 10)?;
        within("expansion", self.expansion, 1.1, 100.0)?;
        within("repetitions of an invalid trial", self.invalid_retries, 0, 100)?;
        if let Some(hint) = &self.hint {
            let [least, most] = hint.interval_pps;
            within("lower bound of the capacity in packets/s", least, 0.01, 1e12)?;
            within("upper bound of the capacity in packets/s", most, least, 1e12)?;
            within("queue in microseconds", hint.buffer_us, 0.0, 60e6)?;
            within_if("agreed duration sum in ms", hint.agreed_sum_ms, 10, Self::LONGEST_MS)?;
        }
        within_if("agreed duration sum in ms", self.agreed_sum_ms, 10, Self::LONGEST_MS)?;
        if let SearchMethod::LossCurve { step, trial_ms } = self.method {
            within("step of the loss curve", step, 0.001, 0.5)?;
            return self.check_trial("trial", trial_ms);
        }
        within("number of goals", self.goals.len(), 1, Self::MAX_GOALS)?;
        self.goals.iter().enumerate().try_for_each(|(index, goal)| {
            if self.goals[..index].iter().any(|other| other.name == goal.name) {
                return Err(format!("two goals have the name {}: each goal needs its own name", goal.name));
            }
            self.check_goal(goal).map_err(|error| format!("goal {}: {error}", goal.name))
        })
    }

    fn check_goal(&self, goal: &Goal) -> Result<(), String> {
        within("loss ratio", goal.loss_ratio, 0.0, 0.99)?;
        within("exceed ratio", goal.exceed_ratio, 0.0, 0.99)?;
        within("width", goal.width, 0.0001, 0.5)?;
        self.check_trial("initial trial", goal.initial_trial_ms)?;
        self.check_trial("final trial", goal.final_trial_ms)?;
        let longest_sum_ms = 1000 * Self::LONGEST_TRIAL_MS;
        within("final trial in ms", goal.final_trial_ms, goal.initial_trial_ms, longest_sum_ms)?;
        within("duration sum in ms", goal.duration_sum_ms, goal.final_trial_ms, longest_sum_ms)
    }

    /// A trial is long enough for a datagram at the lowest load: otherwise there is no loss ratio.
    fn check_trial(&self, name: &str, trial_ms: u64) -> Result<(), String> {
        let longest_ms = Self::LONGEST_TRIAL_MS.min(self.max_search_ms);
        within(&format!("{name} in ms"), trial_ms, 10, longest_ms)?;
        if self.min_load_pps * (trial_ms as f64) < 1_000.0 {
            return Err(format!(
                "{name} of {trial_ms} ms is shorter than one datagram at the minimum load of {} packets/s; raise one \
                of them",
                self.min_load_pps
            ));
        }
        Ok(())
    }
}

/// How the search for one goal ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Both bounds, not further apart than the goal's width.
    Found,
    /// The lowest load fails already.
    MinLoadFails,
    /// The highest load passes: the path's limit is above it.
    MaxLoadPasses,
    /// The time or the trials were over, or the search was stopped, before the bounds were near each other.
    Unfinished,
    /// The bounds are the tester's and say of the path only that it carries the lower one.
    TesterLimited(TesterLimit),
}

/// The result for one goal, derived from the plan and the trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GoalResult {
    /// [`Goal::name`].
    pub goal: String,
    /// How the search for it ended.
    pub outcome: Outcome,
    /// Relevant lower bound: the highest load that passes below the upper bound.
    pub lower_pps: Option<f64>,
    /// Relevant upper bound: the lowest load that fails.
    pub upper_pps: Option<f64>,
    /// Conditional throughput: the forwarding rate to expect at the lower bound.
    pub conditional_throughput_pps: Option<f64>,
}

/// Where the search for one goal stands, for those who watch it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GoalBounds {
    /// [`Goal::name`].
    pub goal: String,
    /// The highest load that passes so far, by the target being worked on.
    pub lower_pps: Option<f64>,
    /// The lowest load that fails so far.
    pub upper_pps: Option<f64>,
    /// The target being worked on, from 1.
    pub target: u32,
    /// How many targets there are; the last one is the goal itself.
    pub targets: u32,
    /// Whether nothing is left to do for this goal.
    pub settled: bool,
}

/// One point of a loss curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LossPoint {
    /// Intended load.
    pub load_pps: f64,
    /// In percent of the highest load.
    pub load_percent: f64,
    /// Lost and unsent.
    pub loss_ratio: f64,
    /// The part of it that was never sent.
    pub unsent_ratio: f64,
}

/// A whole search: enough to derive its results again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchRecord {
    /// What was sought.
    pub plan: SearchPlan,
    /// Every trial in the order of time, the invalid ones too.
    pub trials: Vec<LoadTrial>,
    /// One per goal, in the plan's order; none of a loss curve.
    pub results: Vec<GoalResult>,
    /// What took time beside the trials, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spent: Vec<Spent>,
}

/// A part of the time that a search took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Spent {
    /// On what, in words.
    pub what: String,
    /// How long.
    pub ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> SearchPlan {
        SearchPlan::between(1_000.0, 1e6)
    }

    #[test]
    fn the_presets_are_sound() {
        assert_eq!(plan().check(), Ok(()));
        let goals = vec![Goal::rfc2544(), Goal::tst009()];
        assert_eq!(SearchPlan { goals, ..plan() }.check(), Ok(()));
        let method = SearchMethod::LossCurve { step: 0.1, trial_ms: 1_000 };
        assert_eq!(SearchPlan { method, goals: Vec::new(), ..plan() }.check(), Ok(()));
    }

    #[test]
    fn a_bad_plan_names_the_field_and_the_limits() {
        let refused = |plan: SearchPlan| plan.check().expect_err("refused");
        assert!(
            refused(SearchPlan { max_load_pps: f64::NAN, ..plan() }).starts_with("maximum load in packets/s is NaN")
        );
        assert_eq!(
            refused(SearchPlan { max_load_pps: 10.0, ..plan() }),
            "minimum load is 1000 packets/s, but must be below the maximum load of 10 packets/s"
        );
        let goals = vec![Goal { exceed_ratio: 1.0, ..Goal::ndr() }];
        assert_eq!(refused(SearchPlan { goals, ..plan() }), "goal NDR: exceed ratio is 1, but must be from 0 to 0.99");
        let goals = vec![Goal { initial_trial_ms: 2_000, ..Goal::ndr() }];
        assert!(refused(SearchPlan { goals, ..plan() }).contains("final trial is 1 s"));
        assert!(refused(SearchPlan { goals: vec![Goal::ndr(), Goal::ndr()], ..plan() }).contains("needs its own name"));
        assert!(refused(SearchPlan { goals: Vec::new(), ..plan() }).contains("number of goals is 0"));
        assert!(refused(SearchPlan { min_load_pps: 0.5, ..plan() }).contains("shorter than one datagram"));
    }

    #[test]
    fn trials_fill_the_queue_that_a_profile_saw() {
        let of = |buffer_us| {
            let plan = plan().from_profile([9.8e4, 1e5], buffer_us, true);
            (plan.check(), plan.goals[0].final_trial_ms, plan.hint.and_then(|hint| hint.agreed_sum_ms))
        };
        // 0.25 % of 1.32 s are 3.3 ms. Two of three trials, one.
        assert_eq!(of(500.0), (Ok(()), 1_000, Some(3_000)));
        assert_eq!(of(3_300.0), (Ok(()), 1_320, Some(1_320)));
        assert_eq!(of(5_500.0), (Ok(()), 2_200, Some(2_200)));
        assert_eq!(of(1e6), (Ok(()), 2_300, Some(2_300)));
        let hint = plan().from_profile([9e4, 1e5], 10_000.0, true).hint.expect("given");
        assert_eq!((hint.agreed_sum_ms, hint.range(0.0, 1_000)), (None, [9e4, 1e5 * 1.01]));
    }
}
