//! Two diagnoses, of one direction after the other, and whether the directions differ.

use crate::run::report::Report;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the JSON form.
pub const SCHEMA: &str = "narrows.both-directions/1";

/// A diagnosis of both directions of a path, one after the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BothDirections {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// From the client to the server; `null` where nothing was measured.
    pub up: Option<Report>,
    /// From the server to the client; `null` where nothing was measured.
    pub down: Option<Report>,
    /// The goodput of both, compared; `null` where a direction was not measured whole.
    pub symmetry: Option<DirectionSymmetry>,
}

/// The goodput of two directions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DirectionSymmetry {
    /// Goodput from the client to the server, bits a second.
    pub up_bps: f64,
    /// Its 95 % interval, from eight equal parts of the counted time.
    pub up_interval_bps: [f64; 2],
    /// Goodput from the server to the client, bits a second.
    pub down_bps: f64,
    /// As above.
    pub down_interval_bps: [f64; 2],
    /// Goodput down over goodput up.
    pub ratio: f64,
    /// How far one run is from the next on one path, as a part: more where the hosts, and not the path, are the limit.
    pub between_runs: f64,
    /// Whether the intervals leave each other out and the ratio is further from 1 than that.
    pub differs: bool,
}
