//! The life of a data thread: wait for the start, move data, report the end.

use super::counters::ThreadClock;
use super::error::TrafficError;
use super::outcome::Outcome;
use super::stop::Stop;
use narrows_sys::clock;
use std::sync::OnceLock;
use std::sync::mpsc::Sender;
use std::thread::{Builder, Scope};
use std::time::Instant;

/// A data thread's stack: it calls nothing deep.
const STACK_BYTES: usize = 512 << 10;

/// What starts and ends all threads of one end.
#[derive(Debug)]
pub(crate) struct Control<'a> {
    /// Raised by the user, or by the other end.
    pub(crate) stop: &'a Stop,
    /// Raised by the sampler.
    pub(crate) over: Stop,
    /// Opens once, with the start of the trial.
    pub(crate) gate: OnceLock<Instant>,
}

impl<'a> Control<'a> {
    pub(crate) fn new(stop: &'a Stop) -> Self {
        Self { stop, over: Stop::new(), gate: OnceLock::new() }
    }

    /// Whether the trial was ended, by whomever.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.stop.is_set() || self.over.is_set()
    }

    /// How the trial was ended, if it was.
    #[inline]
    pub(crate) fn ended(&self) -> Option<Outcome> {
        if self.stop.is_set() {
            return Some(Outcome::Stopped);
        }
        self.over.is_set().then_some(Outcome::Complete)
    }
}

/// What a data thread reports to the sampler. `L`: what the engine's thread leaves at its end.
#[derive(Debug)]
pub(crate) enum Event<L> {
    /// The first data left or came in.
    Moving(Instant),
    /// The thread is done with its stream.
    Ended {
        /// Of the stream, by position.
        index: usize,
        left: L,
    },
}

/// The body of a data thread: takes the start of the trial and a function to call with the time of the first data.
type Body<'env, L> = Box<dyn FnOnce(Instant, &dyn Fn(Instant)) -> L + Send + 'env>;

/// One data thread to be started.
pub(crate) struct Work<'env, L> {
    pub(crate) id: u32,
    /// What the thread is called, before the number.
    pub(crate) name: &'static str,
    pub(crate) clock: &'env ThreadClock,
    pub(crate) body: Body<'env, L>,
}

impl<'env, L: Send + 'env> Work<'env, L> {
    /// Starts the thread of the stream at this position; it waits at the gate.
    pub(crate) fn start<'scope>(
        self,
        scope: &'scope Scope<'scope, 'env>,
        control: &'env Control<'env>,
        index: usize,
        outbox: Sender<Event<L>>,
    ) -> Result<(), TrafficError> {
        let Self { id, name, clock: thread_clock, body } = self;
        let run = move || {
            let start = *control.gate.wait();
            thread_clock.begin();
            let left = body(start, &|at| {
                let _ = outbox.send(Event::Moving(at));
            });
            thread_clock.end();
            // The sampler is gone only when the trial is.
            let _ = outbox.send(Event::Ended { index, left });
        };
        let builder = Builder::new().name(format!("{name} {id}")).stack_size(STACK_BYTES);
        builder.spawn_scoped(scope, run).map(drop).map_err(|source| {
            // Threads that wait at the gate end at once.
            control.over.stop();
            let _ = control.gate.set(clock::now());
            TrafficError::Thread { stream: id, source }
        })
    }
}
