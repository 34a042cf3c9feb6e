//! Two diagnoses side by side: each figure of both, matched, and whether it differs.

use crate::diagnosis::verdict::Status;
use crate::host::fact::Unit;
use crate::host::side_by_side::{Cell, Group};
use crate::run::target::Ending;
use crate::words::place::{Direction, Place};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the JSON form.
pub const SCHEMA: &str = "narrows.diff/1";

/// Two diagnoses, A and B, side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiffReport {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// What differs, in sentences; most important first.
    pub summary: Vec<String>,
    /// Why the two can be compared only in part.
    pub remarks: Vec<String>,
    /// A and B.
    pub runs: [DiffRun; 2],
    /// Goodput of B over that of A; `None` where A has none.
    pub goodput_ratio: Option<f64>,
    /// The figures that at least one of them has.
    pub figures: Vec<DiffFigure>,
    /// The parameters of each host that differ between the two.
    pub parameters: Vec<DiffParameter>,
}

/// One of the two diagnoses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiffRun {
    /// The run's id.
    pub id: String,
    /// When it began, microseconds since the Unix epoch.
    pub started_unix_us: u64,
    /// How it ended.
    pub ending: Ending,
    /// Name of the client.
    pub client: String,
    /// The other end, as the user named it.
    pub target: String,
    /// The direction that was measured.
    pub direction: Direction,
    /// The verdict in a word.
    pub status: Status,
    /// The verdict in a sentence.
    pub headline: String,
    /// The first cause; `None` where none was found.
    pub cause: Option<DiffCause>,
    /// Goodput to expect after the fix of the first cause: low, best and high estimate.
    pub predicted_bps: Option<[f64; 3]>,
    /// What the path does with what exceeds its capacity: `queue`, `short-queue`, `shaper` or `policer`.
    pub limit: Option<String>,
}

/// The first cause of a diagnosis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiffCause {
    /// The public id.
    pub id: String,
    /// Where it is.
    pub at: Place,
    /// From 0 to 1.
    pub confidence: f64,
}

/// The table that a figure belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DiffGroup {
    /// What the load got.
    Goodput,
    /// What the path does by itself.
    Path,
    /// Shares of the sender's time.
    TimeBudget,
    /// The roofline; named by the ids of causes.
    Ceilings,
    /// Goodput of the experiments; named by their ids.
    Experiments,
}

/// One figure of both.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiffFigure {
    /// Its table.
    pub group: DiffGroup,
    /// What it is.
    pub name: String,
    /// Where it is, for a ceiling.
    pub at: Option<Place>,
    /// Its unit.
    pub unit: Unit,
    /// Of A and of B.
    pub values: [Option<f64>; 2],
    /// Whether they are further apart than two measurements of one path usually are, or only one is known.
    pub differs: bool,
}

/// One parameter of a host that differs between the two runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiffParameter {
    /// Which host.
    pub at: Place,
    /// Its group.
    pub group: Group,
    /// The key of the fact.
    pub key: String,
    /// What it is called.
    pub label: String,
    /// In A and in B.
    pub cells: [Cell; 2],
}
