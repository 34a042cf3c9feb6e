//! The running totals of a worker.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Counts of one worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counts {
    /// Frames handed to the device.
    pub(super) handed: u64,
    /// Frames that were due and skipped after a stall.
    pub(super) skipped: u64,
    /// Frames that the device refused before they were handed over, though its own counter has them.
    pub(super) bounced: u64,
    /// When the first and the last frame left, `CLOCK_MONOTONIC`; 0: none did.
    pub(super) first_ns: u64,
    pub(super) last_ns: u64,
}

/// Counts that one thread writes and another reads.
#[derive(Debug, Default)]
pub(super) struct Tally {
    handed: AtomicU64,
    skipped: AtomicU64,
    bounced: AtomicU64,
    first_ns: AtomicU64,
    last_ns: AtomicU64,
    ready: AtomicBool,
    start_ns: AtomicU64,
}

impl Tally {
    pub(super) fn set(&self, counts: Counts) {
        self.handed.store(counts.handed, Ordering::Relaxed);
        self.skipped.store(counts.skipped, Ordering::Relaxed);
        self.bounced.store(counts.bounced, Ordering::Relaxed);
        self.first_ns.store(counts.first_ns, Ordering::Relaxed);
        self.last_ns.store(counts.last_ns, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> Counts {
        Counts {
            handed: self.handed.load(Ordering::Relaxed),
            skipped: self.skipped.load(Ordering::Relaxed),
            bounced: self.bounced.load(Ordering::Relaxed),
            first_ns: self.first_ns.load(Ordering::Relaxed),
            last_ns: self.last_ns.load(Ordering::Relaxed),
        }
    }

    /// When sending begins, if that is known; a worker that calls this is ready.
    pub(super) fn asked_start(&self) -> Option<u64> {
        self.ready.store(true, Ordering::Release);
        Some(self.start_ns.load(Ordering::Acquire)).filter(|at| *at > 0)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    pub(super) fn start_at(&self, ns: u64) {
        self.start_ns.store(ns, Ordering::Release);
    }
}
