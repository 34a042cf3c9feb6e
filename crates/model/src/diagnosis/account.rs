//! The accounts that a run ends in. Each must balance, and what does not is *unexplained*, never hidden.

use crate::words::place::Place;
use crate::words::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

words! {
    /// How a ceiling's value came about.
    pub enum Method {
        /// From parameters alone.
        Computed = "computed",
        /// By a probe or an experiment.
        Measured = "measured",
        /// From counters of the kernel under load.
        Inferred = "inferred",
    }
}

/// One limit on the goodput.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ceiling {
    /// The id of the cause that it would be if it were the binding one.
    pub id: String,
    /// Where it is.
    pub at: Place,
    /// Goodput under this limit alone.
    pub bps: f64,
    /// Where the true value lies, as far as is known.
    pub interval_bps: [f64; 2],
    /// Whether `bps` is a lower bound: the limit was not reached.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// How the value came about.
    pub method: Method,
    /// The arithmetic with its figures, in one line.
    pub how: String,
}

/// Where the sender's time went, as fractions of the counted time; they sum to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct TimeBudget {
    /// The application had nothing to send.
    pub app_idle: f64,
    /// The receiver's window was full.
    pub receive_window: f64,
    /// The send buffer was full.
    pub send_buffer: f64,
    /// The congestion window, pacing or a local queue held the data back.
    pub congestion_window: f64,
    /// Loss was being repaired.
    pub recovery: f64,
    /// What the counters do not account for.
    pub unexplained: f64,
}
