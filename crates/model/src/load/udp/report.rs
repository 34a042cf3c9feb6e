//! The view of a plain UDP measurement: what `narrows measure udp` prints in every format.
//!
//! What the sender's socket refused is *unsent* and never *lost*; what a missing record would have said is `None`, not zero.
//! Rates are of UDP payload.

use crate::load::udp::record::{Distribution, Unsent};
use crate::load::udp::{UdpPlan, UdpRate};
use crate::run::measure::{EndCpu, Remark};
use crate::run::report::RunView;
use crate::words::place::{Flow, Place};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the JSON form.
pub const SCHEMA: &str = "narrows.measure-udp/1";

/// A UDP measurement as its reader meets it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasureUdpReport {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Which run it was.
    pub run: RunView,
    /// What was asked for.
    pub plan: UdpPlan,
    /// The streams.
    pub streams: Vec<UdpStreamView>,
    /// In the order of time; of each flow its streams, then all of them together.
    pub intervals: Vec<UdpInterval>,
    /// The counted part of the measurement.
    pub summary: UdpSummary,
    /// What went otherwise than planned, with the end that says so.
    pub remarks: Vec<Remark>,
}

/// One stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UdpStreamView {
    /// From 0, the same on both ends.
    pub id: u32,
    /// Which way its data goes.
    pub flow: Flow,
    /// `address:port` of the client's end.
    pub client: String,
    /// `address:port` of the server's end.
    pub server: String,
    /// The largest datagram that it sends, bytes of payload.
    pub datagram_bytes: Option<u32>,
    /// IP packet size that the path carries in one piece.
    pub path_mtu_bytes: Option<u32>,
    /// The sender's send buffer, bytes of kernel memory.
    pub sndbuf_bytes: Option<u32>,
    /// The receiver's receive buffer, bytes of kernel memory.
    pub rcvbuf_bytes: Option<u32>,
    /// How the sender handed its datagrams over.
    pub sent_by: Option<String>,
    /// How the receiver took them.
    pub received_by: Option<String>,
}

/// One interval of one stream, or of all streams of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UdpInterval {
    /// Which way the data went.
    pub flow: Flow,
    /// Which stream; `None` for all of the flow together.
    pub stream: Option<u32>,
    /// Begin, seconds since the trial began on the receiving end (on the sending one where the receiver's are not known).
    pub from_s: f64,
    /// End.
    pub to_s: f64,
    /// It begins before the omitted part ends: no summary counts it.
    pub omitted: bool,
    /// The sender's part, where it is known.
    pub sent: Option<SentPart>,
    /// The receiver's part, where it is known.
    pub received: Option<ReceivedPart>,
}

/// What the sender did in an interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SentPart {
    /// Datagrams that the socket took.
    pub datagrams: u64,
    /// Their payload.
    pub bytes: u64,
    /// Bits of payload a second.
    pub bps: f64,
    /// Datagrams a second.
    pub pps: f64,
    /// System calls.
    pub calls: u64,
    /// Those that failed.
    pub errors: u64,
    /// Datagrams that the socket refused.
    pub unsent: u64,
}

/// What the receiver saw in an interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReceivedPart {
    /// Datagrams that arrived, copies included.
    pub datagrams: u64,
    /// Their payload.
    pub bytes: u64,
    /// Bits of payload a second.
    pub bps: f64,
    /// Datagrams a second.
    pub pps: f64,
    /// Missed in this interval; the summary takes back those that arrived after all.
    pub lost: u64,
    /// Lost of all that should have arrived; `None` where there was nothing.
    pub loss: Option<f64>,
    /// Further copies.
    pub duplicates: u64,
    /// Overtaken.
    pub reordered: u64,
    /// Jitter (RFC 3550) at the end of the interval; of several streams the largest.
    pub jitter_ns: f64,
    /// Dropped for want of room in the socket's buffer.
    pub socket_drops: Option<u64>,
}

/// The counted part of the measurement: after the omitted one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UdpSummary {
    /// Each flow.
    pub flows: Vec<UdpFlowSummary>,
    /// What it cost the client.
    pub client: Option<EndCpu>,
    /// What it cost the server.
    pub server: Option<EndCpu>,
}

