//! Responsiveness under working conditions (draft-ietf-ippm-responsiveness-09): every probe and interval of a test, and its report.

use crate::load::udp::record::Distribution;
use crate::run::target::Ending;
use crate::words::place::{Direction, Flow};
use crate::words::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the report's JSON form.
pub const SCHEMA: &str = "narrows.responsiveness/1";

/// What a test does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResponsivenessPlan {
    /// The directions of the load; both: first down, then up.
    pub direction: Direction,
    /// ID: interval at which stability is evaluated, ms.
    pub interval_ms: u64,
    /// The longest load of a direction, ms.
    pub limit_ms: u64,
    /// MNP: the most connections that carry load.
    pub connections_max: u32,
    /// MPS: the most probes a second, both kinds together.
    pub probes_per_s: u32,
    /// Probes of the idle path before the load.
    pub idle_probes: u32,
}

impl Default for ResponsivenessPlan {
    fn default() -> Self {
        Self {
            direction: Direction::Both,
            interval_ms: 1_000,
            limit_ms: 20_000,
            connections_max: 16,
            probes_per_s: 100,
            idle_probes: 20,
        }
    }
}

impl ResponsivenessPlan {
    /// INP and INC: the connections of the first interval, and those that each further one adds.
    pub const STEP: u32 = 1;
    /// PTC: the share of the goodput that probes may have.
    pub const PROBES_SHARE: f64 = 0.05;
    /// Bytes of a probe on a new connection and of one on a connection with load, as the draft estimates them.
    pub const PROBE_PAIR_BYTES: f64 = 6_000.0;
    /// The longest load of a direction, ms.
    pub const LIMIT_MS_MAX: u64 = 60_000;

    /// Errors: what a test cannot have, in a sentence.
    pub fn check(&self) -> Result<(), String> {
        if !(100..=10_000).contains(&self.interval_ms) {
            return Err("the interval must be from 100 ms to 10 s".to_owned());
        }
        if self.limit_ms < self.interval_ms || self.limit_ms > Self::LIMIT_MS_MAX {
            return Err("the time limit must be from one interval to 60 s".to_owned());
        }
        if !(1..=64).contains(&self.connections_max) {
            return Err("the connections must be from 1 to 64".to_owned());
        }
        Ok(())
    }
}

/// A probe on a new connection. Times are µs; `at_us` is its end, from the start of the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForeignProbe {
    /// When it ended.
    pub at_us: u64,
    /// TCP handshake.
    pub tcp_us: u64,
    /// TLS handshake, per round trip.
    pub tls_us: u64,
    /// Request and response.
    pub http_us: u64,
}

/// A request on a connection that carries load. Times are µs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SelfProbe {
    /// When it ended, from the start of the load.
    pub at_us: u64,
    /// Request and response.
    pub http_us: u64,
}

/// An interval of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResponsivenessInterval {
    /// Its end, µs from the start of the load.
    pub end_us: u64,
    /// Connections that carried load.
    pub connections: u32,
    /// Bytes of the objects that all of them transferred.
    pub bytes: u64,
}

/// The load of one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResponsivenessLoad {
    /// Where the data goes.
    pub flow: Flow,
    /// Its intervals.
    pub intervals: Vec<ResponsivenessInterval>,
    /// Probes on new connections.
    pub foreign: Vec<ForeignProbe>,
    /// Probes on connections that carry load.
    pub own: Vec<SelfProbe>,
    /// Probes without an answer.
    pub failed_probes: u64,
    /// How it ended.
    pub ending: Ending,
}

/// A test, probe by probe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResponsivenessRecord {
    /// What was asked for.
    pub plan: ResponsivenessPlan,
    /// The server as the user named it.
    pub asked: String,
    /// The address and port of its test server.
    pub address: String,
    /// How its key was checked: a sentence.
    pub trust: String,
    /// Congestion control of this host's connections.
    pub congestion_control: Option<String>,
    /// Probes of the idle path, before any load.
    pub idle: Vec<ForeignProbe>,
    /// The loads, in their order.
    pub loads: Vec<ResponsivenessLoad>,
}

