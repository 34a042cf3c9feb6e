//! The view of a forwarding benchmark with two configurations of the device: what `narrows rfc2544` prints of a plan with `[ab]`
//! in every format. Derived from its record.

use crate::data::ab::{AbRow, AbRun, Side, ThroughputOfSize};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the JSON form.
pub const SCHEMA: &str = "narrows.forwarding-ab/1";

/// What follows from a record by rules that the view does not know: it is handed in beside the record.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AbDerived {
    /// What each run found, one for each that was measured, in the same order.
    pub runs: Vec<AbRun>,
    /// How the complete ones compare.
    pub rows: Vec<AbRow>,
}

/// Two configurations compared, as its reader meets it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbReport {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The device under test, as the plan calls it.
    pub name: String,
    /// What is compared against.
    pub a: ConfigurationView,
    /// What is compared.
    pub b: ConfigurationView,
    /// The goal whose throughputs are compared.
    pub goal: String,
    /// Runs with each that were planned.
    pub planned: u32,
    /// One for each traffic and size, in the plan's order.
    pub rows: Vec<AbRowView>,
    /// Every run, in the order of time.
    pub runs: Vec<AbRunView>,
    /// What must be known of the whole.
    pub remarks: Vec<String>,
    /// Why it ended early, if it did.
    pub ended: Option<String>,
}

/// A configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigurationView {
    /// As the plan calls it.
    pub name: String,
    /// What makes it, a word each: faults of the lab as the user writes them; of commands the program alone.
    pub steps: Vec<String>,
    /// Runs that were complete.
    pub runs: u32,
}

/// One traffic and size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbRowView {
    /// The traffic, as short as tells it from the others: `IPv4`.
    pub name: String,
    /// What the throughputs of A are like.
    pub a: Option<Sample>,
    /// And those of B.
    pub b: Option<Sample>,
    /// How they compare.
    pub row: AbRow,
}

/// Throughputs of one configuration, frames a second: the columns of ministat.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Runs.
    pub n: u32,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// The middle one.
    pub median: f64,
    /// The mean.
    pub mean: f64,
    /// The standard deviation; `None` of a single run.
    pub sd: Option<f64>,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbRunView {
    /// With which configuration.
    pub side: Side,
    /// Since the first run began.
    pub at_ms: u64,
    /// What it found, one for each row that has a result.
    pub throughputs: Vec<ThroughputOfSize>,
    /// Trials of its searches that say nothing.
    pub invalid: u64,
    /// Why it has no part in the comparison, if so.
    pub left_out: Option<String>,
}
