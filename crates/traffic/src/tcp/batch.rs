//! Fewer wake-ups at high rates: the receiver sleeps until there is a portion worth waking up for (`SO_RCVLOWAT`).
//!
//! A wake-up costs more than the data it brings at tens of thousands per second, above all in a virtual machine. The portion is
//! what arrives in [`PERIOD_US`], which bounds the delay, and at most a sixteenth of the receive buffer, so that the window stays
//! open. Below about 5 Gbit/s `SO_RCVLOWAT` is not used.

use narrows_sys::{clock, tcp};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// What arrives in this time makes a portion.
const PERIOD_US: u64 = 100;
/// Smaller portions save nothing: segmentation offload delivers about this much at once.
const MIN_BYTES: u64 = 64 << 10;
/// The portion is updated this often …
const UPDATE_EVERY: Duration = Duration::from_millis(10);
/// … and the clock is read only after this many calls.
const UPDATE_AFTER_CALLS: u64 = 32;

/// The portion that one receiving socket waits for.
#[derive(Debug)]
pub(super) struct Batch {
    updated_at: Instant,
    bytes: u64,
    calls: u64,
    portion: u32,
}

impl Batch {
    pub(super) fn new(now: Instant) -> Self {
        Self { updated_at: now, bytes: 0, calls: 0, portion: 1 }
    }

    /// Called after each call with its bytes and the totals of bytes and calls so far. `most`: no portion is larger.
    #[inline]
    pub(super) fn moved(&mut self, socket: BorrowedFd<'_>, taken: usize, (bytes, calls): (u64, u64), most: u32) {
        // The call reached its time limit: the rate has dropped.
        if taken < self.portion as usize {
            self.set(socket, 1);
        }
        if calls - self.calls >= UPDATE_AFTER_CALLS {
            self.update(socket, bytes, calls, most);
        }
    }

    /// Called when nothing came for as long as a call may wait.
    pub(super) fn idle(&mut self, socket: BorrowedFd<'_>) {
        self.set(socket, 1);
    }

    fn update(&mut self, socket: BorrowedFd<'_>, bytes: u64, calls: u64, most: u32) {
        let now = clock::now();
        let passed = now.saturating_duration_since(self.updated_at);
        self.calls = calls;
        if passed < UPDATE_EVERY {
            return;
        }
        let buffer = tcp::receive_buffer(socket).unwrap_or(0);
        let portion = portion(bytes - self.bytes, passed, buffer).min(most);
        (self.updated_at, self.bytes) = (now, bytes);
        // Small changes are not worth a call.
        if portion > self.portion + self.portion / 2 || portion < self.portion - self.portion / 3 {
            self.set(socket, portion);
        }
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
    fn a_small_window_is_never_held_back() {
        assert_eq!(portion(20 * 125_000_000, SECOND, 256 << 10), 1);
        assert_eq!(portion(20 * 125_000_000, SECOND, 2 << 20), 131_072);
    }
}
