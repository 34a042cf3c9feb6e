//! The running totals of a data thread: plain atomics, one writer, no order needed.

use crate::common::thread_clock::ThreadClock;
use narrows_model::{SocketMemory, UdpSample};
use std::sync::atomic::{AtomicU64, Ordering};

/// One data thread's counters, on cache lines of their own so that the sampler does not slow the others down.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Counters {
    datagrams: AtomicU64,
    bytes: AtomicU64,
    calls: AtomicU64,
    errors: AtomicU64,
    unsent: AtomicU64,
    lost: AtomicU64,
    duplicates: AtomicU64,
    reordered: AtomicU64,
    jitter: AtomicU64,
    pub(super) thread: ThreadClock,
}

/// What a receiver publishes besides its totals.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Order {
    pub(crate) lost: u64,
    pub(crate) duplicates: u64,
    pub(crate) reordered: u64,
    pub(crate) jitter_ns: f64,
}

impl Counters {
    pub(crate) const fn new() -> Self {
        Self {
            datagrams: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            unsent: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            duplicates: AtomicU64::new(0),
            reordered: AtomicU64::new(0),
            jitter: AtomicU64::new(0),
            thread: ThreadClock::new(),
        }
    }

    /// Called by the data thread after each call, with its totals.
    #[inline]
    pub(crate) fn publish(&self, datagrams: u64, bytes: u64, calls: u64) {
        self.datagrams.store(datagrams, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
        self.calls.store(calls, Ordering::Relaxed);
    }

    /// Called by a sender after a call that failed.
    pub(crate) fn publish_failures(&self, errors: u64, unsent: u64) {
        self.errors.store(errors, Ordering::Relaxed);
        self.unsent.store(unsent, Ordering::Relaxed);
    }

    /// Called by a receiver after each call.
    #[inline]
    pub(crate) fn publish_order(&self, order: Order) {
        self.lost.store(order.lost, Ordering::Relaxed);
        self.duplicates.store(order.duplicates, Ordering::Relaxed);
        self.reordered.store(order.reordered, Ordering::Relaxed);
        self.jitter.store(order.jitter_ns.to_bits(), Ordering::Relaxed);
    }

    /// All of it, with the socket's memory.
    pub(crate) fn sample(&self, at_us: u64, memory: Option<SocketMemory>, receives: bool) -> UdpSample {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        UdpSample {
            at_us,
            datagrams: load(&self.datagrams),
            bytes: load(&self.bytes),
            calls: load(&self.calls),
            errors: load(&self.errors),
            unsent: load(&self.unsent),
            lost: load(&self.lost),
            duplicates: load(&self.duplicates),
            reordered: load(&self.reordered),
            jitter_ns: f64::from_bits(load(&self.jitter)),
            socket_drops: memory.filter(|_| receives).map(|memory| u64::from(memory.drops)),
            thread_cpu_us: self.thread.cpu_us(),
            memory,
        }
    }
}
