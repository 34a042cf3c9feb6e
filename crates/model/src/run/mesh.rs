//! Loads between all of many hosts: what was measured.

use crate::host::fact::Snapshot;
use crate::run::report::ProofView;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What every load of a mesh is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MeshPlan {
    /// How long each load lasts.
    pub duration_ms: u64,
    /// TCP streams of each load.
    pub streams: u32,
    /// How long probes of all pairs last before; 0: there are none.
    pub probe_ms: u64,
    /// Whether a load of each suspect is diagnosed.
    pub diagnose: bool,
    /// Whether the first fix of each diagnosis is tried.
    #[serde(default)]
    pub try_fixes: bool,
    /// No load begins after so long, ms; `None`: no limit.
    pub budget_ms: Option<u64>,
    /// … nor after so many bytes of load.
    pub budget_bytes: Option<u64>,
}

/// A host of a mesh.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeshMember {
    /// As the user names it.
    pub name: String,
    /// Its group; empty without one.
    pub group: String,
    /// The address that the others load; empty where it never answered.
    pub address: String,
    /// Why it takes no part, if so.
    pub absent: Option<String>,
    /// Whether another mesh ran there when this one began.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_shared: bool,
    pub host: Snapshot,
}

/// Less than this part of what it should carry is slow: loads of a mesh differ by a tenth from one time to the next.
pub const SLOW: f64 = 0.8;

/// What became of a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MeshState {
    Measured {
        /// Payload that the receiving program got, bits a second.
        goodput_bps: f64,
        /// Segments that were sent again; `None` where that is not known.
        retransmits: Option<u64>,
        /// The part of all CPU time of the sender and of the receiver that was busy or stolen.
        busy: [Option<f64>; 2],
    },
    /// Neither end could connect to the other, with what each was told.
    Unreachable(String),
    Failed(String),
    /// The mesh ended before.
    NotMade,
}

/// A load from one host to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeshLoad {
    /// Places in the list of members.
    pub from: usize,
    pub to: usize,
    /// Whether the receiver opened the connections: the sender could not.
    pub opened_by_receiver: bool,
    pub state: MeshState,
    /// What it was while others ran, where it was repeated alone.
    pub beside_others_bps: Option<f64>,
}

/// What probes at a low rate saw of the path from one host to another.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeshPath {
    /// Places in the list of members.
    pub from: usize,
    pub to: usize,
    /// Round trips without the time in the other host, us: minimum, median, 90th percentile. One of the two sends them.
    pub rtt_us: Option<[f64; 3]>,
    /// Packets sent, and lost on the path there and on the path back; `None`: none were sent from here.
    pub packets: Option<[u64; 3]>,
    /// Only where the clocks of both hosts follow others, as they say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way: Option<OneWay>,
    /// Largest IP packet that passes, bytes.
    pub mtu_bytes: Option<u32>,
    /// The routers on the path, from the first; empty where one did not answer.
    pub hops: Vec<String>,
    /// Why something of it is not known.
    pub remarks: Vec<String>,
}

/// Delays of the two directions of a path, by the clocks of both hosts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OneWay {
    /// Median delay of the path there and of the path back, us.
    pub median_us: [f64; 2],
    /// How far each may be out, us: the sum of what the kernels of both hosts say of their clocks.
    pub error_us: f64,
}

impl OneWay {
    /// Whether it can be: no packet arrives before it was sent, within what the clocks may be out.
    pub fn is_sound(&self) -> bool {
        let can_be = |us: &f64| (-self.error_us..1e9).contains(us);
        (0.0..1e9).contains(&self.error_us) && self.median_us.iter().all(can_be)
    }
}

/// A diagnosis of one load of a suspect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeshDiagnosis {
    /// Places in the list of members.
    pub from: usize,
    pub to: usize,
    /// Its verdict in a sentence, or why there is none.
    pub headline: String,
    /// Its first cause; `None`: none is named.
    pub cause: Option<String>,
    /// What its rule reads of hosts.
    pub reads: Vec<String>,
    /// The first command that mends it, and where.
    pub fix: Option<String>,
    /// What it gained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried: Option<MeshTried>,
    /// Its run in the store.
    pub run: Option<String>,
}

