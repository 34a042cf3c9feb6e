//! Loads between all of many hosts: what was measured.

use crate::host::fact::Snapshot;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What every load of a mesh is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MeshPlan {
    /// How long each load lasts.
    pub duration_ms: u64,
    /// TCP streams of each load.
    pub streams: u32,
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
    pub host: Snapshot,
}

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

/// A mesh, as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeshRecord {
    pub plan: MeshPlan,
    pub members: Vec<MeshMember>,
    pub loads: Vec<MeshLoad>,
    pub interrupted: bool,
}

/// Always this in a report.
pub const SCHEMA: &str = "narrows.mesh/1";

/// Who is to blame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeshSuspect {
    /// The element, in words: `host b`, `the way from group a to group b`.
    pub element: String,
    /// Others that explain the same loads as well.
    pub or: Vec<String>,
    /// What its loads carry as a part of what they should, with its 95 % interval.
    pub carries: f64,
    pub interval: [f64; 2],
    /// How many slow loads it explains.
    pub loads: usize,
}

/// A setting in which slow hosts differ from the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeshDifference {
    pub key: String,
    pub value: String,
    /// How many of the slow hosts have the value, of how many; and of the others.
    pub slow: [u64; 2],
    pub others: [u64; 2],
    /// How often so good a separation comes by chance among so many settings.
    pub chance: f64,
}

/// A mesh with who is to blame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeshReport {
    /// Always [`SCHEMA`].
    pub schema: String,
    pub plan: MeshPlan,
    pub members: Vec<MeshName>,
    pub loads: Vec<MeshLoad>,
    /// What each load should carry, bits a second; `None` where it was not measured.
    pub expected_bps: Vec<Option<f64>>,
    pub suspects: Vec<MeshSuspect>,
    /// Hosts that had no CPU time left: their loads accuse nobody.
    pub starved: Vec<String>,
    pub differences: Vec<MeshDifference>,
    pub headline: String,
    pub interrupted: bool,
}

/// A host of a mesh in a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MeshName {
    pub name: String,
    pub group: String,
    pub address: String,
    pub absent: Option<String>,
}
