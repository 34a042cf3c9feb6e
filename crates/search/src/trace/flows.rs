//! The routers of given flows: each hop is probed with the ports of each flow, so that the way of each flow of a load is known.

use super::paths::{BACKOFF_US, MISSES, flows_for, known};
use super::seen::Seen;
use super::step::Want;
use narrows_model::ProbePurpose;

/// Probes of a flow to a hop: those without an answer are repeated.
const TRIES: u64 = 3;
/// Maximum duration: a router that rate-limits its answers would prolong the trace.
const LONGEST_US: u64 = 4_000_000;

/// The state of the search.
#[derive(Debug)]
pub struct Flows {
    begun_us: u64,
    round: u64,
    next: usize,
}

impl Flows {
    pub(crate) const fn new(now_us: u64) -> Self {
        Self { begun_us: now_us, round: 0, next: 0 }
    }

    /// The flows take turns, so that the first answers of a hop are of many of them.
    pub(crate) fn want(&mut self, seen: &Seen, now_us: u64) -> Want {
        let plan = &seen.record.plan;
        let first = plan.first_ttl.max(1);
        let last = seen.farthest.saturating_add(1).min(plan.max_ttl);
        let hops = usize::from(last.saturating_sub(first)) + 1;
        while self.round < TRIES && now_us < self.begun_us + LONGEST_US {
            let begins_us = self.begun_us + self.round * BACKOFF_US;
            if now_us < begins_us {
                return Want::Until(begins_us);
            }
            while self.next < hops * plan.ports.len() {
                let (flow, hop) = (self.next / hops, self.next % hops);
                let (Ok(flow), Ok(hop)) = (u16::try_from(flow), u8::try_from(hop)) else { return Want::Next };
                self.next += 1;
                let ttl = first.saturating_add(hop);
                let known = known(seen, ttl);
                let alone = known.nodes.len() <= 1 && known.answered.len() >= flows_for(1).into();
                let silent = known.nodes.is_empty() && known.tried.len() >= MISSES;
                if !alone && !silent && !known.answered.contains(&flow) {
                    return Want::Probe(ProbePurpose::Paths, flow, ttl, plan.probe_bytes);
                }
            }
            (self.round, self.next) = (self.round + 1, 0);
        }
        if seen.pending() > 0 { Want::Answers } else { Want::Next }
    }
}
