//! The view of request/response measurements: what `narrows measure rr` and `crr` print in every format, and the latency of an
//! idle path beside that of a loaded one.

use crate::diagnosis::verdict::Finding;
use crate::load::rr::RrPlan;
use crate::load::udp::record::Distribution;
use crate::run::measure::{EndCpu, FlowSummary, Remark};
use crate::run::report::RunView;
use crate::words::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the JSON form.
pub const SCHEMA: &str = "narrows.rr/1";

/// A measurement as its reader meets it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RrReport {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Which run it was.
    pub run: RunView,
    /// In the order in which they were measured: one trial, or one of the idle path and one of the loaded path.
    pub phases: Vec<RrPhase>,
    /// The two beside each other, where there are two.
    pub under_load: Option<LatencyUnderLoad>,
}

/// One trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RrPhase {
    /// What was asked for. With a load in it the path was loaded.
    pub plan: RrPlan,
    /// The requesting streams.
    pub streams: Vec<RrStreamView>,
    /// In the order of time; of each interval its streams, then all of them together.
    pub intervals: Vec<RrIntervalView>,
    /// The counted part.
    pub summary: RrSummary,
    /// What went otherwise than planned, with the end that says so.
    pub remarks: Vec<Remark>,
}

/// One stream over the trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RrStreamView {
    /// From 0, the same on both ends.
    pub id: u32,
    /// `address:port` of the client's end; port 0 where each transaction has a connection of its own.
    pub client: String,
    /// `address:port` of the server's end, as above.
    pub server: String,
    /// Completed transactions, the omitted part included.
    pub transactions: u64,
    /// Requests that were given up.
    pub failures: u64,
    /// Requests that the server answered; `None` where its record is missing.
    pub answered: Option<u64>,
    /// Latencies, without the omitted part.
    pub latency_ns: Distribution,
}

/// One interval of one stream, or of all together, as the client saw it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RrIntervalView {
    /// Which stream; `None` for all together.
    pub stream: Option<u32>,
    /// Begin, seconds since the trial began.
    pub from_s: f64,
    /// End.
    pub to_s: f64,
    /// Completed in it.
    pub transactions: u64,
    /// Given up in it.
    pub failures: u64,
    /// Transactions a second.
    pub per_s: f64,
    /// Mean latency of those that were completed in it, ns; `None` where none was.
    pub mean_latency_ns: Option<f64>,
    /// It begins before the omitted part ends: no summary counts it.
    pub omitted: bool,
}

/// The counted part of a trial: after the omitted one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RrSummary {
    /// All streams together, from the first counted instant to the last; `None` where nothing was measured.
    pub total: Option<RrIntervalView>,
    /// Latencies of all streams together.
    pub latency_ns: Distribution,
    /// Connection set-up: of each transaction, or of the streams' own connections; count 0 where it is not known.
    pub connect_ns: Distribution,
    /// What the load carried, each of its flows; empty without one.
    pub load: Vec<FlowSummary>,
    /// What it cost the client, the load included.
    pub client: Option<EndCpu>,
    /// What it cost the server, the load included.
    pub server: Option<EndCpu>,
}

/// The latency of a path without and with a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyUnderLoad {
    /// Latencies of the idle path, all streams together.
    pub idle_ns: Distribution,
    /// Latencies of the loaded path, all streams together.
    pub loaded_ns: Distribution,
    /// What the load adds to the median, ns; negative where it adds nothing.
    pub increase_ns: f64,
    /// The median of the loaded path over that of the idle one.
    pub ratio: f64,
    /// Round trips a minute of the idle path.
    pub idle_rpm: Option<Responsiveness>,
    /// Round trips a minute of the loaded path.
    pub loaded_rpm: Option<Responsiveness>,
    /// Why a figure above is missing, in sentences.
    pub missing: Vec<String>,
    /// The cause, where the load fills a queue that is too long.
    pub finding: Option<Finding>,
    /// Why there is no finding, in a sentence; empty where there is one.
    pub why_none: String,
}

/// Round trips a minute, after draft-ietf-ippm-responsiveness, section *Aggregating the Measurements*, the case without
/// TLS: 60,000 over the mean of the fastest 95 % of the latencies in ms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Responsiveness {
    /// The figure: the mean of the two below, or the first where there is no load.
    pub rpm: f64,
    /// On connections of their own (*foreign*): by the latency of the transactions.
    pub requests_rpm: f64,
    /// On the connections of the load (*self*): by the RTT that its senders' kernels saw, as the draft allows where requests
    /// cannot share them.
    pub load_rpm: Option<f64>,
    /// How far to trust it.
    pub confidence: Confidence,
    /// Standard deviation of the last four moving averages over the newest one; `None` where there are fewer.
    pub variation: Option<f64>,
}

words! {
    /// How stable a figure was, in the draft's words.
    pub enum Confidence {
        /// Fewer than four seconds of it.
        Low = "low",
        /// Four seconds and more, which differ by more than 5 %.
        Medium = "medium",
        /// It was stable within 5 %.
        High = "high",
    }
}
