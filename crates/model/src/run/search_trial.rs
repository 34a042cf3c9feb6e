//! One trial of a search, as the tester saw it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the tester saw of one trial. Counts are of datagrams (or frames) over all streams of the direction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Observation {
    /// Due by load × duration.
    pub intended: u64,
    /// Handed to the socket or the device, whether it took them or not.
    pub offered: u64,
    /// Taken by the socket or the device.
    pub sent: u64,
    /// Arrived, each counted once, after waiting for those under way.
    pub received: u64,
    /// What the trial took with its set-up and its waiting; less than the duration asked for counts as that duration.
    pub effective_ms: u64,
    /// Why the trial says nothing about its load: the rate was not kept, an end stalled, counters disagree.
    pub invalid: Option<String>,
    /// By how much the one-way delay of the last datagram exceeded that of the first, microseconds: a queue that filled meanwhile.
    /// Of several streams the one in which it grew least. `None`: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_growth_us: Option<i64>,
}

impl Observation {
    /// Due and never sent: the tester's loss.
    pub const fn unsent(&self) -> u64 {
        self.intended.saturating_sub(self.sent)
    }

    /// Sent and never received: the path's loss. What was received beyond what was sent makes a trial invalid, so
    /// nothing is hidden by the zero.
    pub const fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.received)
    }

    /// `(lost + unsent) ÷ max(offered, intended)`; `None` where no load.
    pub fn loss_ratio(&self) -> Option<f64> {
        self.ratio(self.lost().saturating_add(self.unsent()))
    }

    /// The part of [`Observation::loss_ratio`] that was sent and lost.
    pub fn path_loss_ratio(&self) -> Option<f64> {
        self.ratio(self.lost())
    }

    fn ratio(&self, count: u64) -> Option<f64> {
        let of = self.offered.max(self.intended);
        (of > 0).then(|| count as f64 / of as f64)
    }
}

/// One trial of a search: what was asked for, and what was seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadTrial {
    /// Intended load.
    pub load_pps: f64,
    /// Duration asked for.
    pub duration_ms: u64,
    /// When its observation came, since the search began.
    pub ended_at_ms: u64,
    /// What the tester saw.
    pub seen: Observation,
}

/// What of the tester, not of the path, ended a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TesterLimit {
    /// The upper bound comes from datagrams that were never sent.
    Unsent,
    /// Trials at the upper bound stayed invalid.
    Invalid,
    /// The result is at what the tester carries by itself.
    AtMaximum,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_never_sent_is_loss_but_not_of_the_path() {
        let seen = Observation { intended: 1_000, offered: 980, sent: 950, received: 940, ..Observation::default() };
        assert_eq!((seen.unsent(), seen.lost()), (50, 10));
        assert_eq!(seen.loss_ratio(), Some(0.06));
        assert_eq!(seen.path_loss_ratio(), Some(0.01));
        assert_eq!(Observation::default().loss_ratio(), None);
    }
}
