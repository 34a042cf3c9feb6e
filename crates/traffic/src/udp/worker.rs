//! The work of a data thread: sending or receiving by the plan.

use super::counters::Counters;
use super::outcome::Outcome;
use super::receiver::{Received, Receiver};
use super::sender::{Sender, Sent};
use super::stream::UdpStream;
use crate::common::threads::Control;
use narrows_model::{Place, UdpPlan};
use std::time::Instant;

/// What a data thread leaves.
pub(super) struct Left {
    pub(super) outcome: Outcome,
    pub(super) counted: Counted,
}

/// The totals of a stream.
pub(super) enum Counted {
    Sent(Box<Sent>),
    Received(Box<Received>),
}

/// One data thread.
pub(super) struct Worker<'a> {
    pub(super) place: Place,
    pub(super) plan: &'a UdpPlan,
    pub(super) control: &'a Control<'a>,
    /// The position of the stream within its flow.
    pub(super) turn: u32,
    pub(super) stream: &'a UdpStream,
    pub(super) counters: &'a Counters,
}

impl Worker<'_> {
    /// The thread's body. `moving` is called with the time of the first datagram.
    pub(super) fn run(self, moving: impl FnOnce(Instant)) -> Left {
        let Self { place, plan, control, turn, stream, counters } = self;
        if stream.sends(place) {
            let (outcome, sent) = Sender { stream, plan, place, counters, control, turn }.run(moving);
            Left { outcome, counted: Counted::Sent(Box::new(sent)) }
        } else {
            let (outcome, received) = Receiver { stream, plan, place, counters, control }.run(moving);
            Left { outcome, counted: Counted::Received(Box::new(received)) }
        }
    }
}
