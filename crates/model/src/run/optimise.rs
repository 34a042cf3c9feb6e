//! The shortest set of settings that gives a path its goodput, and how it was found.

use crate::host::change::Setting;
use crate::run::target::Ending;
use crate::words::place::{Direction, Place};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the JSON form.
pub const SCHEMA: &str = "narrows.optimise/1";

/// The result of `narrows optimise`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OptimiseReport {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The server, in the user's words.
    pub server: String,
    /// The direction that was optimised.
    pub direction: Direction,
    /// The tag of all its runs in the store.
    pub tag: String,
    /// How many runs were measured, diagnoses included.
    pub runs: u64,
    /// How long it took, milliseconds.
    pub elapsed_ms: u64,
    /// Without and with the whole set; `None` without a set, or if the time was over.
    pub gain: Option<OptimiseGain>,
    /// The shortest set found, in the order in which its settings were found.
    pub settings: Vec<OptimisedSetting>,
    /// All that was tried, in order.
    pub tried: Vec<OptimiseTrial>,
    /// Fixes that narrows cannot apply, in words.
    pub advice: Vec<String>,
    /// The verdict of the last diagnosis, in a sentence.
    pub verdict: Option<String>,
    /// Whether the set is still in force on both hosts.
    pub kept: bool,
    /// Why it stopped, in a sentence.
    pub stopped: String,
    /// How it ended.
    pub ending: Ending,
}

/// Goodput without and with a change, in alternation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OptimiseGain {
    /// Runs without, bits per second.
    pub before_bps: Vec<f64>,
    /// Runs with, bits per second.
    pub after_bps: Vec<f64>,
    /// Mean after over mean before.
    pub ratio: f64,
    /// Its 95 % interval.
    pub interval: [f64; 2],
    /// The Hodges–Lehmann shift, bits per second.
    pub shift_bps: f64,
    /// Its 95 % interval; `None` with fewer than 4 runs on a side.
    pub shift_interval_bps: Option<[f64; 2]>,
}

/// A setting of the set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OptimisedSetting {
    /// The host.
    pub at: Place,
    /// The setting.
    pub set: Setting,
    /// The value before, if it can be read by a person.
    pub before: Option<String>,
    /// The cause that it fixes, or `tunable`.
    pub origin: String,
}

/// One thing that was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OptimiseTrial {
    /// The settings, as commands with their hosts.
    pub what: Vec<String>,
    /// The cause that they fix, `tunable`, or `leave-one-out`: the gain is that of having them.
    pub origin: String,
    /// What was measured; `None` if the setting cannot be made.
    pub gain: Option<OptimiseGain>,
    /// What became of it: `kept`, `rolled back`, `needed`, `dropped`, or why it cannot be set.
    pub outcome: String,
}
