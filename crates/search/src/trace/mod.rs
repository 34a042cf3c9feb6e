//! The planner of a trace: answers in, next probe out.
//!
//! It looks for the hops with one flow ([`survey`]), samples all of them in rounds, each with another flow ([`rounds`]), looks for more
//! paths until the MDA stopping rule holds ([`paths`]), and measures the path MTU ([`mtu`]). Of a plan that names the ports of its flows the
//! routers of each flow are looked for instead ([`flows`]). What was seen is one record; everything that
//! a reader sees is derived from it ([`view`]). The diagnosis reads that view, too, so it is here and not in `views`.

pub mod flows;
pub mod mtu;
pub mod paths;
pub mod rounds;
pub mod seen;
pub mod step;
pub mod survey;
pub mod view;

use narrows_model::{AnswerKind, TraceAnswer, TracePlan, TraceRecord};
use seen::Seen;
use step::Want;
pub use step::{Order, Step};

/// Time between two probes: a trace is no load.
pub const APART_US: u64 = 5_000;

#[derive(Debug)]
enum Phase {
    Survey(survey::Survey),
    Rounds(rounds::Rounds),
    Paths(paths::Paths),
    Flows(flows::Flows),
    Mtu(mtu::Mtu),
    Done,
}

#[derive(Debug)]
pub struct Planner {
    seen: Seen,
    phase: Phase,
    sent_us: Option<u64>,
}

impl Planner {
    /// Nothing sent yet. `serial`: each probe waits for the answer of the one before (a TCP flow has one connection at a time).
    pub fn new(plan: TracePlan, started_unix_us: u64, serial: bool) -> Self {
        let phase = Phase::Survey(survey::Survey::new(&plan));
        Self { seen: Seen::new(plan, started_unix_us, serial), phase, sent_us: None }
    }

    /// What to do now. Each order counts as sent at `now_us`.
    pub fn next(&mut self, now_us: u64) -> Step {
        self.seen.expire(now_us);
        let free_us = self.sent_us.map_or(0, |sent| sent + APART_US);
        if now_us < free_us {
            return Step::Wait(free_us);
        }
        loop {
            if let Some(expiry) = self.seen.first_expiry().filter(|_| self.seen.serial) {
                return Step::Wait(expiry);
            }
            let want = match &mut self.phase {
                Phase::Survey(phase) => phase.want(&mut self.seen),
                Phase::Rounds(phase) => phase.want(&self.seen, now_us),
                Phase::Paths(phase) => phase.want(&self.seen, now_us),
                Phase::Flows(phase) => phase.want(&self.seen, now_us),
                Phase::Mtu(phase) => phase.want(&mut self.seen, now_us),
                Phase::Done => return Step::Done,
            };
            match want {
                Want::Probe(purpose, flow, ttl, bytes) => {
                    self.sent_us = Some(now_us);
                    let id = self.seen.send(purpose, flow, ttl, bytes, now_us);
                    return Step::Send(Order { id, flow, ttl, bytes });
                }
                Want::Until(time) if time > now_us => return Step::Wait(time),
                Want::Until(_) => {}
                Want::Answers => {
                    // With no probe in flight there is nothing to wait for: ask the phase again.
                    return Step::Wait(self.seen.first_expiry().unwrap_or(now_us + APART_US));
                }
                Want::Next => self.advance(now_us),
            }
        }
    }

    fn advance(&mut self, now_us: u64) {
        let plan = &self.seen.record.plan;
        self.phase = match &self.phase {
            Phase::Survey(_) if !plan.ports.is_empty() => Phase::Flows(flows::Flows::new(now_us)),
            Phase::Survey(_) => Phase::Rounds(rounds::Rounds::first(plan, now_us)),
            Phase::Rounds(rounds) if rounds.endless => Phase::Done,
            Phase::Rounds(_) => Phase::Paths(paths::Paths::default()),
            Phase::Paths(_) => Phase::Mtu(mtu::Mtu::new(&self.seen)),
            Phase::Mtu(_) if plan.continuous => Phase::Rounds(rounds::Rounds::endless(now_us)),
            Phase::Flows(_) | Phase::Mtu(_) | Phase::Done => Phase::Done,
        };
    }

    /// An answer to a probe. One that is forgotten, or was answered before, is not counted.
    pub fn answer(&mut self, id: u64, mut answer: TraceAnswer) {
        // A router that rejects with *port unreachable* is not the target.
        if answer.kind == AnswerKind::Reached && answer.from != self.seen.record.plan.target {
            answer.kind = AnswerKind::Unreachable(3);
        }
        self.seen.answer(id, answer);
    }

    /// An answer that quotes too little of its probe to tell which one it was. With one on its way in this flow it is that one; otherwise
    /// from now on each probe waits for its answer.
    pub fn answer_of_flow(&mut self, flow: u16, answer: TraceAnswer) {
        match self.seen.only_pending(flow) {
            Some(id) => self.answer(id, answer),
            None => {
                self.seen.serial = true;
                self.seen.record.unmatched += 1;
            }
        }
    }

    /// The probe was not sent, since it is larger than the first link takes.
    pub fn too_big_here(&mut self, id: u64) {
        self.seen.drop_pending(id);
    }

    /// The largest IP packet that the first link takes, bytes.
    pub fn set_first_link_mtu(&mut self, bytes: u32) {
        self.seen.record.first_link_mtu = Some(bytes);
    }

    /// What was seen so far.
    pub const fn record(&self) -> &TraceRecord {
        &self.seen.record
    }

    /// The names of the addresses so far, and how the trace ended.
    pub fn set_names(&mut self, names: std::collections::BTreeMap<std::net::IpAddr, String>) {
        self.seen.record.names = names;
    }

    /// The trace was ended early.
    pub fn interrupt(&mut self) {
        self.seen.record.ending = narrows_model::Ending::Interrupted;
    }

    pub fn finish(self) -> TraceRecord {
        self.seen.record
    }

    /// Rounds that were begun.
    pub const fn rounds(&self) -> u32 {
        match &self.phase {
            Phase::Rounds(rounds) => rounds.round,
            _ => 0,
        }
    }
}
