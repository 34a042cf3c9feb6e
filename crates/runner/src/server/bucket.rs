//! What servers without a token have in common: their threads, and the most that all their clients may be sent, and may send.

use crate::lock;
use narrows_sys::clock;
use std::io;
use std::ops::Deref;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

/// How far a pause may be caught up.
const BURST: Duration = Duration::from_millis(10);

/// A rate that all share, in the order in which they come.
#[derive(Debug)]
pub(super) struct Bucket {
    bps: u64,
    /// When all that was taken will have passed.
    free: Mutex<Instant>,
}

/// The threads of such a server: its load must not delay the control connections. Dropping them ends all connections.
#[derive(Debug)]
pub(super) struct Threads(Option<Runtime>);

impl Threads {
    pub(super) fn start(name: &str) -> io::Result<Self> {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(2).thread_name(name).enable_all().build().map(|runtime| Self(Some(runtime)))
    }
}

impl Deref for Threads {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Rates of all clients together, each way.
#[derive(Debug)]
pub(super) struct Rates {
    pub(super) up: Bucket,
    pub(super) down: Bucket,
}

impl Rates {
    pub(super) fn new(bps: u64) -> Self {
        Self { up: Bucket::new(bps), down: Bucket::new(bps) }
    }
}

impl Bucket {
    fn new(bps: u64) -> Self {
        Self { bps: bps.max(1), free: Mutex::new(clock::now()) }
    }

    /// Takes bytes; returns the time before which nothing more may be taken.
    pub(super) fn take(&self, bytes: usize, now: Instant) -> Instant {
        let ns = u128::from(bytes as u64) * 8_000_000_000 / u128::from(self.bps);
        let mut free = lock(&self.free);
        *free = (*free).max(now) + Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX));
        free.checked_sub(BURST).unwrap_or(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_together_are_held_to_the_rate() {
        let (bucket, now) = (Bucket::new(8_000_000), clock::now());
        let mut until = now;
        for _ in 0..10 {
            until = bucket.take(100_000, now);
        }
        let wait = until.duration_since(now) + BURST;
        assert!((Duration::from_millis(999)..Duration::from_millis(1_010)).contains(&wait), "{wait:?}");
        assert!(bucket.take(1, now + Duration::from_secs(5)) <= now + Duration::from_secs(5), "a pause is forgotten");
    }
}
