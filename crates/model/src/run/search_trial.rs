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
    /// By how much the one-way delay at the end exceeded that at the beginning, microseconds: a queue that filled meanwhile.
    /// Of several streams the one in which it grew least. `None`: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_growth_us: Option<i64>,
    /// Of those received, how many arrived in time that the path took beyond that of the load: the queue that it filled held them. 0
    /// where the plan does not count them.
    #[serde(default)]
    pub queued: u64,
}

impl Observation {
    /// A delay that grows by less may be the hosts' own: interrupts that are put together, a core that wakes up.
    const HOSTS_US: f64 = 1_000.0;

    /// Due and never sent: the tester's loss.
    pub const fn unsent(&self) -> u64 {
        self.intended.saturating_sub(self.sent)
    }

    /// Sent and never received: the path's loss. What was received beyond what was sent makes a trial invalid, so
    /// nothing is hidden by the zero.
    pub const fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.received)
    }

    /// `(lost + queued + unsent) ÷ max(offered, intended)`; `None` where no load.
    pub fn loss_ratio(&self) -> Option<f64> {
        self.ratio(self.lost().saturating_add(self.queued).saturating_add(self.unsent()))
    }

    /// The part of [`Observation::loss_ratio`] that waited in a queue.
    pub fn queued_ratio(&self) -> Option<f64> {
        self.ratio(self.queued)
    }

    /// The same with what a queue took in counted as `queued`, where the delay grew by more than this part of a trial of `duration_ms`:
    /// in the time of the load, `received × duration ÷ (duration + growth)` arrived.
    #[must_use]
    pub fn with_queue(self, least_growth: f64, duration_ms: u64) -> Self {
        let duration_us = duration_ms.saturating_mul(1_000) as f64;
        let growth_us = self.delay_growth_us.map_or(0.0, |us| us as f64);
        if growth_us <= f64::max(least_growth * duration_us, Self::HOSTS_US) {
            return self;
        }
        let queued = (self.received as f64 * growth_us / (duration_us + growth_us)).round() as u64;
        Self { queued, ..self }
    }

    /// The part of [`Observation::loss_ratio`] that was sent, and did not arrive in the time of the load.
    pub fn path_loss_ratio(&self) -> Option<f64> {
        self.ratio(self.lost().saturating_add(self.queued))
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

    #[test]
    fn what_waits_in_a_queue_was_not_forwarded_in_the_time_of_the_load() {
        let of = |growth_us, duration_ms| {
            let seen =
                Observation { intended: 1_250, offered: 1_250, sent: 1_250, received: 1_250, ..Observation::default() };
            Observation { delay_growth_us: growth_us, ..seen }.with_queue(0.00125, duration_ms)
        };
        // A quarter more than the path carries, for a second.
        assert_eq!((of(Some(250_000), 1_000).queued, of(Some(250_000), 1_000).path_loss_ratio()), (250, Some(0.2)));
        for (growth_us, duration_ms) in [(None, 1_000), (Some(-5_000), 1_000), (Some(1_200), 1_000), (Some(900), 100)] {
            assert_eq!(of(growth_us, duration_ms).queued, 0, "{growth_us:?}");
        }
    }
}
