//! Throughput: the search and its confirmation.

use super::about::{About, Made, Procedure};
use crate::data::settings::{Default as D, Kind, Value, settings};
use narrows_model::load::frames_report::FrameRate;
use narrows_model::run::search::{Goal, Outcome, SearchPlan};
use narrows_model::run::sweep::Spread;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

settings! {
    /// The highest rate without loss: a search, and trials that confirm it.
    pub struct ThroughputTest {
        /// List of "ndr", "pdr", "rfc2544", "tst009" or tables.
        pub goals: Vec<Goal> = "goals", Kind::Goals, D::Presets(Value::Goals(&["ndr", "pdr"]), Value::Goals(&["rfc2544"]));
        /// Confirming trials at the result of the first goal.
        pub confirm: u32 = "confirm", Kind::Whole(0..=1_000), D::Always(Value::Whole(5));
        /// Maximum duration of the search for one size.
        pub max_search_ms: u64 = "max-search", Kind::Duration(10..=SearchPlan::LONGEST_MS), D::Presets(Value::Ms(120_000), Value::Ms(7_200_000));
    }
}

impl Procedure for ThroughputTest {
    const ABOUT: About = About {
        key: "throughput",
        what: "the highest rate without loss (RFC 2544, 26.1)",
        title: "throughput",
        word: "throughput",
        made: Made::Usually,
        at_throughput: false,
    };

    fn problems(&self) -> Vec<(&'static str, String)> {
        let seconds = |ms: u64| ms as f64 / 1e3;
        let long = self.goals.iter().find(|goal| goal.final_trial_ms > self.max_search_ms);
        let says = long.map(|goal| {
            format!(
                "{} s are shorter than the final trial of goal {}, which takes {} s",
                seconds(self.max_search_ms),
                goal.name,
                seconds(goal.final_trial_ms)
            )
        });
        says.map(|says| ("max-search", says)).into_iter().collect()
    }
}

/// The throughput of one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct ThroughputResults {
    /// The search; `None` where there was none.
    #[serde(rename = "throughput")]
    pub search: Option<ThroughputView>,
    /// Repetitions at the throughput.
    pub confirmation: Option<ConfirmationView>,
    /// What the mix should carry by the results of single sizes.
    pub estimate: Option<EstimateView>,
}

/// The search for one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThroughputView {
    /// One for each goal, in the plan's order.
    pub goals: Vec<GoalOfSize>,
    /// Trials.
    pub trials: u64,
    /// Trials that say nothing.
    pub invalid: u64,
    /// How long it took.
    pub took_ms: u64,
}

/// One goal and what was found for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GoalOfSize {
    /// What was sought.
    pub goal: Goal,
    /// How it ended.
    pub outcome: Outcome,
    /// The same in words: `found`, `limited by the tester`, …
    pub word: String,
    /// Why a bound is missing, or whose it is; nothing where both were found.
    pub why: Option<String>,
    /// The highest load that passes.
    pub lower: Option<FrameRate>,
    /// Where the search ended before any load was proven: the highest one that passed each of its trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unproven: Option<FrameRate>,
    /// The lowest load that fails.
    pub upper: Option<FrameRate>,
    /// The forwarding rate to expect at the lower bound.
    pub conditional_throughput: Option<FrameRate>,
}

impl GoalOfSize {
    /// Whether the device may carry more than the lower bound says.
    pub fn is_at_least(&self) -> bool {
        match self.outcome {
            Outcome::Found | Outcome::MinLoadFails => false,
            // No device carries more than the line.
            Outcome::MaxLoadPasses => !self.lower.and_then(|it| it.of_line).is_some_and(|part| part > 0.9999),
            Outcome::Unfinished | Outcome::TesterLimited(_) => true,
        }
    }
}

/// Repetitions at the throughput. Of both directions the one that carried less counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfirmationView {
    /// The load of each; `None` where it was not the same.
    pub load: Option<FrameRate>,
    /// How many were made.
    pub repetitions: u32,
    /// How many were planned.
    pub planned: u32,
    /// How many lost no more than the goal allows.
    pub passed: u32,
    /// How many say nothing.
    pub invalid: u32,
    /// What arrived, frames a second, of those that say something.
    pub received_pps: Option<Spread>,
    /// Frames lost, of those that say something.
    pub lost: Option<Spread>,
    /// Whether as many as were planned say something and passed.
    pub all_passed: bool,
    /// Whether the goal's own measure is met: as many as were planned say something, and no larger part of them than its exceed
    /// ratio failed.
    pub holds: bool,
}

/// What the mix should carry by the results of single sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EstimateView {
    /// The estimate; it was not measured.
    pub rate: FrameRate,
    /// From which results, and what it takes for granted.
    pub method: String,
}
