//! Conditions under which a device is measured once more, beside the same frames without them (RFC 2544, section 11): what is
//! planned, and what was seen of it in a trial.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Frames to the hardware broadcast address in one direction of a trial. They are no part of the frames that the direction counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct BroadcastSeen {
    /// Frames due.
    pub due: u64,
    /// Frames handed to the device.
    pub handed: u64,
    /// Frames that left, as far as the device tells.
    pub sent: u64,
    /// Frames that came out: a bridge floods them, a router must not forward them.
    pub received: u64,
}

impl BroadcastSeen {
    /// Both together.
    pub const fn and(self, other: Self) -> Self {
        Self {
            due: self.due.saturating_add(other.due),
            handed: self.handed.saturating_add(other.handed),
            sent: self.sent.saturating_add(other.sent),
            received: self.received.saturating_add(other.received),
        }
    }

    /// Frames that did not come out, and were not to.
    pub const fn not_forwarded(&self) -> u64 {
        self.sent.saturating_sub(self.received)
    }
}

/// Management queries of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct ManagementSeen {
    /// How many were asked.
    pub asked: u64,
    /// How many were answered rightly.
    pub answered: u64,
    /// How many were answered with something else: an error, another type, a time that went back.
    pub wrong: u64,
    /// How long the right answers took, ns, in the order in which they came.
    pub answer_ns: Vec<u64>,
    /// What the first one that was not answered rightly met, in words.
    pub why: Option<String>,
}

/// Routing updates of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct RoutesSeen {
    /// Updates that announced networks.
    pub announced: u64,
    /// Updates that withdrew them.
    pub withdrawn: u64,
    /// How often the port had no room for one, which was tried again: the device counts those as dropped.
    #[serde(default)]
    pub refused: u64,
    /// The most of the networks that the device had routes to at once, as far as its kernel can be read.
    pub learned: Option<u64>,
    /// Why an update could not be sent, or what the device learned not be read.
    pub why: Option<String>,
}

/// A table that was filled, as its check by traffic found it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct TableSeen {
    /// How long it took to add the entries, ms.
    pub install_ms: u64,
    /// How long after that the check began of which all frames arrived, ms; 0: the first one.
    pub converge_ms: u64,
    /// Frames of the last check, to addresses drawn over the entries.
    pub sent: u64,
    /// Of those, that arrived.
    pub arrived: u64,
    /// Control frames, which the full table must not forward.
    pub control_sent: u64,
    /// Of those, that arrived nevertheless.
    pub control_arrived: u64,
}

/// What was seen of a modifier in a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum ModifierSeen {
    /// Of [`Modifier::Broadcast`].
    Broadcast {
        /// Forth; and back, where traffic is bidirectional.
        directions: Vec<BroadcastSeen>,
    },
    /// Of [`Modifier::Management`].
    Management(ManagementSeen),
    /// Of [`Modifier::Routes`].
    Routes(RoutesSeen),
    /// Of [`Modifier::Table`].
    Table(TableSeen),
}

impl ModifierSeen {
    /// What several trials saw, together; of two kinds the first.
    pub fn and(self, other: &Self) -> Self {
        match (self, other) {
            (Self::Broadcast { mut directions }, Self::Broadcast { directions: more }) => {
                for (at, more) in more.iter().enumerate() {
                    match directions.get_mut(at) {
                        Some(sum) => *sum = sum.and(*more),
                        None => directions.push(*more),
                    }
                }
                Self::Broadcast { directions }
            }
            (Self::Management(mut sum), Self::Management(more)) => {
                sum.asked = sum.asked.saturating_add(more.asked);
                sum.answered = sum.answered.saturating_add(more.answered);
                sum.wrong = sum.wrong.saturating_add(more.wrong);
                sum.answer_ns.extend_from_slice(&more.answer_ns);
                sum.why = sum.why.or_else(|| more.why.clone());
                Self::Management(sum)
            }
            (Self::Routes(mut sum), Self::Routes(more)) => {
                sum.announced = sum.announced.saturating_add(more.announced);
                sum.withdrawn = sum.withdrawn.saturating_add(more.withdrawn);
                sum.refused = sum.refused.saturating_add(more.refused);
                sum.learned = sum.learned.max(more.learned);
                sum.why = sum.why.or_else(|| more.why.clone());
                Self::Routes(sum)
            }
            (this, _) => this,
        }
    }

    /// Frames of it that hops count beside the test frames and the frames to the broadcast address: queries with their answers,
    /// routing updates.
    pub const fn other_frames(&self) -> u64 {
        match self {
            Self::Broadcast { .. } | Self::Table(_) => 0,
            Self::Management(seen) => seen.asked.saturating_mul(2),
            Self::Routes(seen) => seen.announced.saturating_add(seen.withdrawn),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_trials_saw_is_summed_up_by_kind() {
        let one = BroadcastSeen { due: 10, handed: 10, sent: 9, received: 1 };
        let sum = ModifierSeen::Broadcast { directions: vec![one] };
        let both = sum.and(&ModifierSeen::Broadcast { directions: vec![one, one] });
        let two = BroadcastSeen { due: 20, handed: 20, sent: 18, received: 2 };
        assert_eq!(both, ModifierSeen::Broadcast { directions: vec![two, one] });
        assert_eq!(two.not_forwarded(), 16);
        let seen = ManagementSeen { asked: 3, answered: 1, wrong: 1, answer_ns: vec![5], why: None };
        let ModifierSeen::Management(sum) = ModifierSeen::Management(seen.clone())
            .and(&ModifierSeen::Management(ManagementSeen { why: Some("silence".to_owned()), ..seen }))
        else {
            panic!("another kind")
        };
        assert_eq!((sum.asked, sum.wrong, sum.answer_ns.len(), sum.why.as_deref()), (6, 2, 2, Some("silence")));
        assert_eq!(ModifierSeen::Management(sum.clone()).other_frames(), 12);
        assert_eq!(both.clone().and(&ModifierSeen::Management(sum)), both, "another kind adds nothing");
    }
}
