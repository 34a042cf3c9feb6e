//! Watching interfaces: cumulative counters of both ends at some instants, and the view of their rates.

use crate::words::place::Place;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One interface at one instant. Counts are since the interface came to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct InterfaceSample {
    /// Its name.
    pub name: String,
    /// When, by that host's own clock; only differences mean anything.
    pub at_us: u64,
    /// Bytes received, link headers included.
    pub rx_bytes: u64,
    /// Packets received.
    pub rx_packets: u64,
    /// Received and dropped.
    pub rx_dropped: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// To be sent and dropped.
    pub tx_dropped: u64,
}

/// Both ends as their reader watches them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchView {
    /// How long they have been watched.
    pub elapsed_s: f64,
    /// The client, then the server; one that is not watched is not there.
    pub ends: Vec<WatchEnd>,
}

/// One end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchEnd {
    /// Which end.
    pub place: Place,
    /// Its own name.
    pub host: String,
    /// Its interfaces, by their names.
    pub interfaces: Vec<WatchRow>,
    /// Why there is nothing new, where the end does not answer.
    pub silent: Option<String>,
}

/// One interface.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchRow {
    /// Its name.
    pub name: String,
    /// What comes in.
    pub rx: WatchTraffic,
    /// What goes out.
    pub tx: WatchTraffic,
}

/// One way of one interface. What is not known yet is `None`: a rate needs two samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct WatchTraffic {
    /// Bits a second between the two newest samples.
    pub now_bps: Option<f64>,
    /// Packets a second between the two newest samples.
    pub now_pps: Option<f64>,
    /// The most bits a second so far.
    pub peak_bps: Option<f64>,
    /// The most packets a second so far.
    pub peak_pps: Option<f64>,
    /// Bytes since it is watched.
    pub total_bytes: u64,
    /// Packets since it is watched.
    pub total_packets: u64,
    /// Dropped since it is watched.
    pub dropped: u64,
}
