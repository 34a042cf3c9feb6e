//! The view of a search: what `narrows search` prints in every format. Derived from the search's record.

use crate::run::report::{PathProfileView, RunView};
use crate::run::search::{Goal, GoalBounds, GoalResult, LoadTrial, LossPoint, SearchPlan, Spent};
use crate::words::place::Flow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the JSON form.
pub const SCHEMA: &str = "narrows.search/1";

/// A search as its reader meets it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchReport {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Which run it was.
    pub run: RunView,
    /// Which way the load went.
    pub flow: Flow,
    /// What a datagram is, and what it takes on the wire.
    pub unit: LoadUnit,
    /// The sizes of a mix of datagrams, bytes of UDP payload; empty where all have one size.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<u32>,
    /// The profile of the path before the first trial; absent where none was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_profile: Option<PathProfileView>,
    /// What was sought.
    pub plan: SearchPlan,
    /// Every trial in the order of time, the invalid ones too.
    pub trials: Vec<LoadTrial>,
    /// Where each goal stood after each trial.
    pub history: Vec<BoundsAt>,
    /// One for each goal, in the plan's order; none of a loss curve.
    pub goals: Vec<GoalView>,
    /// Loss at falling loads; of a loss curve only.
    pub curve: Vec<LossPoint>,
    /// What must be known of the whole.
    pub remarks: Vec<String>,
    /// What the time of the search went into.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spent: Vec<Spent>,
}

/// What one packet of the load is. Of a mix both are averages.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadUnit {
    /// Bytes of UDP payload.
    pub payload_bytes: f64,
    /// Bytes on an Ethernet wire: headers, FCS, preamble and gap included.
    pub wire_bytes: f64,
}

impl LoadUnit {
    /// Ethernet's header (14), FCS (4), preamble (8) and gap (12).
    pub const ETHERNET_BYTES: f64 = 38.0;

    /// A datagram over Ethernet without a tag, in one packet.
    pub fn datagram(payload_bytes: u32, family: crate::words::place::Family) -> Self {
        // The shortest frame has 46 bytes between its header and its FCS.
        let packet = (f64::from(payload_bytes) + 8.0 + f64::from(family.header_bytes())).max(46.0);
        Self { payload_bytes: f64::from(payload_bytes), wire_bytes: packet + Self::ETHERNET_BYTES }
    }

    /// `datagrams of 512 B`; of a list of sizes `datagrams of 64 and 1000 B in turn (532 B on average)`.
    pub fn words(&self, sizes: &[u32]) -> String {
        let mean = self.payload_bytes;
        match sizes {
            [] | [_] => format!("datagrams of {mean:.0} B"),
            [few @ .., last] if few.len() < 5 => {
                let few: Vec<String> = few.iter().map(u32::to_string).collect();
                format!("datagrams of {} and {last} B in turn ({mean:.0} B on average)", few.join(", "))
            }
            many => format!("a mix of {} datagrams ({mean:.0} B on average)", many.len()),
        }
    }

    /// Payload of so many bits of IP packets of 1500 bytes a second, where the limit counts packets, and where it counts all that
    /// Ethernet adds to each: smaller datagrams then leave less.
    pub fn payload_of(&self, packets_bps: f64) -> [f64; 2] {
        const FULL_BYTES: f64 = 1500.0;
        let packet = (self.wire_bytes - Self::ETHERNET_BYTES).max(self.payload_bytes);
        let on_wire = packets_bps * (FULL_BYTES + Self::ETHERNET_BYTES) / FULL_BYTES;
        [on_wire * self.payload_bytes / (packet + Self::ETHERNET_BYTES), packets_bps * self.payload_bytes / packet]
    }

    /// A load in all its units.
    pub fn load(&self, pps: f64) -> LoadView {
        LoadView { pps, payload_bps: pps * self.payload_bytes * 8.0, wire_bps: pps * self.wire_bytes * 8.0 }
    }
}

#[test]
fn a_mix_of_datagrams_is_no_size() {
    let unit = LoadUnit { payload_bytes: 532.0, wire_bytes: 598.0 };
    assert_eq!(unit.words(&[]), "datagrams of 532 B");
    // A bucket of 20 Mbit/s of frames passes 19.8 of full packets, and of datagrams of 200 bytes 16.5 of payload.
    let [least, most] = LoadUnit { payload_bytes: 200.0, wire_bytes: 266.0 }.payload_of(19.8e6);
    assert!(least < 16.5e6 && (17.3e6..17.4e6).contains(&most), "{least} {most}");
    assert_eq!(unit.words(&[64, 1000]), "datagrams of 64 and 1000 B in turn (532 B on average)");
    assert_eq!(unit.words(&[532; 9]), "a mix of 9 datagrams (532 B on average)");
}

/// A load in all its units.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadView {
    /// Packets a second.
    pub pps: f64,
    /// Bits of payload a second.
    pub payload_bps: f64,
    /// Bits a second on the wire.
    pub wire_bps: f64,
}

/// Where the goals stood at one instant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BoundsAt {
    /// Since the search began.
    pub at_ms: u64,
    /// In the plan's order.
    pub bounds: Vec<GoalBounds>,
}

/// One goal and what was found for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GoalView {
    /// What was sought.
    pub goal: Goal,
    /// What was found.
    pub result: GoalResult,
    /// The highest load that passes.
    pub lower: Option<LoadView>,
    /// The lowest load that fails.
    pub upper: Option<LoadView>,
    /// The forwarding rate to expect at the lower bound.
    pub conditional_throughput: Option<LoadView>,
    /// Why a bound is missing, whose bound it is, or by how much a queue may raise it; nothing where both were found.
    pub why: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::place::Family;

    #[test]
    fn the_wire_counts_all_that_a_frame_takes() {
        // RFC 2544's smallest frame: 64 bytes with FCS, 84 on the wire; 18 bytes of payload over IPv4.
        assert!((LoadUnit::datagram(18, Family::Ipv4).wire_bytes - 84.0).abs() < 1e-9);
        assert!((LoadUnit::datagram(1, Family::Ipv4).wire_bytes - 84.0).abs() < 1e-9, "shorter ones are padded");
        assert!((LoadUnit::datagram(1472, Family::Ipv4).wire_bytes - 1538.0).abs() < 1e-9);
        let line = LoadUnit::datagram(1452, Family::Ipv6).load(1e9 / 8.0 / 1538.0);
        assert!((line.wire_bps - 1e9).abs() < 1e-3);
    }
}
