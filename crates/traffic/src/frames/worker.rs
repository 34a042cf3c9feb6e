//! A worker of the generator, whatever its mode.

use super::error::FrameError;
use super::tally::Counts;
use std::sync::Arc;

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
