//! The other end of a run, and how the run ended.

use crate::words::place::Family;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The other end, as it was asked for and as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Target {
    /// The user's word: a name, an address, an `ssh://` address.
    pub asked: String,
    /// `address:port` of the data connections.
    pub address: String,
    /// The family used.
    pub family: Family,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// As planned.
    Complete,
    /// By the user; what was measured is kept.
    Interrupted,
    /// By a failure; what was measured is kept.
    Failed(String),
}
