//! Hosts by hosts: what is known of each path, as a page draws it.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What of each path a grid shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GridMetric {
    Goodput,
    RoundTrip,
    Loss,
}

impl GridMetric {
    pub const ALL: [Self; 3] = [Self::Goodput, Self::RoundTrip, Self::Loss];

    /// As in an address.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Goodput => "goodput",
            Self::RoundTrip => "rtt",
            Self::Loss => "loss",
        }
    }
}

/// How a path is. The later ones ask for more attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CellState {
    /// No test of it is planned.
    NotTested,
    Good,
    /// A host had no CPU time left: the figure shows nothing of the network.
    Monitor,
    /// A test is planned, and there is no result.
    Missing,
    Failed,
    /// Slow, or it loses packets.
    Bad,
}

impl CellState {
    pub const ALL: [Self; 6] = [Self::Bad, Self::Failed, Self::Missing, Self::Monitor, Self::NotTested, Self::Good];

    /// One letter for each, as a browser gets it.
    pub const fn letter(self) -> char {
        match self {
            Self::NotTested => '.',
            Self::Good => 'g',
            Self::Monitor => 'c',
            Self::Missing => 'm',
            Self::Failed => 'f',
            Self::Bad => 'b',
        }
    }
}

/// What is known of a path.
#[derive(Debug, Clone, PartialEq)]
pub struct GridCell {
    pub state: CellState,
    /// Bits a second, microseconds, or a part of all packets.
    pub value: Option<f64>,
    /// What a load should carry.
    pub expected: Option<f64>,
    /// When it was measured.
    pub at_unix_ms: Option<u64>,
    /// Why there is no figure.
    pub why: String,
}

/// Hosts that stand side by side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GridGroup {
    pub name: String,
    /// Places in the list of hosts: the first, and the one behind the last.
    pub hosts: [usize; 2],
}

/// Paths between hosts, ordered by group. A path that is not there is not tested.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    pub metric: GridMetric,
    pub hosts: Vec<String>,
    pub groups: Vec<GridGroup>,
    /// By sender and receiver.
    pub cells: BTreeMap<[usize; 2], GridCell>,
}

impl Grid {
    pub fn state(&self, from: usize, to: usize) -> CellState {
        self.cells.get(&[from, to]).map_or(CellState::NotTested, |cell| cell.state)
    }
}
