//! A fleet before it runs: what its tests cost; and while it runs.

use crate::run::mesh::MeshReport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub const SCHEMA: &str = "narrows.fleet-check/1";

/// What the file of a fleet asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetCheck {
    /// Always [`SCHEMA`].
    pub schema: String,
    pub name: String,
    pub hosts: u64,
    /// Single tests are kept for so long.
    #[serde(default)]
    pub keep_ms: u64,
    pub tests: Vec<FleetCost>,
}

/// What a test of a mesh costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetCost {
    pub mesh: String,
    /// `probe` or `load`.
    pub kind: String,
    pub every_ms: u64,
    pub lasts_ms: u64,
    pub pairs: u64,
    /// Loads are made in so many rounds, no host in two of one round.
    pub rounds: u64,
    /// All pairs, both directions of loads, take so long.
    pub slot_ms: u64,
    /// Part of the time that the busiest host is in a load.
    pub busiest: f64,
    pub tests_a_day: u64,
    pub bytes_a_day: u64,
    /// What the store grows by.
    pub stored_bytes_a_day: u64,
    /// What makes it impossible as it is.
    pub wrong: Vec<String>,
}

impl FleetCheck {
    /// Whether it can run as it is.
    pub fn is_possible(&self) -> bool {
        self.tests.iter().all(|test| test.wrong.is_empty())
    }
}

pub const HISTORY_SCHEMA: &str = "narrows.fleet-history/1";

/// What the tests from one host to another found over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetHistory {
    /// Always [`HISTORY_SCHEMA`].
    pub schema: String,
    pub from: String,
    pub to: String,
    pub since_unix_ms: u64,
    pub until_unix_ms: u64,
    pub tests: Vec<FleetSeries>,
}

/// One test of a mesh over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetSeries {
    pub mesh: String,
    /// As `probe of 3000 ms each 60000 ms`.
    pub test: String,
    /// `probe` or `load`.
    pub kind: String,
    /// The earliest first.
    pub points: Vec<FleetPoint>,
}

/// A test, or those of a day (UTC) where single ones are not kept any more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetPoint {
    /// When it was due, or when the day began.
    pub at_unix_ms: u64,
    /// Tests; of a single one, 1.
    pub tests: u64,
    /// Those that were missed, or found nothing.
    pub failed: u64,
    /// Of loads goodput, bit/s, of probes round-trip time, microseconds: least, middle, most; of days the middle is the mean of the tests'.
    pub figures: Option<[f64; 3]>,
    /// Probe packets, and those that were lost.
    pub sent: u64,
    pub lost: u64,
}

pub const STATUS_SCHEMA: &str = "narrows.fleet-status/1";

/// A fleet that runs: what is bad, who is there, how tests ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetStatus {
    /// Always [`STATUS_SCHEMA`].
    pub schema: String,
    pub name: String,
    /// When it was asked.
    pub at_unix_ms: u64,
    /// No test begins until then.
    pub paused_until_unix_ms: Option<u64>,
    pub incidents: Vec<FleetIncident>,
    pub hosts: Vec<FleetHost>,
    pub tests: Vec<FleetTests>,
    /// The last results of all paths, and what they blame.
    pub mesh: MeshReport,
    /// Why the store does not work, if so.
    pub trouble: Option<String>,
    /// Why alerts do not arrive, if so.
    #[serde(default)]
    pub alerts_trouble: Option<String>,
}

impl FleetStatus {
    /// Whether nothing is bad, and every agent is there.
    pub fn is_well(&self) -> bool {
        let is_gone = |host: &FleetHost| matches!(host.state, AgentState::Silent | AgentState::Never);
        self.incidents.is_empty()
            && self.trouble.is_none()
            && self.alerts_trouble.is_none()
            && !self.hosts.iter().any(is_gone)
    }
}

/// Something that is bad for longer than a round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FleetIncident {
    pub number: u64,
    pub element: String,
    pub says: String,
    pub since_unix_ms: u64,
    /// Who has it in hand.
    pub acknowledged: Option<String>,
    /// What a diagnosis of its worst path says.
    pub diagnosis: Option<String>,
}

/// How an agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentState {
    Up,
    /// It was there, and says nothing.
    Silent,
    /// It never came since the controller began.
    Never,
    /// It gets no tests.
    Drained,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FleetHost {
    pub name: String,
    pub group: String,
    pub state: AgentState,
    /// Where its agent comes from.
    pub address: Option<String>,
    pub version: Option<String>,
    /// When it was last heard of.
    pub heard_unix_ms: Option<u64>,
    /// By how much its clock is behind the controller's, ms, where that is known; a message's time on its way is part of it.
    #[serde(default)]
    pub clock_behind_ms: Option<i64>,
    /// By how much its clock may be out, as its kernel says; `null`: nothing sets it.
    #[serde(default)]
    pub clock_error_us: Option<u64>,
}

/// How the tests of one kind of a mesh ended since the controller began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FleetTests {
    pub mesh: String,
    /// As `probe of 3000 ms each 60000 ms`.
    pub test: String,
    pub done: u64,
    pub failed: u64,
    pub missed: u64,
}
