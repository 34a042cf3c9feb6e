//! Rounds of samples: each sends one probe to each hop, with the next flow, so that the samples count for the stopping rule, too.

use super::paths::flows_for;
use super::seen::Seen;
use super::step::Want;
use narrows_model::{ProbePurpose, TracePlan};

/// The state of the rounds.
#[derive(Debug)]
pub struct Rounds {
    /// The current one; the survey was the first, 0.
    pub(crate) round: u32,
    /// They go on until the trace is stopped.
    pub(crate) endless: bool,
    ttl: u8,
    begins_us: u64,
}

impl Rounds {
    pub(crate) fn first(plan: &TracePlan, now_us: u64) -> Self {
        Self { round: 1, endless: false, ttl: plan.first_ttl.max(1), begins_us: now_us }
    }

    pub(crate) const fn endless(now_us: u64) -> Self {
        Self { round: 0, endless: true, ttl: 1, begins_us: now_us }
    }

    pub(crate) fn want(&mut self, seen: &Seen, now_us: u64) -> Want {
        let plan = &seen.record.plan;
        if !self.endless && self.round >= plan.rounds {
            return if seen.pending() > 0 { Want::Answers } else { Want::Next };
        }
        if now_us < self.begins_us {
            return Want::Until(self.begins_us);
        }
        let flows = plan.flows.clamp(1, flows_for(1));
        let flow = u16::try_from(self.round % u32::from(flows)).unwrap_or(0);
        let ttl = self.ttl.max(plan.first_ttl).max(1);
        if ttl > seen.limit(flow) || ttl == u8::MAX {
            self.round = self.round.wrapping_add(1);
            self.ttl = plan.first_ttl;
            // A round that took longer than the interval moves the next ones.
            self.begins_us = (self.begins_us + plan.interval_ms.max(10) * 1_000).max(now_us);
            return Want::Until(self.begins_us.min(now_us));
        }
        self.ttl = ttl + 1;
        Want::Probe(ProbePurpose::Sample, flow, ttl, plan.probe_bytes)
    }
}
