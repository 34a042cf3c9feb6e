//! The reconciled counters of a trial.

use crate::data::modifiers::BroadcastSeen;
use narrows_model::host::hop::DropCount;
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

impl Accounting {
    /// Where frames were lost, why, and how many; what counters may be wrong by is no loss. A packet of a device's own is one more behind it
    /// and one less before it: no place has lost more than is missing in all.
    pub fn losses(&self) -> Vec<(String, String, u64)> {
        let drops =
            self.lines.iter().flat_map(|line| &line.drops).fold(0, |sum: u64, it| sum.saturating_add(it.frames));
        let mut open = u64::try_from(self.lost).unwrap_or(0).saturating_sub(drops);
        let mut places = Vec::new();
        for line in &self.lines {
            let mut beyond = |count: Option<i64>| {
                let frames =
                    count.and_then(|count| u64::try_from(count).ok()).filter(|count| *count > line.uncertainty)?;
                let frames = frames.min(open);
                open -= frames;
                Some((frames, "no counter explains them".to_owned())).filter(|_| frames > 0)
            };
            places.extend(beyond(line.lost_before).map(|(frames, why)| (format!("before {}", line.hop), why, frames)));
            for drop in line.drops.iter().filter(|drop| drop.frames > 0) {
                places.push((line.hop.clone(), drop.reason.clone(), drop.frames));
            }
            places.extend(beyond(line.unexplained).map(|(frames, why)| (line.hop.clone(), why, frames)));
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_of_a_devices_own_is_no_frame_lost_behind_it() {
        // The device dropped all that is missing, and sent one frame more of its own, which the receiver did not count.
        let drops = vec![DropCount { reason: "qdisc".to_owned(), frames: 500 }];
        let dut = AccountLine { hop: "dut".to_owned(), unexplained: Some(-1), drops, ..AccountLine::default() };
        let receiver = AccountLine { hop: "receiver".to_owned(), lost_before: Some(1), ..AccountLine::default() };
        let mut of = Accounting { lines: vec![dut, receiver], lost: 500, ..Accounting::default() };
        assert_eq!(of.losses(), [("dut".to_owned(), "qdisc".to_owned(), 500)]);
        of.lost = 501;
        assert_eq!(of.losses().len(), 2);
    }
}
