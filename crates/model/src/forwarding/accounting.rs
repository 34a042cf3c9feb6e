//! The reconciled counters of a trial.

use crate::forwarding::modifiers::BroadcastSeen;
use crate::forwarding::record::DropCount;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One hop's line in the accounting of a trial: frames in, frames out, and the drops it counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct AccountLine {
    /// `generator`, the name of a hop, `receiver`.
    pub hop: String,
    /// Frames in; the generator has none.
    pub input: Option<u64>,
    /// Frames out; the receiver has none.
    pub output: Option<u64>,
    /// Its drops by reason.
    pub drops: Vec<DropCount>,
    /// What the hop before sent and this one did not get; negative where it counts more.
    pub lost_before: Option<i64>,
    /// Frames to the hardware broadcast address that it rightly did not forward: no drops.
    #[serde(rename = "kept_back", default)]
    pub not_forwarded: u64,
    /// In, less out, less drops, less what it rightly did not forward: what the hop itself cannot account for.
    pub unexplained: Option<i64>,
    /// By how much both may be wrong.
    pub uncertainty: u64,
    /// Why its counters cannot be believed or were not read, if so.
    pub trouble: Option<String>,
}

/// The counters of one direction of a trial, reconciled. Derived, never stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Accounting {
    /// From the generator to the receiver.
    pub lines: Vec<AccountLine>,
    /// Frames sent and not received, those to the hardware broadcast address left out.
    pub lost: i64,
    /// Frames to the hardware broadcast address: they are in the lines, and no loss where they do not come out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broadcast: Option<BroadcastSeen>,
    /// Where they were lost, in words, with the reason where a hop gives one.
    pub found: Vec<String>,
    /// The first hop where the counters disagree beyond their own error, and how: the trial is invalid.
    pub disagreement: Option<String>,
}

impl AccountLine {
    /// Where it lost frames, why, and how many; what its counters may be wrong by is no loss.
    pub fn losses(&self) -> Vec<(String, String, u64)> {
        let beyond = |count: Option<i64>| {
            count.and_then(|count| u64::try_from(count).ok()).filter(|count| *count > self.uncertainty)
        };
        let mut places = Vec::new();
        if let Some(frames) = beyond(self.lost_before) {
            places.push((format!("before {}", self.hop), "no counter explains them".to_owned(), frames));
        }
        for drop in self.drops.iter().filter(|drop| drop.frames > 0) {
            places.push((self.hop.clone(), drop.reason.clone(), drop.frames));
        }
        if let Some(frames) = beyond(self.unexplained) {
            places.push((self.hop.clone(), "no counter explains them".to_owned(), frames));
        }
        places
    }
}