/// One way of data over the counted part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UdpFlowSummary {
    /// Which way.
    pub flow: Flow,
    /// The load that was asked for.
    pub asked: UdpRate,
    /// All streams together.
    pub total: UdpTotal,
    /// Each stream.
    pub streams: Vec<UdpTotal>,
    /// Socket buffers that are smaller than was wanted.
    pub short_buffers: Vec<ShortBuffer>,
}

/// One stream, or all of a flow, over the counted part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UdpTotal {
    /// Which stream; `None` for all of the flow together.
    pub stream: Option<u32>,
    /// The sender's part, where it is known.
    pub sent: Option<SentTotal>,
    /// The receiver's part, where it is known.
    pub received: Option<ReceivedTotal>,
}

/// What a sender did. Distributions and `skipped`, `unsent` by reason and `burst_max` are of the whole trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SentTotal {
    /// Datagrams that the socket took.
    pub datagrams: u64,
    /// Their payload.
    pub bytes: u64,
    /// Bits of payload a second.
    pub bps: f64,
    /// Datagrams a second.
    pub pps: f64,
    /// Achieved of what was asked: 1 is all of it; `None` where the trial asked for as many as possible.
    pub of_asked: Option<f64>,
    /// System calls; 0 where the sender reports only what it sent.
    pub calls: u64,
    /// Those that failed.
    pub errors: u64,
    /// Datagrams that the socket refused.
    pub unsent: u64,
    /// Of the datagrams that were handed over, those that the socket took; `None` where there was none, or where the sender does not
    /// report what was refused.
    pub success: Option<f64>,
    /// Datagrams that were handed over, a second: those that were taken and those that were refused.
    pub offered_pps: f64,
    /// By reason.
    pub unsent_by: Option<Unsent>,
    /// Given up after a stall rather than sent in a burst.
    pub skipped: Option<u64>,
    /// Gaps between departures, ns.
    pub gaps_ns: Option<Distribution>,
    /// The most datagrams that left back to back.
    pub burst_max: Option<u64>,
}

/// What a receiver saw. Distributions, extents, bursts of loss and jitter are of the whole trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReceivedTotal {
    /// Datagrams that arrived, copies included.
    pub datagrams: u64,
    /// Their payload.
    pub bytes: u64,
    /// Bits of payload a second.
    pub bps: f64,
    /// Datagrams a second.
    pub pps: f64,
    /// Sent and never arrived.
    pub lost: u64,
    /// Lost of all that should have arrived; `None` where there was nothing.
    pub loss: Option<f64>,
    /// Sent after the last one that arrived, when the receiver may have stopped counting: neither arrived nor lost.
    pub uncounted: u64,
    /// Further copies.
    pub duplicates: u64,
    /// Overtaken (RFC 4737).
    pub reordered: u64,
    /// The largest reordering extent, in datagrams.
    pub reorder_extent_max: Option<u64>,
    /// Arrived so late that their place was forgotten.
    pub late: Option<u64>,
    /// Runs of consecutive losses.
    pub loss_bursts: Option<u64>,
    /// The longest of them.
    pub loss_burst_max: Option<u64>,
    /// Dropped for want of room in the socket's buffer.
    pub socket_drops: Option<u64>,
    /// Jitter (RFC 3550) at the end; of several streams the largest.
    pub jitter_ns: f64,
    /// One-way delay above the smallest one (PDV), ns.
    pub delay_variation_ns: Option<Distribution>,
    /// Gaps between arrivals, ns.
    pub gaps_ns: Option<Distribution>,
    /// Where arrival times come from: `kernel` or `user`.
    pub stamps: Option<String>,
    /// Receive minus send time by the two hosts' wall clocks, the smallest, ns: a one-way delay only within the clocks' error.
    pub min_clock_difference_ns: Option<i64>,
}

/// A socket buffer that is smaller than was wanted, and what would allow more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShortBuffer {
    /// On which end.
    pub at: Place,
    /// `send` or `receive`.
    pub buffer: String,
    /// What was wanted, bytes of kernel memory.
    pub wanted_bytes: u64,
    /// What was obtained, bytes of kernel memory.
    pub obtained_bytes: u64,
    /// The parameter that would allow more.
    pub sysctl: String,
    /// The value that it needs.
    pub needs: u64,
}
