//! A fleet before it runs: what its tests cost; and while it runs.

use crate::run::mesh::MeshReport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

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

impl FleetCost {
    /// The rate by which the bytes of its loads are counted, bit/s; `None` for probes.
    pub fn load_bps(&self) -> Option<f64> {
        let bytes = self.bytes_a_day.checked_div(self.tests_a_day)?;
        (self.kind == "load" && self.lasts_ms > 0).then(|| bytes as f64 * 8_000.0 / self.lasts_ms as f64)
    }
}

impl FleetCheck {
    /// Whether it can run as it is.
    pub fn is_possible(&self) -> bool {
        self.tests.iter().all(|test| test.wrong.is_empty())
    }
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
    /// Pairs that are bad by their last results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bad: Vec<FleetBad>,
    /// Why the store does not work, if so.
    pub trouble: Option<String>,
    /// Why alerts do not arrive, if so.
    #[serde(default)]
    pub alerts_trouble: Option<String>,
    /// Of what nothing is reported now.
    #[serde(default)]
    pub muted: Vec<FleetMute>,
}

/// A pair that is slow, loses packets or is late.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetBad {
    /// Places in the list of members.
    pub from: usize,
    pub to: usize,
    /// Part of the packets of the last probe that was lost, of 1 % or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Median round trip of the last probe, us, where it takes longer than before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_us: Option<f64>,
    /// When its last load ended, where that is slow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaded_unix_ms: Option<u64>,
    /// When its last probe ended, where that lost packets or was late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probed_unix_ms: Option<u64>,
}

/// An element, a host or a group of which nothing is reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FleetMute {
    pub element: String,
    pub until_unix_ms: u64,
}

impl FleetStatus {
    /// Whether any test found something.
    pub fn has_results(&self) -> bool {
        self.tests.iter().any(|it| it.done > 0)
            || self.mesh.measured() > 0
            || self.mesh.paths.iter().any(|it| it.rtt_us.is_some())
    }

    /// Until when nothing is reported of an element, if it is muted: by its name, what that begins with, or a host or a group that it names.
    pub fn muted_until_unix_ms(&self, element: &str) -> Option<u64> {
        let is_named = |name: &str| element.split([' ', '(', ')', ',']).any(|word| word == name);
        let is = |which: &str| {
            let group = which.strip_prefix("group ");
            let has = |host: &FleetHost| group == Some(host.group.as_str()) && is_named(&host.name);
            which == element
                || which.strip_suffix('*').is_some_and(|begin| element.starts_with(begin))
                || which.strip_prefix("host ").or(group).is_some_and(is_named)
                || self.hosts.iter().any(has)
        };
        self.muted.iter().filter(|it| is(&it.element)).map(|it| it.until_unix_ms).max()
    }

    /// Whether nothing is bad, every agent is there, and tests find something.
    pub fn is_well(&self) -> bool {
        let is_gone = |host: &FleetHost| matches!(host.state, AgentState::Silent | AgentState::Never);
        self.incidents.is_empty()
            && self.trouble.is_none()
            && self.alerts_trouble.is_none()
            && !self.hosts.is_empty()
            && !self.hosts.iter().any(is_gone)
            && self.has_results()
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
    /// What a diagnosis of a typical path of it says.
    pub diagnosis: Option<String>,
    /// Whether people were told of it: not yet, or it is muted.
    #[serde(default)]
    pub reported: bool,
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
    /// When the last of its loads ended that carried something.
    #[serde(default)]
    pub loaded_unix_ms: Option<u64>,
    /// When the last of its probes ended that was answered.
    #[serde(default)]
    pub probed_unix_ms: Option<u64>,
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

/// Paths of which tests are planned, by places in the list of hosts, each with when it was last measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FleetPaths {
    pub loads: BTreeMap<[usize; 2], Option<u64>>,
    pub probes: BTreeMap<[usize; 2], Option<u64>>,
    /// What loads carried before, bit/s, where that is known.
    pub usual_bps: BTreeMap<[usize; 2], f64>,
    /// Paths whose round trip takes longer than it did.
    pub late: BTreeSet<[usize; 2]>,
}

pub const SERIES_SCHEMA: &str = "narrows.fleet-series/1";

/// What the tests of one path found over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetSeries {
    /// Always [`SERIES_SCHEMA`].
    pub schema: String,
    pub from: String,
    pub to: String,
    /// In the order of time.
    pub points: Vec<FleetPoint>,
    /// Where a figure changed its level.
    #[serde(default)]
    pub changes: Vec<FleetChange>,
    /// What changed of the settings of its hosts, in the order of time.
    #[serde(default)]
    pub settings: Vec<FleetSetting>,
}

/// A setting of a host that changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FleetSetting {
    /// When its agent said so: minutes after the change.
    pub at_unix_ms: u64,
    pub host: String,
    /// `tcp.sack: on → off`.
    pub says: String,
}

/// The settings of a host beside those of the other hosts of its group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetSettings {
    pub host: String,
    /// Empty: it is compared with the others that have no group.
    pub group: String,
    /// Other hosts of the group, and how many of them have sent their settings.
    pub others: u64,
    pub known: u64,
    /// With how many of those it is compared; 0: there are too few.
    pub compared: u64,
    /// Settings that differ, and those that are left out at the end.
    pub differ: u64,
    pub left_out: u64,
    /// Those that differ first; `None`: the host has not sent them yet.
    pub settings: Option<Vec<ComparedSetting>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparedSetting {
    pub key: String,
    /// `None`: most others have it, and this host has not.
    pub value: Option<String>,
    /// What most of the others have that have it; `None`: no two have the same, or none is compared.
    pub common: Option<String>,
    /// How many have that value, and how many have any.
    pub hosts: [u64; 2],
}

impl ComparedSetting {
    pub fn differs(&self) -> bool {
        self.common.is_some() && self.common != self.value
    }
}

/// What one test found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetPoint {
    pub at_unix_ms: u64,
    pub mesh: String,
    /// `load` or `probe`.
    pub kind: String,
    pub goodput_bps: Option<f64>,
    pub retransmits: Option<u64>,
    /// Minimum, median and 90th percentile.
    pub rtt_us: Option<[f64; 3]>,
    /// Packets sent in this direction, and those of them that were lost.
    pub packets: Option<[u64; 2]>,
    /// Median one-way delay in this direction, and how far it may be out; only where the clocks of both hosts follow others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way_us: Option<[f64; 2]>,
    /// Routers on the path, where they were looked for.
    pub hops: Vec<String>,
    /// Why there is no figure.
    pub failure: Option<String>,
    /// What a diagnosis of the load says.
    pub diagnosis: Option<String>,
    /// Of how many tests this is the mean, where single ones are not kept any more; those that found nothing are named as a failure.
    #[serde(default)]
    pub of_tests: Option<u64>,
}

/// A figure that changed its level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetChange {
    /// `goodput` or `round trip`.
    pub figure: String,
    /// The first test after it.
    pub at_unix_ms: u64,
    /// Mean up to the change before and after it, in the unit of the figure.
    pub before: f64,
    pub after: f64,
    /// `after − before` as a part of `before`.
    pub change: f64,
    /// Its 95 % interval.
    pub interval: [f64; 2],
}
