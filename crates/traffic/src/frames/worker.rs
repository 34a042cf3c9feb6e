//! A worker of the generator, whatever its mode.

use super::error::FrameError;
use super::frame_writer::FrameWriter;
use super::pace::Share;
use super::tally::{Counts, Tally};
use narrows_model::load::frames::GeneratePlan;
use narrows_sys::clock;
use std::sync::Arc;

/// How long a worker that writes its frames itself sends before it checks for a stop.
const SLICE_NS: u64 = 20_000_000;

/// One worker in whatever mode; it lives on the thread that runs it.
pub(super) trait Worker: Send {
    /// Sends for a moment, or until its thread is interrupted; whether anything is left to send.
    fn work(&mut self) -> Result<bool, FrameError>;
}

/// The state of a worker, for other threads.
pub(super) trait Meter: Send + Sync {
    fn counts(&self) -> Counts;

    /// Whether nothing is left to send though the worker may still be in a call: then its thread is interrupted.
    fn done(&self) -> bool {
        false
    }

    /// Whether it is on its CPU and waits for nothing but the start.
    fn ready(&self) -> bool;

    /// Tells it when sending begins, `CLOCK_MONOTONIC`.
    fn start(&self, at_ns: u64) -> narrows_sys::Result<()>;
}

/// Workers, each with its meter.
pub(super) struct Crew {
    pub(super) workers: Vec<(Box<dyn Worker>, Arc<dyn Meter>)>,
}

/// Where a worker that writes its frames itself hands them over.
pub(super) trait Outlet: Send {
    /// Hands over up to `count` frames, each written by `write` with its number from here on; how many were taken, and how many
    /// the interface refused.
    fn send(&mut self, count: u64, write: impl Fn(u64, &mut [u8]) -> usize) -> Result<(u64, u64), narrows_sys::Error>;

    /// Waits for frames under way; `now_ns`: when the last one was due.
    fn drain(&mut self, _now_ns: u64) -> Result<(), narrows_sys::Error> {
        Ok(())
    }
}

struct Sender<O> {
    outlet: O,
    author: FrameWriter,
    tally: Arc<Tally>,
}

impl<O: Outlet> Worker for Sender<O> {
    fn work(&mut self) -> Result<bool, FrameError> {
        let until = clock::monotonic_ns() + SLICE_NS;
        loop {
            let now = clock::monotonic_ns();
            let Some(due) = self.author.due(now) else {
                self.tally.set(self.author.counts);
                self.outlet.drain(now)?;
                return Ok(false);
            };
            if now >= until {
                self.tally.set(self.author.counts);
                return Ok(true);
            }
            if due == 0 {
                self.author.rest(now);
                continue;
            }
            let author = &self.author;
            let (taken, refused) = self.outlet.send(due, |ahead, place| author.write(ahead, now, place))?;
            self.author.sent(taken, clock::monotonic_ns());
            self.author.counts.bounced += refused;
            self.tally.set(self.author.counts);
        }
    }
}

impl Crew {
    /// Workers that write their frames themselves, one for each share.
    pub(super) fn of<O: Outlet + 'static>(plan: &GeneratePlan, shares: &[Share], outlets: Vec<O>) -> Self {
        let workers = outlets.into_iter().zip(shares).map(|(outlet, share)| {
            let tally = Arc::new(Tally::default());
            let author = FrameWriter::new(plan, *share, Arc::clone(&tally));
            let sender = Sender { outlet, author, tally: Arc::clone(&tally) };
            (Box::new(sender) as Box<dyn Worker>, tally as Arc<dyn Meter>)
        });
        Self { workers: workers.collect() }
    }
}

impl Meter for Tally {
    fn counts(&self) -> Counts {
        self.get()
    }

    fn ready(&self) -> bool {
        self.is_ready()
    }

    fn start(&self, at_ns: u64) -> narrows_sys::Result<()> {
        self.start_at(at_ns);
        Ok(())
    }
}
