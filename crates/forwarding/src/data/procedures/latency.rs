//! Latency at the throughput.

use super::about::{About, Made, Procedure, REPETITIONS, TRIAL_MS};
use crate::data::settings::{Default as D, Kind, Value, settings};
use narrows_model::run::sweep::Spread;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

settings! {
    /// Latency at the throughput.
    pub struct LatencyTest {
        /// Trial duration.
        pub duration_ms: u64 = "duration", Kind::Duration(TRIAL_MS), D::Presets(Value::Ms(5_000), Value::Ms(120_000));
        /// Repetitions.
        pub repetitions: u32 = "repetitions", Kind::Whole(REPETITIONS), D::Presets(Value::Whole(5), Value::Whole(20));
    }
}

impl Procedure for LatencyTest {
    const ABOUT: About = About {
        key: "latency",
        what: "latency at the throughput (RFC 2544, 26.2; RFC 8219)",
        title: "latency",
        word: "latency",
        made: Made::Usually,
        at_throughput: true,
    };
}

/// Latency of one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct LatencyResults {
    /// Latency at the throughput.
    #[serde(rename = "latency")]
    pub figures: Option<LatencyOfSize>,
}

/// Latency at the throughput over all repetitions of one size (RFC 2544, section 26.2; RFC 8219, section 7).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyOfSize {
    /// Index into the plan's traffic.
    pub traffic: usize,
    /// Frame size with FCS; `None`: the mix.
    pub size: Option<u32>,
    /// The load at which it was measured, frames a second.
    pub load_pps: f64,
    /// How many trials.
    pub repetitions: u32,
    /// Time stamps over all of them.
    pub stamps: u64,
    /// The smallest.
    pub min_ns: u64,
    /// The mean: RFC 2544's latency.
    pub mean_ns: f64,
    /// The median: RFC 8219's typical latency.
    pub p50_ns: u64,
    /// 99 of 100 are not above it.
    pub p99_ns: u64,
    /// 999 of 1,000: RFC 8219's worst-case latency.
    pub p99_9_ns: u64,
    /// The largest.
    pub max_ns: u64,
    /// Packet delay variation (RFC 8219): p99.9 − minimum.
    pub pdv_ns: u64,
    /// The means of the repetitions, ns.
    pub means_ns: Option<Spread>,
}
