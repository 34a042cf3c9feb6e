//! The first pass: TTL by TTL with one flow, until the target, a rejection, or silence.

use super::seen::Seen;
use super::step::Want;
use narrows_model::{ProbePurpose, TracePlan};

/// Probes on their way. More would only be sent beyond the target, which limits its ICMP errors.
const WINDOW: usize = 3;

/// The state of the pass.
#[derive(Debug)]
pub struct Survey {
    next_ttl: u16,
}

impl Survey {
    pub(crate) fn new(plan: &TracePlan) -> Self {
        Self { next_ttl: plan.first_ttl.max(1).into() }
    }

    pub(crate) fn want(&mut self, seen: &mut Seen) -> Want {
        let plan = &seen.record.plan;
        let front = seen.farthest.max(plan.first_ttl.saturating_sub(1));
        let silent = front.saturating_add(plan.gap).min(plan.max_ttl);
        let limit = seen.ends.get(&0).copied().unwrap_or(silent);
        if self.next_ttl <= limit.into() {
            if seen.pending() >= WINDOW {
                return Want::Answers;
            }
            let ttl = u8::try_from(self.next_ttl).unwrap_or(u8::MAX);
            self.next_ttl += 1;
            return Want::Probe(ProbePurpose::Sample, 0, ttl, plan.probe_bytes);
        }
        if seen.pending() > 0 && !seen.ends.contains_key(&0) {
            return Want::Answers;
        }
        // A silent hop behind the last one is probed on: its silence may be loss.
        seen.horizon = seen.ends.get(&0).copied().unwrap_or_else(|| front.saturating_add(1).min(plan.max_ttl));
        seen.surveyed = true;
        Want::Next
    }
}
