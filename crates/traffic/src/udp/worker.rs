//! The life of a data thread: wait for the start, move data, tell how it ended.

use super::counters::Counters;
use super::outcome::Outcome;
use super::receiver::{Received, Receiver};
use super::sender::{Sender, Sent};
use super::stream::UdpStream;
use crate::stop::Stop;
use narrows_model::{Place, UdpPlan};
use std::sync::OnceLock;
use std::sync::mpsc::Sender as Outbox;
use std::time::Instant;

/// What a data thread tells the conductor.
pub(crate) enum Event {
    /// The first datagram leaves or came in.
    Moving(Instant),
    /// The thread is done with its stream.
    Ended {
        /// Of the stream, by position.
        index: usize,
        outcome: Outcome,
        left: Box<Left>,
    },
}

/// What a stream leaves behind.
pub(crate) enum Left {
    Sent(Sent),
    Received(Received),
}

/// What all threads of a trial see.
pub(crate) struct Shared<'a> {
    pub(crate) place: Place,
    pub(crate) plan: &'a UdpPlan,
    /// The user's word, or the peer's.
    pub(crate) stop: &'a Stop,
    /// The conductor's word.
    pub(crate) over: Stop,
    /// Opens once, with the start of the trial.
    pub(crate) gate: OnceLock<()>,
}

/// One data thread.
pub(crate) struct Worker<'a> {
    pub(crate) index: usize,
    /// Where in its flow the stream is.
    pub(crate) turn: u32,
    pub(crate) stream: &'a UdpStream,
    pub(crate) counters: &'a Counters,
    pub(crate) shared: &'a Shared<'a>,
    pub(crate) outbox: Outbox<Event>,
}

impl Worker<'_> {
    /// The thread's body.
    pub(crate) fn run(self) {
        self.shared.gate.wait();
        self.counters.begin();
        let Shared { place, plan, stop, over, .. } = self.shared;
        let (stream, counters) = (self.stream, self.counters);
        let moving = |at| {
            // The conductor is gone only when the trial is.
            let _ = self.outbox.send(Event::Moving(at));
        };
        let (outcome, left) = if stream.sends(*place) {
            let sender = Sender { stream, plan, place: *place, counters, stop, over, turn: self.turn };
            let (outcome, sent) = sender.run(moving);
            (outcome, Left::Sent(sent))
        } else {
            let receiver = Receiver { stream, plan, place: *place, counters, stop, over };
            let (outcome, received) = receiver.run(moving);
            (outcome, Left::Received(received))
        };
        self.counters.end();
        let _ = self.outbox.send(Event::Ended { index: self.index, outcome, left: Box::new(left) });
    }
}
