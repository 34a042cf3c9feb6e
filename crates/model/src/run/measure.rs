//! The view of a plain measurement: what `narrows measure tcp` prints in every format.
//!
//! Goodput is what the receiving application took. Where the receiver's record is missing (the other end was lost), it is
//! what the sender's kernel saw acknowledged, and `seen_by` says so.

use crate::load::tcp::TcpPlan;
use crate::load::tcp_info::TcpInfo;
use crate::run::report::RunView;
use crate::run::tcp_columns::TcpColumns;
use crate::words::place::{Flow, Place};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the JSON form.
pub const SCHEMA: &str = "narrows.measure/1";

/// A measurement as its reader meets it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasureReport {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Which run it was.
    pub run: RunView,
    /// What was asked for.
    pub plan: TcpPlan,
    /// The connections.
    pub streams: Vec<StreamView>,
    /// In the order of time; of each flow its streams, then all of them together.
    pub intervals: Vec<IntervalView>,
    /// The counted part of the measurement.
    pub summary: SummaryView,
    /// What went otherwise than planned, with the end that says so.
    pub remarks: Vec<Remark>,
}

/// A sentence of one end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Remark {
    /// Which end.
    pub at: Place,
    /// The sentence.
    pub says: String,
}

/// One connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StreamView {
    /// From 0, the same on both ends.
    pub id: u32,
    /// Which way its data goes.
    pub flow: Flow,
    /// `address:port` of the client's end.
    pub client: String,
    /// `address:port` of the server's end.
    pub server: String,
    /// The sender's congestion control.
    pub congestion_control: Option<String>,
    /// The sender's MSS.
    pub mss_bytes: Option<u32>,
    /// The sender's send buffer at the start.
    pub sndbuf_bytes: Option<u32>,
    /// The receiver's receive buffer at the start.
    pub rcvbuf_bytes: Option<u32>,
    /// How the sender handed its bytes over.
    pub sent_by: Option<String>,
    /// How the receiver took them.
    pub received_by: Option<String>,
    /// With Multipath TCP, what carried it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subflows: Vec<SubflowView>,
}

/// One of the connections that carried a stream of Multipath TCP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubflowView {
    /// `address:port` of the client's end.
    pub client: String,
    /// `address:port` of the server's end.
    pub server: String,
    /// What it carried, bytes of TCP payload.
    pub bytes: Option<u64>,
    /// Segments that its sender retransmitted.
    pub retransmits: Option<u64>,
    /// Its smoothed RTT at the end, microseconds.
    pub rtt_us: Option<u64>,
}

/// One interval of one stream, or of all streams of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IntervalView {
    /// Which way the data went.
    pub flow: Flow,
    /// Which stream; `None` for all of the flow together.
    pub stream: Option<u32>,
    /// The end whose bytes these are: the receiver, or the sender where the receiver's are not known.
    pub seen_by: Place,
    /// Begin, seconds since the trial began on that end.
    pub from_s: f64,
    /// End.
    pub to_s: f64,
    /// Application bytes.
    pub bytes: u64,
    /// Application bits per second.
    pub goodput_bps: f64,
    /// It begins before the omitted part ends: no summary counts it.
    pub omitted: bool,
    /// What the sender's kernel says.
    #[serde(flatten)]
    pub columns: TcpColumns,
    /// What the sending application handed over; of summaries only, and where the sender's record is there.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sent: Option<SentView>,
    /// The sender's kernel's view at the end; of single streams only.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sender: Option<TcpInfo>,
    /// The receiver's kernel's view at the end; of single streams only.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub receiver: Option<TcpInfo>,
}

/// What the sending application handed to its kernel over the counted part.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SentView {
    /// Begin, seconds since the trial began on the sender.
    pub from_s: f64,
    /// End.
    pub to_s: f64,
    /// Application bytes; more than what arrived by what was still under way.
    pub bytes: u64,
    /// Application bits per second.
    pub bps: f64,
}

/// The counted part of the measurement: after the omitted one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SummaryView {
    /// Each flow.
    pub flows: Vec<FlowSummary>,
    /// What it cost the client.
    pub client: Option<EndCpu>,
    /// What it cost the server.
    pub server: Option<EndCpu>,
}

/// One way of data over the counted part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowSummary {
    /// All streams together, from the first counted instant to the last.
    pub total: IntervalView,
    /// Each stream.
    pub streams: Vec<IntervalView>,
    /// Bytes that the sending application handed over; more than what arrived by what is still under way.
    pub sent_bytes: Option<u64>,
    /// Smallest RTT that the sender's kernel saw; `None` below 10 µs, which its time stamps do not resolve.
    pub min_rtt_us: Option<u64>,
    /// Mean of the RTT that the senders' kernels smooth, over the samples of the counted part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_rtt_us: Option<f64>,
    /// Correlation of each interval's goodput with the one before: above 0.25 the seconds of this run are no independent
    /// measurements. `None` where there are fewer than 8 intervals.
    pub lag1: Option<f64>,
}

/// What the measurement cost one end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndCpu {
    /// The core with the least idle time.
    pub busiest: Option<CpuShare>,
    /// Busy cores, the whole host, whatever made them busy.
    pub busy_cores: Option<f64>,
    /// Cores that the threads which move the data took, user and system.
    pub data_threads_cores: Option<f64>,
    /// Where the time of all cores together went.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub host: Option<HostCpu>,
}

/// Where the time of all cores of a host went, in cores: 1.0 is one core wholly, and all of them sum to `cores`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostCpu {
    /// Online cores.
    pub cores: u32,
    /// User code.
    pub user: f64,
    /// The kernel on behalf of processes.
    pub system: f64,
    /// Interrupts, soft ones included.
    pub softirq: f64,
    /// Given to other guests by the hypervisor.
    pub steal: f64,
    /// Nothing to do.
    pub idle: f64,
}

/// Where one core's time went, as fractions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuShare {
    /// The core's number.
    pub cpu: u32,
    /// User code.
    pub user: f64,
    /// The kernel on behalf of processes.
    pub system: f64,
    /// Interrupts.
    pub irq: f64,
    /// Soft interrupts.
    pub softirq: f64,
    /// Given to other guests by the hypervisor.
    pub steal: f64,
    /// Nothing to do.
    pub idle: f64,
}
