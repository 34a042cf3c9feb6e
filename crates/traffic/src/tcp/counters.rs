//! What a data thread tells about itself while it runs: plain atomics, one writer, no order needed.

use narrows_sys::{clock, cpu};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// One data thread's counters, on a cache line of their own so that the sampler does not slow the others down.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Counters {
    bytes: AtomicU64,
    calls: AtomicU64,
    thread: AtomicI32,
    /// The thread's CPU time when it ended; [`Counters::RUNS`] until then.
    cpu_us_at_end: AtomicU64,
}

impl Counters {
    const RUNS: u64 = u64::MAX;

    pub(crate) const fn new() -> Self {
        Self {
            bytes: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            thread: AtomicI32::new(0),
            cpu_us_at_end: AtomicU64::new(Self::RUNS),
        }
    }

    /// Called by the data thread when it begins.
    pub(crate) fn begin(&self) {
        self.thread.store(cpu::this_thread().0, Ordering::Relaxed);
    }

    /// Called by the data thread when it ends: nobody can ask its clock any more.
    pub(crate) fn end(&self) {
        self.cpu_us_at_end.store(clock::thread_cpu_us(), Ordering::Relaxed);
    }

    /// Called by the data thread after each call, with its totals.
    #[inline]
    pub(crate) fn publish(&self, bytes: u64, calls: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
        self.calls.store(calls, Ordering::Relaxed);
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// CPU time of the data thread so far.
    pub(crate) fn cpu_us(&self) -> Option<u64> {
        let at_end = || Some(self.cpu_us_at_end.load(Ordering::Relaxed)).filter(|&us| us != Self::RUNS);
        match self.thread.load(Ordering::Relaxed) {
            0 => Some(0),
            // It may end between the two looks.
            id => at_end().or_else(|| cpu::thread_cpu_us(cpu::ThreadId(id))).or_else(at_end),
        }
    }
}
