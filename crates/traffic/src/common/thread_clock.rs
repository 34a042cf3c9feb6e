//! The CPU time of a data thread, readable by the sampler while the thread runs and after it ended.

use narrows_sys::{clock, cpu};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// One data thread's CPU clock. The thread writes, the sampler reads; no order between the two is needed.
#[derive(Debug)]
pub(crate) struct ThreadClock {
    thread: AtomicI32,
    /// The thread's CPU time when it ended; [`ThreadClock::RUNS`] until then.
    cpu_us_at_end: AtomicU64,
}

impl ThreadClock {
    const RUNS: u64 = u64::MAX;

    pub(crate) const fn new() -> Self {
        Self { thread: AtomicI32::new(0), cpu_us_at_end: AtomicU64::new(Self::RUNS) }
    }

    /// Called by the data thread when it begins.
    pub(crate) fn begin(&self) {
        self.thread.store(cpu::this_thread().0, Ordering::Relaxed);
    }

    /// Called by the data thread when it ends: its clock cannot be read from outside afterwards.
    pub(crate) fn end(&self) {
        self.cpu_us_at_end.store(clock::thread_cpu_us(), Ordering::Relaxed);
    }

    /// CPU time of the data thread so far; 0 before it began.
    pub(crate) fn cpu_us(&self) -> Option<u64> {
        let at_end = || Some(self.cpu_us_at_end.load(Ordering::Relaxed)).filter(|&us| us != Self::RUNS);
        match self.thread.load(Ordering::Relaxed) {
            0 => Some(0),
            // It may end between the two reads.
            id => at_end().or_else(|| cpu::thread_cpu_us(cpu::ThreadId(id))).or_else(at_end),
        }
    }
}
