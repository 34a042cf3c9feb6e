//! The packet ledger: where the packets of a flow went, stage by stage, in double entry. Derived, never stored.

use crate::words::place::{Flow, Place};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One stage on the way from the send call to the receive call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stage {
    /// `unsent`, `send-buffer`, `send-filter`, `qdisc`, `nic-tx`, `path`, `nic-rx`, `softnet`, `receive-filter`,
    /// `reassembly`, `checksum`, `receive-buffer`, `delivered`.
    pub id: String,
    /// Where it is.
    pub at: Place,
    /// Packets that came in.
    pub entered: u64,
    /// Packets that ended here.
    pub dropped: u64,
    /// By how much `dropped` may be wrong, since other traffic shares the counter; 0 on a quiet host.
    pub uncertainty: u64,
    /// Whether a counter of this stage says so, or it is what the neighbours' counters leave.
    pub counted: bool,
    /// The counters that it was read from, or why there is none.
    pub source: String,
}

/// The remark of a ledger to which one end contributed nothing.
pub const ONE_END_SILENT: &str = "one end gave no counters: loss there cannot be distinguished from loss on the path";

impl Ledger {
    /// Whether one end gave no counters: what it lost is not known apart from what the path lost.
    pub fn one_end_is_silent(&self) -> bool {
        self.remarks.iter().any(|remark| remark == ONE_END_SILENT)
    }
}

/// The ledger of one flow over one trial. `offered = Σ dropped + delivered + unexplained`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Ledger {
    /// Which way the packets went.
    pub flow: Flow,
    /// What is counted: `datagrams` or `segments`.
    pub unit: String,
    /// Packets that the application handed over.
    pub offered: u64,
    /// In the order of the way.
    pub stages: Vec<Stage>,
    /// Packets that the receiving application got, each once.
    pub delivered: u64,
    /// Copies that the path made, which are not in `delivered`.
    pub duplicated: u64,
    /// What no counter accounts for: positive where packets are missing, negative where counters claim too much.
    pub unexplained: i64,
    /// By how much `unexplained` may be wrong.
    pub uncertainty: u64,
    /// What would make it surer.
    pub remarks: Vec<String>,
}
