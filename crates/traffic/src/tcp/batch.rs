//! Larger calls at high rates.
//!
//! The receiver sleeps until there is a portion worth waking up for (`SO_RCVLOWAT`): a wake-up costs more than the data it brings at tens
//! of thousands per second, above all in a virtual machine. The portion is what arrives in [`PERIOD_US`], which bounds the delay, and at
//! most a sixteenth of the receive buffer, so that the window stays open. Below about 5 Gbit/s `SO_RCVLOWAT` is not used.
//!
//! The calls of a sender grow from 128 KiB to [`CALL_BYTES`]: the kernel takes in the acknowledgements of a call at its end, all at once.
//! Measured on veth with Linux 6.18, one stream that both ends copy: 30 Gbit/s with calls of 128 KiB, 46 with calls of 1 MiB.

use narrows_model::TcpPlan;
use narrows_sys::{clock, tcp};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// What arrives in this time makes a portion.
const PERIOD_US: u64 = 100;
/// Smaller portions save nothing: segmentation offload delivers about this much at once.
const MIN_BYTES: u64 = 64 << 10;
/// From this rate of a stream on its calls are large: then they take 8 ms at most …
const LARGE_CALLS_BPS: f64 = 1e9;
/// … for this.
const CALL_BYTES: usize = 1 << 20;
/// Both are updated this often …
const UPDATE_EVERY: Duration = Duration::from_millis(10);
/// … and the clock is read only after this many calls.
const UPDATE_AFTER_CALLS: u64 = 32;

/// What has moved since the last update.
#[derive(Debug)]
struct Moved {
    updated_at: Instant,
    bytes: u64,
    calls: u64,
}

impl Moved {
    const fn new(now: Instant) -> Self {
        Self { updated_at: now, bytes: 0, calls: 0 }
    }

    /// By the totals of bytes and calls so far: what moved in which time, where an update is due.
    #[inline]
    fn due(&mut self, bytes: u64, calls: u64) -> Option<(u64, Duration)> {
        if calls - self.calls < UPDATE_AFTER_CALLS {
            return None;
        }
        self.calls = calls;
        let now = clock::now();
        let passed = now.saturating_duration_since(self.updated_at);
        if passed < UPDATE_EVERY {
            return None;
        }
        let moved = bytes - self.bytes;
        (self.updated_at, self.bytes) = (now, bytes);
        Some((moved, passed))
    }
}

/// The size of a sender's calls.
#[derive(Debug)]
pub(super) struct Calls {
    moved: Moved,
    least: usize,
    most: usize,
    bytes: usize,
}

impl Calls {
    /// The largest calls of a plan.
    pub(super) fn most(plan: &TcpPlan) -> usize {
        let bytes = plan.message_bytes as usize;
        let is_default = plan.message_bytes == TcpPlan::default().message_bytes;
        if is_default && !plan.keeps_message_bytes { CALL_BYTES } else { bytes }
    }

    pub(super) fn new(plan: &TcpPlan, now: Instant) -> Self {
        let bytes = plan.message_bytes as usize;
        Self { moved: Moved::new(now), least: bytes, most: Self::most(plan), bytes }
    }

    /// Of the next call, after these.
    #[inline]
    pub(super) fn bytes(&mut self, bytes: u64, calls: u64) -> usize {
        if self.most > self.least
            && let Some((moved, passed)) = self.moved.due(bytes, calls)
        {
            self.bytes = if is_fast(moved, passed) { self.most } else { self.least };
        }
        self.bytes
    }
}

/// Whether a sender's calls are large.
fn is_fast(bytes: u64, passed: Duration) -> bool {
    bytes as f64 * 8.0 >= LARGE_CALLS_BPS * passed.as_secs_f64()
}

/// The portion that one receiving socket waits for.
#[derive(Debug)]
pub(super) struct Batch {
    seen: Moved,
    portion: u32,
}

impl Batch {
    pub(super) const fn new(now: Instant) -> Self {
        Self { seen: Moved::new(now), portion: 1 }
    }

    /// Called after each call with its bytes and the totals of bytes and calls so far. `most`: no portion is larger.
    #[inline]
    pub(super) fn moved(&mut self, socket: BorrowedFd<'_>, taken: usize, (bytes, calls): (u64, u64), most: u32) {
        // The call reached its time limit: the rate has dropped.
        if taken < self.portion as usize {
            self.set(socket, 1);
        }
        if let Some((bytes, passed)) = self.seen.due(bytes, calls) {
            let buffer = tcp::receive_buffer(socket).unwrap_or(0);
            let portion = portion(bytes, passed, buffer).min(most);
            // Small changes are not worth a call.
            if portion > self.portion + self.portion / 2 || portion < self.portion - self.portion / 3 {
                self.set(socket, portion);
            }
        }
    }

    /// Called when nothing came for as long as a call may wait.
    pub(super) fn idle(&mut self, socket: BorrowedFd<'_>) {
        self.set(socket, 1);
    }

    fn set(&mut self, socket: BorrowedFd<'_>, portion: u32) {
        if self.portion != portion && tcp::set_low_water(socket, portion).is_ok() {
            self.portion = portion;
        }
    }
}

/// The portion for a rate and a receive buffer; 1: every byte is worth waking up for.
fn portion(bytes: u64, passed: Duration, buffer: u32) -> u32 {
    let passed_us = u64::try_from(passed.as_micros()).unwrap_or(u64::MAX).max(1);
    let portion = (bytes.saturating_mul(PERIOD_US) / passed_us).min(u64::from(buffer) / 16);
    if portion < MIN_BYTES { 1 } else { u32::try_from(portion).unwrap_or(u32::MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn common_rates_are_left_alone() {
        for gbit in [0, 1, 4] {
            assert_eq!(portion(gbit * 125_000_000, SECOND, 32 << 20), 1);
        }
    }

    #[test]
    fn high_rates_wait_a_tenth_of_a_millisecond() {
        assert_eq!(portion(20 * 125_000_000, SECOND, 32 << 20), 250_000);
        assert_eq!(portion(80 * 125_000_000, SECOND, 32 << 20), 1_000_000);
    }

    #[test]
    fn calls_grow_with_the_rate_where_nobody_chose_them() {
        assert_eq!([125_000_000, 124_000_000, 0].map(|bytes| is_fast(bytes, SECOND)), [true, false, false]);
        let plan = TcpPlan::default();
        let most = |message_bytes, keeps_message_bytes| {
            Calls::most(&TcpPlan { message_bytes, keeps_message_bytes, ..plan.clone() })
        };
        assert_eq!([most(128 << 10, false), most(128 << 10, true), most(64, false)], [1 << 20, 128 << 10, 64]);
    }

    #[test]
    fn a_small_window_is_never_held_back() {
        assert_eq!(portion(20 * 125_000_000, SECOND, 256 << 10), 1);
        assert_eq!(portion(20 * 125_000_000, SECOND, 2 << 20), 131_072);
    }
}
