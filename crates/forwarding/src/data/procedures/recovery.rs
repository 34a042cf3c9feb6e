//! Recovery from an overload.

use super::about::{About, Made, Procedure, REPETITIONS, TRIAL_MS};
use crate::data::settings::{Default as D, Kind, Value, settings};
use narrows_model::run::sweep::Spread;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

settings! {
    /// Time to recover from an overload.
    pub struct RecoveryTest {
        /// Duration of the overload of 110 % of the throughput.
        pub overload_ms: u64 = "overload", Kind::Duration(TRIAL_MS), D::Presets(Value::Ms(5_000), Value::Ms(60_000));
        /// Duration of half the throughput after the overload.
        pub after_ms: u64 = "after", Kind::Duration(TRIAL_MS), D::Presets(Value::Ms(5_000), Value::Ms(60_000));
        /// Repetitions.
        pub repetitions: u32 = "repetitions", Kind::Whole(REPETITIONS), D::Presets(Value::Whole(3), Value::Whole(10));
    }
}

impl Procedure for RecoveryTest {
    const ABOUT: About = About {
        key: "recovery",
        what: "time to recover from an overload (RFC 2544, 26.5)",
        title: "recovery",
        word: "recovery",
        made: Made::WithRfc2544,
        at_throughput: true,
    };
}

/// Recoveries of one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct RecoveryResults {
    /// Time to recover from an overload, ns.
    #[serde(rename = "recovery_ns")]
    pub time_ns: Option<Spread>,
    /// What must be known of it: how exactly the receiver saw it, which repetitions have none and why.
    #[serde(rename = "recovery_notes", default)]
    pub notes: Vec<String>,
}
