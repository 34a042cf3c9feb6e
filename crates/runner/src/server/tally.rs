//! What a server counts, for scrapers.

use narrows_sys::clock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What a server counts.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) started_unix_ms: u64,
    pub(super) done: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) last_unix_ms: AtomicU64,
    pub(super) refused: AtomicU64,
}

impl Tally {
    pub(super) fn new() -> Self {
        let none = || AtomicU64::new(0);
        Self {
            started_unix_ms: now_ms(),
            done: none(),
            failed: none(),
            bytes: none(),
            last_unix_ms: none(),
            refused: none(),
        }
    }

    /// A load has ended, with so many bytes.
    pub(super) fn load(&self, is_done: bool, bytes: Option<u64>) {
        let count = if is_done { &self.done } else { &self.failed };
        count.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes.unwrap_or_default(), Relaxed);
        self.last_unix_ms.store(now_ms(), Relaxed);
    }
}

fn now_ms() -> u64 {
    clock::unix_us() / 1_000
}
