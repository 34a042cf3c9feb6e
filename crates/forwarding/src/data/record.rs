//! What a forwarding benchmark saw: raw, the only thing that is stored. Corrections, validity, results and reconciled accounts are
//! derived from it each time.

use crate::data::modifiers::{BroadcastSeen, ModifierSeen};
use crate::data::plan::{ForwardingPlan, Row};
use crate::data::procedures::Test;
use narrows_model::host::device_state::DeviceSeen;
use narrows_model::host::hop::HopCount;
use narrows_model::load::frames::FrameTrial;
use narrows_model::run::search::SearchRecord;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One trial through the device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForwardingTrial {
    /// The test it belongs to.
    pub test: Test,
    /// Index into [`ForwardingPlan::traffic`].
    pub traffic: usize,
    /// Frame size with FCS; `None`: the mix.
    pub size: Option<u32>,
    /// From 0, of those that repeat it.
    pub repetition: u32,
    /// Since the run began.
    pub at_ms: u64,
    /// Forth; and back, where traffic is bidirectional.
    pub directions: Vec<FrameTrial>,
    /// What the hops counted.
    pub hops: Vec<HopCount>,
    /// What was seen of the traffic's modifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modifier: Option<ModifierSeen>,
    /// What became of the devices under test meanwhile, as far as they can be watched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceSeen>,
    /// What kept it from being made whole: a host of the tester was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
}

/// What was found of one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchOfSize {
    /// Index into [`ForwardingPlan::traffic`].
    pub traffic: usize,
    /// Frame size with FCS; `None`: the mix.
    pub size: Option<u32>,
    /// Every trial of the search.
    pub record: SearchRecord,
    /// What an earlier search found, frames a second, and the repetitions did not confirm: it was searched once more.
    #[serde(default)]
    pub not_confirmed_pps: Option<f64>,
}

/// One measured duration: the time to recover, or the outage of a reset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OutageOfSize {
    /// `recovery` or `reset`.
    pub test: Test,
    /// Index into [`ForwardingPlan::traffic`].
    pub traffic: usize,
    /// Frame size with FCS.
    pub size: Option<u32>,
    /// By frames lost ÷ rate offered, or by time stamps; `None`: there is none, and the remarks say why.
    pub outage_ns: Option<u64>,
    /// At least and at most, by the looks of the receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between_ns: Option<[u64; 2]>,
    /// From when a recovery counts: the end of the overload, by the monotonic clock of the receiver's host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ns: Option<u64>,
    /// What must be known of it: why there is none, that the device did not recover, that frames were lost at other times, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// The longest burst without loss, one repetition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BurstOfSize {
    /// Index into [`ForwardingPlan::traffic`].
    pub traffic: usize,
    /// Frame size with FCS.
    pub size: Option<u32>,
    /// From 0.
    pub repetition: u32,
    /// Frames.
    pub frames: u64,
    /// At which rate they left, frames a second.
    pub offered_pps: f64,
    /// Whether even the longest burst tried passed.
    pub at_most: bool,
}

/// What the whole benchmark saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForwardingRecord {
    /// What was asked for.
    pub plan: ForwardingPlan,
    /// What the tester alone can send and count without loss, frames a second, by `(traffic, size)`.
    pub tester: Vec<TesterMaximum>,
    /// Every trial but those of searches in full, in the order of time.
    pub trials: Vec<ForwardingTrial>,
    /// The searches.
    pub searches: Vec<SearchOfSize>,
    /// Loss curves, as searches of the method `loss_curve`.
    pub curves: Vec<SearchOfSize>,
    /// Bursts.
    pub bursts: Vec<BurstOfSize>,
    /// Recoveries and resets.
    pub outages: Vec<OutageOfSize>,
    /// Why it ended early, if it did: interrupted, device lost.
    pub ended: Option<String>,
}

/// What the tester alone can do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TesterMaximum {
    /// Index into [`ForwardingPlan::traffic`].
    pub traffic: usize,
    /// Frame size with FCS; `None`: the mix.
    pub size: Option<u32>,
    /// Frames a second.
    pub pps: f64,
    /// How it was found.
    pub method: String,
}

impl ForwardingRecord {
    /// Of a benchmark of which nothing was measured yet.
    pub const fn of(plan: ForwardingPlan) -> Self {
        Self {
            plan,
            tester: Vec::new(),
            trials: Vec::new(),
            searches: Vec::new(),
            curves: Vec::new(),
            bursts: Vec::new(),
            outages: Vec::new(),
            ended: None,
        }
    }

    /// The search of a row.
    pub fn search(&self, row: Row) -> Option<&SearchOfSize> {
        self.searches.iter().find(|search| (search.traffic, search.size) == (row.traffic, row.size))
    }
}

impl ForwardingTrial {
    /// Frames to the hardware broadcast address in a direction: 0 forth, 1 back. None where there is no such modifier.
    pub fn broadcast(&self, direction: usize) -> BroadcastSeen {
        match &self.modifier {
            Some(ModifierSeen::Broadcast { directions }) => directions.get(direction).copied().unwrap_or_default(),
            _ => BroadcastSeen::default(),
        }
    }

    /// Those of all directions.
    pub fn broadcasts(&self) -> BroadcastSeen {
        (0..self.directions.len()).fold(BroadcastSeen::default(), |sum, direction| sum.and(self.broadcast(direction)))
    }

    /// Whether it belongs to a row.
    pub fn is_of(&self, row: Row) -> bool {
        (self.traffic, self.size) == (row.traffic, row.size)
    }
}