words! {
    /// How sure a figure is (draft, section *Confidence of Test-Results*).
    pub enum Confidence {
        /// Fewer intervals than a moving average takes in.
        Low = "low",
        /// Enough, but not stable.
        Medium = "medium",
        /// Stable.
        High = "high",
    }

    /// The four classes of the draft.
    pub enum Band {
        /// Below 300 RPM: round trips above 200 ms.
        Poor = "poor",
        /// To 1,000 RPM: 60 ms.
        Fair = "fair",
        /// To 6,000 RPM: 10 ms.
        Good = "good",
        /// Above.
        Excellent = "excellent",
    }
}

impl Band {
    /// The class of a value in RPM.
    pub fn of(rpm: f64) -> Self {
        match rpm {
            _ if rpm < 300.0 => Self::Poor,
            _ if rpm < 1_000.0 => Self::Fair,
            _ if rpm < 6_000.0 => Self::Good,
            _ => Self::Excellent,
        }
    }
}

/// Responsiveness of a direction, in round trips per minute.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Responsiveness {
    /// The mean of both kinds of probes.
    pub rpm: f64,
    /// Of new connections.
    pub foreign_rpm: f64,
    /// Of connections that carry load.
    pub self_rpm: f64,
    /// Its class.
    pub band: Band,
    /// How sure it is.
    pub confidence: Confidence,
}

/// One direction of the report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResponsivenessDirection {
    /// Where the data goes.
    pub flow: Flow,
    /// Responsiveness; `None`: no probe of a kind was answered.
    pub responsiveness: Option<Responsiveness>,
    /// Goodput of the last intervals, bits per second.
    pub goodput_bps: f64,
    /// How sure that is.
    pub goodput_confidence: Confidence,
    /// Connections that carried load at the end.
    pub connections: u32,
    /// How long the load lasted, ms.
    pub duration_ms: u64,
    /// Working latency: round trips of new connections (TCP, TLS, HTTP) in the last intervals, ns.
    pub working_ns: Distribution,
    /// 95 of 100 of them are not above it.
    pub working_p95_ns: u64,
    /// Requests on connections that carry load in the last intervals, ns.
    pub self_ns: Distribution,
    /// 95 of 100 of them are not above it.
    pub self_p95_ns: u64,
    /// Median of the working latency above that of the idle path, ns.
    pub increase_ns: Option<i64>,
    /// Median of requests on connections with load above the working latency, ns: what waits in the sender, and retransmissions.
    pub gap_ns: Option<i64>,
    /// Probes without an answer.
    pub failed_probes: u64,
    /// How the load ended.
    pub ending: Ending,
}

/// A direction in one interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResponsivenessPoint {
    /// Where the data goes.
    pub flow: Flow,
    /// Its start, seconds from the start of the load.
    pub from_s: f64,
    /// Its end.
    pub to_s: f64,
    /// Goodput, bits per second.
    pub goodput_bps: f64,
    /// Connections that carried load.
    pub connections: u32,
    /// Median round trip of new connections, µs.
    pub working_p50_us: Option<f64>,
    /// Median of requests on connections that carry load, µs.
    pub self_p50_us: Option<f64>,
}

/// The report of a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResponsivenessReport {
    /// [`SCHEMA`].
    pub schema: String,
    /// What was asked for.
    pub plan: ResponsivenessPlan,
    /// The server as the user named it.
    pub asked: String,
    /// The address and port of its test server.
    pub address: String,
    /// Congestion control of this host's connections.
    pub congestion_control: Option<String>,
    /// Idle latency: round trips of new connections (TCP, TLS, HTTP) before the load, ns.
    pub idle_ns: Distribution,
    /// 95 of 100 of them are not above it.
    pub idle_p95_ns: u64,
    /// The directions, in their order.
    pub directions: Vec<ResponsivenessDirection>,
    /// Over time, one point for each interval of each direction.
    #[serde(default)]
    pub series: Vec<ResponsivenessPoint>,
    /// What a reader must know.
    pub remarks: Vec<String>,
}
