//! Runs in the store, as their readers meet them: the list, and figures over time with their change points.

use crate::host::fact::Unit;
use crate::run::campaign::Better;
use crate::run::diff::DiffParameter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the JSON form of the list.
pub const SCHEMA: &str = "narrows.history/1";
/// The name of the JSON form of figures over time.
pub const TREND_SCHEMA: &str = "narrows.trend/1";
/// A series of fewer runs has no change point.
pub const TREND_RUNS_MIN: usize = 6;

/// One headline figure of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Headline {
    /// What it is: `goodput up`.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
}

impl Headline {
    /// A figure.
    pub fn new(name: impl Into<String>, value: f64, unit: Unit) -> Self {
        Self { name: name.into(), value, unit }
    }
}

/// What the store knows of a run without reading it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StoredRun {
    /// Its id.
    pub id: String,
    /// When it began, microseconds since the Unix epoch.
    pub started_unix_us: u64,
    /// The user who started it; empty if it is not known.
    pub who: String,
    /// Name of the client; empty if it is not known.
    pub client: String,
    /// The server, or the device under test, as the user named it; empty without one.
    pub server: String,
    /// The server's own name; empty if it is not known.
    pub server_name: String,
    /// `ipv4` or `ipv6`; empty if it is not known.
    pub family: String,
    /// The command: `diagnose`, `measure tcp`, `rfc2544`.
    pub command: String,
    /// A hash of the plan: runs of one plan can be compared.
    pub plan: String,
    /// Tags of the user, sorted.
    pub tags: Vec<String>,
    /// The headline figures, most important first.
    pub figures: Vec<Headline>,
    /// The verdict of a diagnosis with its first cause, or how the run ended.
    pub verdict: String,
    /// The program that made it.
    pub made_by: String,
    /// Size as JSON, bytes.
    pub raw_bytes: u64,
    /// Size in the store, bytes.
    pub stored_bytes: u64,
}

/// A page of the list, newest run first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryReport {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// How many newer runs were left out.
    pub offset: u64,
    /// Runs that match the filter.
    pub total: u64,
    /// The page.
    pub runs: Vec<StoredRun>,
}

/// Figures over time, one series for each pair of hosts, address family, command, plan and figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrendReport {
    /// Always [`TREND_SCHEMA`].
    pub schema: String,
    /// The longest series first.
    pub series: Vec<TrendSeries>,
}

/// What the runs of a series have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct TrendOf {
    /// Name of the client.
    pub client: String,
    /// The server, as the user named it.
    pub server: String,
    /// `ipv4` or `ipv6`; empty if it is not known.
    pub family: String,
    /// The command.
    pub command: String,
    /// The hash of the plan.
    pub plan: String,
    /// The figure.
    pub figure: String,
}

/// One figure over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrendSeries {
    /// Of which runs it is.
    #[serde(flatten)]
    pub of: TrendOf,
    /// Its unit.
    pub unit: Unit,
    /// Which way it is better, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub better: Option<Better>,
    /// In the order of time.
    pub points: Vec<TrendPoint>,
    /// The median of all.
    pub median: f64,
    /// Where the level changed, in the order of time.
    pub changes: Vec<TrendChange>,
}

/// One run's figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrendPoint {
    /// The run.
    pub id: String,
    /// When it began, microseconds since the Unix epoch.
    pub started_unix_us: u64,
    /// The figure.
    pub value: f64,
}

/// Where the level changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrendChange {
    /// The last run before it and the first one after it.
    pub between: [String; 2],
    /// When they began, microseconds since the Unix epoch.
    pub between_unix_us: [u64; 2],
    /// The mean since the previous change.
    pub before: f64,
    /// The mean up to the next change.
    pub after: f64,
    /// `after − before` as a share of `before`.
    pub change: f64,
    /// The 95 % interval of `change`.
    pub interval: [f64; 2],
    /// Two-sided p of the t-test.
    pub p: f64,
    /// The parameters of either host that differ between the two runs.
    pub inventory: Vec<DiffParameter>,
    /// Why the inventory is not known, if so.
    pub inventory_missing: Option<String>,
}
