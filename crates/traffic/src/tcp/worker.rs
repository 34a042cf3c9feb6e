//! The work of a data thread: sending or receiving by the plan.

use super::application::Pace;
use super::counters::Counters;
use super::outcome::Outcome;
use super::payload::Payload;
use super::receiver::Receiver;
use super::sender::Sender;
use crate::common::threads::Control;
use narrows_model::{Flow, Limit, Place, TcpPlan};
use std::net::TcpStream;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// What a data thread leaves.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) outcome: Outcome,
    pub(super) method: &'static str,
}

/// The rates that the streams of a flow share, where the emulated application has one.
#[derive(Debug)]
pub(super) struct Paces {
    write: [Option<Pace>; 2],
    read: [Option<Pace>; 2],
}

impl Paces {
    pub(super) fn new(plan: &TcpPlan) -> Self {
        let two = |bps| [Pace::new(bps), Pace::new(bps)];
        Self { write: two(plan.application.write_bps), read: two(plan.application.read_bps) }
    }

    fn of(&self, sends: bool, flow: Flow) -> Option<&Pace> {
        let paces = if sends { &self.write } else { &self.read };
        paces[usize::from(flow == Flow::Down)].as_ref()
    }
}

/// What all threads of a trial share.
pub(super) struct Shared<'a> {
    pub(super) place: Place,
    pub(super) plan: &'a TcpPlan,
    pub(super) control: &'a Control<'a>,
    /// `None` on an end that only receives.
    pub(super) payload: Option<Payload>,
    /// What is sent where the payload's method turns out to be impossible.
    pub(super) plain: OnceLock<Payload>,
    pub(super) paces: Paces,
}

impl Shared<'_> {
    /// The thread's body. `moving` is called by a receiver with the time of its first byte.
    pub(super) fn work(
        &self,
        flow: Flow,
        socket: &TcpStream,
        counters: &Counters,
        start: Instant,
        moving: impl FnOnce(Instant),
    ) -> Left {
        let (outcome, method) = match &self.payload {
            Some(payload) if flow.sender() == self.place => self.send(flow, socket, counters, payload, start),
            _ => self.receive(flow, socket, counters, start, moving),
        };
        Left { outcome, method }
    }

    fn send(
        &self,
        flow: Flow,
        socket: &TcpStream,
        counters: &Counters,
        payload: &Payload,
        start: Instant,
    ) -> (Outcome, &'static str) {
        let plan = self.plan;
        let (deadline, total_bytes) = match plan.limit {
            Limit::DurationMs(ms) => (start.checked_add(Duration::from_millis(ms)), None),
            Limit::BytesPerStream(bytes) => (None, Some(bytes)),
        };
        Sender {
            socket,
            counters,
            control: self.control,
            payload,
            plain: &self.plain,
            message_bytes: plan.message_bytes as usize,
            deadline,
            total_bytes,
            pace: self.paces.of(true, flow),
            cpu_us_per_mib: plan.application.write_cpu_us_per_mib,
            start,
        }
        .run()
    }

    fn receive(
        &self,
        flow: Flow,
        socket: &TcpStream,
        counters: &Counters,
        start: Instant,
        moving: impl FnOnce(Instant),
    ) -> (Outcome, &'static str) {
        let plan = self.plan;
        Receiver {
            socket,
            counters,
            control: self.control,
            until_end_of_data: matches!(plan.limit, Limit::BytesPerStream(_)),
            pace: self.paces.of(false, flow),
            cpu_us_per_mib: plan.application.read_cpu_us_per_mib,
            receive: plan.receive,
            start,
        }
        .run(moving)
    }
}
