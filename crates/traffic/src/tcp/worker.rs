//! The life of a data thread: wait for the start, move data, tell how it ended.

use crate::application::Pace;
use crate::counters::Counters;
use crate::outcome::Outcome;
use crate::payload::Payload;
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::stop::Stop;
use narrows_model::{Flow, Limit, Place, TcpPlan};
use std::net::TcpStream;
use std::sync::mpsc::Sender as Outbox;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// What a data thread tells the conductor.
#[derive(Debug)]
pub(crate) enum Event {
    /// The first byte came in.
    Moving(Instant),
    /// The thread is done with its stream.
    Ended {
        /// Of the stream, by position.
        index: usize,
        outcome: Outcome,
        method: &'static str,
    },
}

/// The rates that the streams of a flow share, where the imitated application has one.
#[derive(Debug)]
pub(crate) struct Paces {
    write: [Option<Pace>; 2],
    read: [Option<Pace>; 2],
}

impl Paces {
    pub(crate) fn new(plan: &TcpPlan) -> Self {
        let two = |bps| [Pace::new(bps), Pace::new(bps)];
        Self { write: two(plan.application.write_bps), read: two(plan.application.read_bps) }
    }

    fn of(&self, sends: bool, flow: Flow) -> Option<&Pace> {
        let paces = if sends { &self.write } else { &self.read };
        paces[usize::from(flow == Flow::Down)].as_ref()
    }
}

/// What all threads of a trial see.
pub(crate) struct Shared<'a> {
    pub(crate) place: Place,
    pub(crate) plan: &'a TcpPlan,
    /// The user's word, or the peer's.
    pub(crate) stop: &'a Stop,
    /// The conductor's word.
    pub(crate) over: Stop,
    pub(crate) payload: Option<Payload>,
    /// What is sent where the payload's way turns out to be impossible.
    pub(crate) plain: OnceLock<Payload>,
    pub(crate) paces: Paces,
    /// Opens once, with the start of the trial.
    pub(crate) gate: OnceLock<Instant>,
}

/// One data thread.
pub(crate) struct Worker<'a> {
    pub(crate) index: usize,
    pub(crate) flow: Flow,
    pub(crate) socket: Arc<TcpStream>,
    pub(crate) counters: &'a Counters,
    pub(crate) shared: &'a Shared<'a>,
    pub(crate) outbox: Outbox<Event>,
}

impl Worker<'_> {
    /// The thread's body.
    pub(crate) fn run(self) {
        let start = *self.shared.gate.wait();
        self.counters.begin();
        let (outcome, method) = match &self.shared.payload {
            Some(payload) if self.flow.sender() == self.shared.place => self.send(payload, start),
            _ => self.receive(start),
        };
        self.counters.end();
        // The conductor is gone only when the trial is.
        let _ = self.outbox.send(Event::Ended { index: self.index, outcome, method });
    }

    fn send(&self, payload: &Payload, start: Instant) -> (Outcome, &'static str) {
        let plan = self.shared.plan;
        let (deadline, total_bytes) = match plan.limit {
            Limit::DurationMs(ms) => (start.checked_add(Duration::from_millis(ms)), None),
            Limit::BytesPerStream(bytes) => (None, Some(bytes)),
        };
        Sender {
            socket: &self.socket,
            counters: self.counters,
            stop: self.shared.stop,
            over: &self.shared.over,
            payload,
            plain: &self.shared.plain,
            message_bytes: plan.message_bytes as usize,
            deadline,
            total_bytes,
            pace: self.shared.paces.of(true, self.flow),
            cpu_us_per_mib: plan.application.write_cpu_us_per_mib,
            start,
        }
        .run()
    }

    fn receive(&self, start: Instant) -> (Outcome, &'static str) {
        let plan = self.shared.plan;
        Receiver {
            socket: &self.socket,
            counters: self.counters,
            stop: self.shared.stop,
            over: &self.shared.over,
            until_end_of_data: matches!(plan.limit, Limit::BytesPerStream(_)),
            pace: self.shared.paces.of(false, self.flow),
            cpu_us_per_mib: plan.application.read_cpu_us_per_mib,
            start,
        }
        .run(|at| {
            let _ = self.outbox.send(Event::Moving(at));
        })
    }
}
