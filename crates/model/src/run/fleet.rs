//! A fleet before it runs: what its tests cost.

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
