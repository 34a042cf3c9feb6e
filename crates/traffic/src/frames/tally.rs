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
    counts: [AtomicU64; 5],
    ready: AtomicBool,
    start_ns: AtomicU64,
}

impl Tally {
    pub(super) fn set(&self, counts: Counts) {
        let Counts { handed, skipped, bounced, first_ns, last_ns } = counts;
        for (count, now) in self.counts.iter().zip([handed, skipped, bounced, first_ns, last_ns]) {
            count.store(now, Ordering::Relaxed);
        }
    }

    pub(super) fn get(&self) -> Counts {
        let [handed, skipped, bounced, first_ns, last_ns] =
            std::array::from_fn(|index| self.counts[index].load(Ordering::Relaxed));
        Counts { handed, skipped, bounced, first_ns, last_ns }
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
