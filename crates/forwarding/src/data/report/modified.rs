//! What is shown beside the results of a size: the same frames under a modifier, and the devices meanwhile.

use crate::data::modifiers::TableSeen;
use narrows_model::load::frames_report::FrameRate;
use narrows_model::run::sweep::Spread;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A size under a modifier beside the same without it (RFC 2544, section 11).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModifiedView {
    /// The throughput of the same frames without the modifier; where no throughput was asked for, what arrived at line rate.
    pub unmodified: Option<FrameRate>,
    /// The same with it: of a throughput all frames of the load count, those to the hardware broadcast address, too.
    pub modified: Option<FrameRate>,
    /// With ÷ without.
    pub ratio: Option<f64>,
    /// Why there is no ratio, or what it leaves open.
    pub remark: Option<String>,
    /// What was seen of the modifier over the trials of this size that are in the record.
    pub seen: Option<ModifierView>,
}

/// What was seen of a modifier over several trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum ModifierView {
    /// Frames to the hardware broadcast address.
    Broadcast {
        /// That left.
        sent: u64,
        /// That came out: a router must not forward them.
        received: u64,
    },
    /// Management queries.
    Management {
        /// How many were asked.
        asked: u64,
        /// How many were answered rightly.
        answered: u64,
        /// How many were answered with something else.
        wrong: u64,
        /// How long the right answers took, ns.
        answer_ns: Option<Spread>,
        /// What the first one that was not answered rightly met.
        why: Option<String>,
    },
    /// Routing updates.
    Routes {
        /// Updates that announced networks.
        announced: u64,
        /// Updates that withdrew them.
        withdrawn: u64,
        /// The most of the networks that the device had routes to at once, as far as that can be read.
        learned: Option<u64>,
        /// Why an update could not be sent, or what the device learned not be read.
        why: Option<String>,
    },
    /// A table that was filled, and the last check of it.
    Table(TableSeen),
}

/// A device under test over several trials: whether it stayed up, and what interrupts cost it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceView {
    /// Its name in the books.
    pub hop: String,
    /// In how many trials it was watched.
    pub trials: u32,
    /// Whether the tester runs on the same kernel: interrupts and CPU times are those of both.
    pub shared: bool,
    /// In how many it was reset.
    pub resets: u32,
    /// In how many a link came or went.
    pub link_changes: u32,
    /// Hard interrupts a second, of all CPUs.
    pub interrupts_per_second: Option<Spread>,
    /// Hard interrupts for each frame that was sent.
    pub interrupts_per_frame: Option<Spread>,
    /// Runs of the network's receive soft interrupt a second.
    pub net_rx_per_second: Option<Spread>,
    /// The part of its time that the busiest CPU spent in interrupts and soft interrupts.
    pub interrupt_share: Option<Spread>,
    /// Why nothing is known of a trial, if so.
    pub silent: Option<String>,
}
