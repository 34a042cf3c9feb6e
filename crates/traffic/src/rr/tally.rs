//! The running totals of a stream: written by its thread, or by the accept path.

use crate::common::thread_clock::ThreadClock;
use narrows_model::RrSample;
use std::sync::atomic::{AtomicU64, Ordering};

/// One stream's counts, on cache lines of their own. Plain sums: no order is needed.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Tally {
    transactions: AtomicU64,
    failures: AtomicU64,
    latency_sum_ns: AtomicU64,
    /// The CPU clock of the stream's thread.
    pub(crate) thread: ThreadClock,
}

impl Tally {
    pub(crate) const fn new() -> Self {
        Self {
            transactions: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            latency_sum_ns: AtomicU64::new(0),
            thread: ThreadClock::new(),
        }
    }

    /// A transaction is complete, after this latency.
    #[inline]
    pub(crate) fn complete(&self, latency_ns: u64) {
        self.latency_sum_ns.fetch_add(latency_ns, Ordering::Relaxed);
        self.transactions.fetch_add(1, Ordering::Relaxed);
    }

    /// This many requests were answered.
    #[inline]
    pub(crate) fn answered(&self, count: u64) {
        self.transactions.fetch_add(count, Ordering::Relaxed);
    }

    /// This many transactions failed.
    pub(crate) fn fail(&self, count: u64) {
        self.failures.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn transactions(&self) -> u64 {
        self.transactions.load(Ordering::Relaxed)
    }

    /// A sample; `threaded`: whether the stream has a thread of its own.
    pub(crate) fn sample(&self, at_us: u64, threaded: bool) -> RrSample {
        RrSample {
            at_us,
            transactions: self.transactions(),
            failures: self.failures.load(Ordering::Relaxed),
            latency_sum_ns: self.latency_sum_ns.load(Ordering::Relaxed),
            thread_cpu_us: self.thread.cpu_us().filter(|_| threaded),
        }
    }
}
