//! What a trace saw so far, and which probes are still on their way.

use narrows_model::trace::MAX_PROBES;
use narrows_model::{AnswerKind, Ending, ProbePurpose, TraceAnswer, TracePlan, TraceProbe, TraceProtocol, TraceRecord};
use std::collections::{BTreeMap, BTreeSet};

/// After the survey, a probe expires four times the longest RTT plus this time after it was sent.
const PATIENCE_US: u64 = 200_000;
/// The kernel sends a SYN again after this time (RFC 6298 section 2, `TCP_TIMEOUT_INIT`): a later answer may be to the second one.
const SYN_AGAIN_US: u64 = 1_000_000;

/// The record and what is derived of it.
#[derive(Debug)]
pub struct Seen {
    pub(crate) record: TraceRecord,
    /// One probe at a time.
    pub(crate) serial: bool,
    /// The lowest TTL that ended each flow.
    pub(crate) ends: BTreeMap<u16, u8>,
    /// The highest TTL with a router of any flow.
    pub(crate) farthest: u8,
    /// The last TTL of a round.
    pub(crate) horizon: u8,
    /// The survey is over: waits are as short as the path.
    pub(crate) surveyed: bool,
    max_rtt_us: u64,
    /// Probes on their way, by number.
    pending: BTreeSet<u64>,
}

impl Seen {
    pub(crate) fn new(plan: TracePlan, started_unix_us: u64, serial: bool) -> Self {
        let record = TraceRecord {
            plan,
            started_unix_us,
            probes: Vec::new(),
            forgotten: 0,
            unmatched: 0,
            other_ports: BTreeMap::new(),
            first_link_mtu: None,
            mtu_done: false,
            names: BTreeMap::new(),
            ending: Ending::Complete,
            back: None,
        };
        let (ends, pending) = (BTreeMap::new(), BTreeSet::new());
        Self { record, serial, ends, farthest: 0, horizon: 0, surveyed: false, max_rtt_us: 0, pending }
    }

    fn probe(&self, id: u64) -> Option<&TraceProbe> {
        self.record.probes.get(usize::try_from(id.checked_sub(self.record.forgotten)?).ok()?)
    }

    pub(crate) fn send(&mut self, purpose: ProbePurpose, flow: u16, ttl: u8, bytes: u32, sent_us: u64) -> u64 {
        if self.record.probes.len() >= MAX_PROBES {
            let half = MAX_PROBES / 2;
            self.record.probes.drain(..half);
            self.record.forgotten += half as u64;
        }
        let id = self.record.forgotten + self.record.probes.len() as u64;
        self.record.probes.push(TraceProbe { purpose, flow, ttl, bytes, sent_us, answer: None });
        self.pending.insert(id);
        id
    }

    pub(crate) fn answer(&mut self, id: u64, answer: TraceAnswer) {
        // What comes later may answer the kernel's second SYN, which nobody has seen leave.
        if !self.pending.remove(&id) && self.record.plan.protocol == TraceProtocol::Tcp {
            self.record.unmatched += 1;
            return;
        }
        let Some(at) = id.checked_sub(self.record.forgotten).and_then(|at| usize::try_from(at).ok()) else { return };
        let Some(probe) = self.record.probes.get_mut(at).filter(|it| it.answer.is_none()) else { return };
        self.max_rtt_us = self.max_rtt_us.max(answer.at_us.saturating_sub(probe.sent_us));
        if answer.kind == AnswerKind::TimeExceeded {
            self.farthest = self.farthest.max(probe.ttl);
            // Where the survey stopped at a lost probe the path goes on.
            if self.surveyed && self.ends.is_empty() {
                self.horizon = self.horizon.max(self.farthest.saturating_add(1)).min(self.record.plan.max_ttl);
            }
        } else if answer.kind.is_end() {
            let end = self.ends.entry(probe.flow).or_insert(probe.ttl);
            *end = probe.ttl.min(*end);
        }
        probe.answer = Some(answer);
    }

    /// How long an answer is waited for, microseconds.
    pub(crate) fn patience_us(&self) -> u64 {
        let wait = self.record.plan.wait_ms.saturating_mul(1_000);
        let wait = if self.record.plan.protocol == TraceProtocol::Tcp { wait.min(SYN_AGAIN_US) } else { wait };
        if self.surveyed { wait.min(self.max_rtt_us.saturating_mul(4) + PATIENCE_US) } else { wait }
    }

    pub(crate) fn expire(&mut self, now_us: u64) {
        let patience = self.patience_us();
        let record = &self.record;
        self.pending.retain(|id| {
            let at = id.checked_sub(record.forgotten).and_then(|at| usize::try_from(at).ok());
            at.and_then(|at| record.probes.get(at)).is_some_and(|it| it.sent_us.saturating_add(patience) > now_us)
        });
    }

    /// When the oldest probe on its way is given up, microseconds.
    pub(crate) fn first_expiry(&self) -> Option<u64> {
        self.pending.first().and_then(|id| self.probe(*id)).map(|it| it.sent_us + self.patience_us())
    }

    pub(crate) fn pending(&self) -> usize {
        self.pending.len()
    }

    pub(crate) fn is_pending(&self, id: u64) -> bool {
        self.pending.contains(&id)
    }

    pub(crate) fn drop_pending(&mut self, id: u64) {
        self.pending.remove(&id);
    }

    pub(crate) fn only_pending(&self, flow: u16) -> Option<u64> {
        let mut of_flow = self.pending.iter().filter(|id| self.probe(**id).is_some_and(|it| it.flow == flow));
        let first = of_flow.next().copied();
        if of_flow.next().is_none() { first } else { None }
    }

    /// The answer to a probe, if there is one.
    pub(crate) fn answer_to(&self, id: u64) -> Option<&TraceAnswer> {
        self.probe(id)?.answer.as_ref()
    }

    /// The last TTL that a flow is sent to.
    pub(crate) fn limit(&self, flow: u16) -> u8 {
        self.ends.get(&flow).copied().unwrap_or(self.horizon)
    }
}
