//! More paths: at each TTL flows are tried until it is 95 % certain that no node was missed.
//!
//! The stopping rule is that of the Multipath Detection Algorithm (Veitch, Augustin, Teixeira, Friedman: *Failure Control in Multipath
//! Route Tracing*, INFOCOM 2009): with `k` nodes seen, as many flows as leave less than 5 % for a (k+1)-th of equal share. It is applied to
//! each TTL as a whole.

use super::seen::Seen;
use super::step::Want;
use narrows_model::{AnswerKind, ProbePurpose};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Unanswered probes in a row after which a TTL is given up.
pub(super) const MISSES: usize = 4;
/// A router that limits its answers gives about one each second.
pub(super) const BACKOFF_US: u64 = 1_100_000;

/// Flows that must be answered where `nodes` were seen, to know with 95 % confidence that there is no other one of equal share.
pub fn flows_for(nodes: usize) -> u16 {
    let k = nodes.max(1) + 1;
    // Inclusion and exclusion: the probability that n flows over k nodes miss at least one.
    let missed = |n: i32| -> f64 {
        let mut choose = 1.0;
        let mut sum = 0.0;
        for i in 1..k {
            let (i_f, k_f) = (float(i), float(k));
            choose *= (k_f - i_f + 1.0) / i_f;
            let term = choose * (1.0 - i_f / k_f).powi(n);
            sum += if i % 2 == 1 { term } else { -term };
        }
        sum
    };
    (1..=1000_u16).find(|n| missed((*n).into()) < 0.05).unwrap_or(1000)
}

const fn float(n: usize) -> f64 {
    n as f64
}

/// What is known of one TTL.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) nodes: BTreeSet<IpAddr>,
    pub(super) answered: BTreeSet<u16>,
    pub(super) tried: BTreeSet<u16>,
    /// Unanswered since the last answer, and when the newest was sent.
    misses: usize,
    sent_us: u64,
    is_end: bool,
}

/// The state of the search.
#[derive(Debug, Default)]
pub struct Paths {
    /// TTLs that need no more, in the order of the horizon.
    done: BTreeSet<u8>,
    next_ttl: u8,
}

impl Paths {
    pub(crate) fn want(&mut self, seen: &Seen, now_us: u64) -> Want {
        let plan = &seen.record.plan;
        let all: Vec<u8> = (plan.first_ttl.max(1)..=seen.horizon).filter(|ttl| !self.done.contains(ttl)).collect();
        if seen.pending() > 0 {
            // What an answer adds changes what is wanted.
            return Want::Answers;
        }
        let mut later: Option<u64> = None;
        // Those behind the last one first, so that all get their turn.
        let turn =
            all.iter().filter(|ttl| **ttl > self.next_ttl).chain(all.iter().filter(|ttl| **ttl <= self.next_ttl));
        for ttl in turn.copied() {
            let known = known(seen, ttl);
            let wanted = flows_for(known.nodes.len()).min(plan.flows);
            let flow = (0..plan.flows).find(|flow| !known.tried.contains(flow));
            let enough = known.answered.len() >= wanted.into() || known.nodes.is_empty() || known.misses >= MISSES;
            let (false, false, Some(flow)) = (enough, known.is_end, flow) else {
                self.done.insert(ttl);
                continue;
            };
            let due = if known.misses > 0 { known.sent_us + BACKOFF_US } else { 0 };
            if due > now_us {
                later = Some(later.map_or(due, |other| other.min(due)));
                continue;
            }
            self.next_ttl = ttl;
            return Want::Probe(ProbePurpose::Paths, flow, ttl, plan.probe_bytes);
        }
        later.map_or(Want::Next, Want::Until)
    }
}

pub(super) fn known(seen: &Seen, ttl: u8) -> Known {
    let mut known = Known::default();
    for probe in seen.record.probes.iter().filter(|it| it.ttl == ttl && it.purpose != ProbePurpose::Mtu) {
        known.tried.insert(probe.flow);
        known.sent_us = probe.sent_us;
        match &probe.answer {
            Some(answer) => {
                known.answered.insert(probe.flow);
                known.misses = 0;
                if answer.kind == AnswerKind::TimeExceeded {
                    known.nodes.insert(answer.from);
                } else {
                    known.is_end = true;
                }
            }
            None => known.misses += 1,
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use super::flows_for;

    #[test]
    fn the_stopping_points_are_those_of_the_paper() {
        assert_eq!([1, 2, 3, 4, 5, 6].map(flows_for), [6, 11, 16, 21, 27, 33]);
    }
}
