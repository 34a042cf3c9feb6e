//! The running totals of a data thread: plain atomics, one writer, no order needed.

use crate::common::thread_clock::ThreadClock;
use std::sync::atomic::{AtomicU64, Ordering};

/// One data thread's counters, on a cache line of their own so that the sampler does not slow the others down.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Counters {
    bytes: AtomicU64,
    calls: AtomicU64,
    pub(super) thread: ThreadClock,
}

impl Counters {
    pub(super) const fn new() -> Self {
        Self { bytes: AtomicU64::new(0), calls: AtomicU64::new(0), thread: ThreadClock::new() }
    }

    /// Called by the data thread after each call, with its totals.
    #[inline]
    pub(super) fn publish(&self, bytes: u64, calls: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
        self.calls.store(calls, Ordering::Relaxed);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }
}
