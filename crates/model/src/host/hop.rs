//! What a device between a generator and a receiver counted: of its own kernel, through `narrows serve` or by SNMP.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much one of a hop's counters grew over a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HopCount {
    /// Its name in the plan.
    pub hop: String,
    /// Frames that its input took.
    pub input: Option<u64>,
    /// Frames that its output sent.
    pub output: Option<u64>,
    /// Frames that it says it dropped, by reason: `nftables rule`, `qdisc r1`, `no route`, `rx_missed r0`, …
    pub drops: Vec<DropCount>,
    /// By how much its counts may be wrong: packets of its own that were counted too.
    pub uncertainty: u64,
    /// The counters that were read, or why there are none.
    pub source: String,
    /// Why it could not be read, if it could not.
    pub silent: Option<String>,
    /// Why the counters cannot be right by themselves, if so: they wrapped, stalled, went back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anomaly: Option<String>,
}

/// One reason of drops.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DropCount {
    /// In words.
    pub reason: String,
    /// Frames.
    pub frames: u64,
}