/// A fix that was tried and rolled back.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeshTried {
    /// Each setting, with its host.
    pub settings: Vec<String>,
    pub proof: Option<ProofView>,
    /// Why it could not be tried.
    pub failed: Option<String>,
    /// Changes of which the rollback is not confirmed, with the reason. Their server rolls back by itself when its session ends.
    pub left: Vec<String>,
}

/// A mesh, as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeshRecord {
    pub plan: MeshPlan,
    pub members: Vec<MeshMember>,
    pub paths: Vec<MeshPath>,
    pub loads: Vec<MeshLoad>,
    pub diagnoses: Vec<MeshDiagnosis>,
    /// Why the rest of the loads was not made, if a budget ended them.
    pub ended_early: Option<String>,
    pub interrupted: bool,
}

/// Always this in a report.
pub const SCHEMA: &str = "narrows.mesh/1";

/// Who is to blame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeshSuspect {
    /// The element, in words: `host b`, `the path from group a to group b`.
    pub element: String,
    /// Others that explain the same loads as well.
    pub or: Vec<String>,
    /// What its loads carry as a part of what they should, with its 95 % interval.
    pub carries: f64,
    pub interval: [f64; 2],
    /// How many slow loads it explains, and how many of them were repeated alone.
    pub loads: usize,
    pub repeated: usize,
    /// The worst of them, as places in the list of members.
    pub worst: [usize; 2],
}

/// An element that loses packets at a low rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeshLoss {
    pub element: String,
    /// Others that explain the same losses as well.
    pub or: Vec<String>,
    /// Of the packets on the paths that it explains, those that were lost.
    pub lost: u64,
    pub sent: u64,
    /// 95 % interval of the loss (Wilson), as shares.
    pub interval: [f64; 2],
    /// Slow loads that pass it and that nothing else explains.
    #[serde(default)]
    pub loads: usize,
    /// The slowest of them: from and to.
    #[serde(default)]
    pub worst: Option<[usize; 2]>,
}

/// A setting in which slow hosts differ from the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeshDifference {
    pub key: String,
    pub value: String,
    /// How many of the slow hosts have the value, of how many; and of the others.
    pub slow: [u64; 2],
    pub others: [u64; 2],
    /// Whether these count loads that begin or end at a host with the value: where hosts are slow on some of their paths only.
    #[serde(default)]
    pub of_loads: bool,
    /// How often so good a separation comes by chance among so many settings.
    pub chance: f64,
    /// The cause of a diagnosis of this mesh whose rule reads it.
    pub cause: Option<String>,
}

/// A mesh with who is to blame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeshReport {
    /// Always [`SCHEMA`].
    pub schema: String,
    pub plan: MeshPlan,
    pub members: Vec<MeshName>,
    pub paths: Vec<MeshPath>,
    pub loads: Vec<MeshLoad>,
    /// What each load should carry, bits a second; `None` where it was not measured.
    pub expected_bps: Vec<Option<f64>>,
    /// Which loads are slow: less than 80 % of what they should carry.
    pub slow: Vec<bool>,
    /// Elements that lose packets of probes at a low rate.
    pub losing: Vec<MeshLoss>,
    pub suspects: Vec<MeshSuspect>,
    /// Hosts that had no CPU time left for loads that are slow: those accuse nobody.
    pub starved: Vec<String>,
    /// Hosts on which another mesh ran when this one began: the loads of both may have disturbed each other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<String>,
    pub differences: Vec<MeshDifference>,
    pub diagnoses: Vec<MeshDiagnosis>,
    pub ended_early: Option<String>,
    pub headline: String,
    pub interrupted: bool,
}

impl MeshReport {
    /// How many loads were measured.
    pub fn measured(&self) -> usize {
        self.loads.iter().filter(|load| matches!(load.state, MeshState::Measured { .. })).count()
    }
}

/// A host of a mesh in a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MeshName {
    pub name: String,
    pub group: String,
    pub address: String,
    pub absent: Option<String>,
}
