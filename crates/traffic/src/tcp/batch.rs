//! Fewer wake-ups at high rates: the receiver sleeps until there is a portion worth waking up for (`SO_RCVLOWAT`).
//!
//! A wake-up costs more than the data it brings once tens of thousands happen in a second, most of all in a virtual machine. The portion is what
//! arrives in [`PERIOD_US`], so it delays nothing by more than that, and it is bounded to a sixteenth of the receive buffer,
//! so it takes no visible part of the window. Below some 5 Gbit/s a stream is left alone.

use narrows_sys::{clock, tcp};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// What arrives in this time makes a portion.
const PERIOD_US: u64 = 100;
/// Smaller portions are not worth it: about what segmentation offload delivers at once.
const LEAST_BYTES: u64 = 64 << 10;
/// The rate is looked at this often.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// And the clock only after this many calls.
const LOOK_AFTER_CALLS: u64 = 32;

/// The portion that one receiving socket waits for.
#[derive(Debug)]
pub(super) struct Batch {
    looked_at: Instant,
    bytes: u64,
    calls: u64,
    portion: u32,
}

impl Batch {
    pub(super) fn new(now: Instant) -> Self {
        Self { looked_at: now, bytes: 0, calls: 0, portion: 1 }
    }

    /// Called after each call with what it took and the totals so far.
    #[inline]
    pub(super) fn moved(&mut self, socket: BorrowedFd<'_>, taken: usize, bytes: u64, calls: u64) {
        // The call waited out its limit: the data comes no longer as fast as it did.
        if taken < self.portion as usize {
            self.set(socket, 1);
        }
        if calls - self.calls >= LOOK_AFTER_CALLS {
            self.look(socket, bytes, calls);
        }
    }

    /// Called when nothing came for as long as a call may wait.
    pub(super) fn idle(&mut self, socket: BorrowedFd<'_>) {
        self.set(socket, 1);
    }

    fn look(&mut self, socket: BorrowedFd<'_>, bytes: u64, calls: u64) {
        let now = clock::now();
        let passed = now.saturating_duration_since(self.looked_at);
        self.calls = calls;
        if passed < LOOK_EVERY {
            return;
        }
        let buffer = tcp::receive_buffer(socket).unwrap_or(0);
        let portion = portion(bytes - self.bytes, passed, buffer);
        (self.looked_at, self.bytes) = (now, bytes);
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
    if portion < LEAST_BYTES { 1 } else { u32::try_from(portion).unwrap_or(u32::MAX) }
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
