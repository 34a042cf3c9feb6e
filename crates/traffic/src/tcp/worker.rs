//! What the data threads have: all of them together, and each for its stream.

use super::application::{Pace, nanos_since};
use super::payload::Payload;
use crate::common::connections::Layer;
use crate::common::counters;
use crate::common::limits::CALL_LIMIT;
use crate::common::outcome::Outcome;
use crate::common::placing::Together;
use crate::common::threads::Control;
use narrows_model::{Flow, Limit, Place, TcpPlan};
use narrows_sys::clock;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Bytes and calls of a stream.
pub(super) type Counters = counters::Counters<2>;

/// What a data thread leaves.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) outcome: Outcome,
    pub(super) method: &'static str,
    /// It has its last words when the stream has been counted.
    pub(super) layer: Option<Box<dyn Layer>>,
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
}

/// What all threads of a trial share.
pub(super) struct Shared<'a> {
    pub(super) place: Place,
    pub(super) plan: &'a TcpPlan,
    pub(super) control: &'a Control<'a>,
    /// `None` on an end that only receives.
    pub(super) payload: Option<Payload>,
    /// What is sent where the payload's method turns out to be impossible, and why it is.
    pub(super) plain: OnceLock<(Payload, String)>,
    pub(super) paces: Paces,
    pub(super) together: Together,
}

pub(super) struct Worker<'a> {
    pub(super) shared: &'a Shared<'a>,
    pub(super) control: &'a Control<'a>,
    pub(super) plan: &'a TcpPlan,
    pub(super) counters: &'a Counters,
    pub(super) pace: Option<&'a Pace>,
    pub(super) start: Instant,
    /// A sender stops writing then.
    deadline: Option<Instant>,
    /// A sender writes exactly this many bytes, then closes the sending side and waits for the acknowledgement.
    pub(super) total_bytes: Option<u64>,
}

impl<'a> Worker<'a> {
    pub(super) fn new(shared: &'a Shared<'a>, flow: Flow, counters: &'a Counters, start: Instant) -> Self {
        let (control, plan) = (shared.control, shared.plan);
        let sends = flow.sender() == shared.place;
        let paces = if sends { &shared.paces.write } else { &shared.paces.read };
        let pace = paces[usize::from(flow == Flow::Down)].as_ref();
        let (deadline, total_bytes) = match plan.limit {
            Limit::DurationMs(ms) => (start.checked_add(Duration::from_millis(ms)).filter(|_| sends), None),
            Limit::BytesPerStream(bytes) => (None, Some(bytes)),
        };
        Self { shared, control, plan, counters, pace, start, deadline, total_bytes }
    }

    pub(super) fn is_over(&self) -> bool {
        self.control.is_over() || self.deadline.is_some_and(|deadline| clock::now() >= deadline)
    }

    /// How a thread ends whose trial or time is over.
    pub(super) fn ended(&self) -> Outcome {
        self.control.ended().unwrap_or(Outcome::Complete)
    }

    /// Sleeps until an instant of the pace; false when the trial is over before it.
    pub(super) fn wait_until(&self, due_ns: u64) -> bool {
        loop {
            if self.is_over() {
                return false;
            }
            let left = Duration::from_nanos(due_ns.saturating_sub(nanos_since(self.start)));
            if left.is_zero() {
                return true;
            }
            let until_end =
                self.deadline.map_or(CALL_LIMIT, |deadline| deadline.saturating_duration_since(clock::now()));
            clock::sleep(left.min(CALL_LIMIT).min(until_end));
        }
    }
}
