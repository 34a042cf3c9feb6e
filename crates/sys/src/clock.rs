//! Clocks. Pure code takes `now` as an argument; it comes from here.

use crate::nanos;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub fn now() -> Instant {
    Instant::now()
}

/// Microseconds since the Unix epoch by this host's wall clock.
pub fn unix_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

/// `CLOCK_MONOTONIC` in nanoseconds: the clock of XDP programs.
pub fn monotonic_ns() -> u64 {
    nanos::monotonic()
}

/// Whether the wall clock follows an external one, and how far it may be out, ns (adjtimex(2)).
pub fn error() -> (bool, u64) {
    // SAFETY: all zero bytes are a valid timex: it changes nothing.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `state` lives through the call.
    let code = unsafe { libc::adjtimex(&raw mut state) };
    let synchronised = code >= 0 && state.status & libc::STA_UNSYNC == 0;
    (synchronised, u64::try_from(state.maxerror).unwrap_or(0).saturating_mul(1_000))
}

/// Whole microseconds since `start`.
pub fn micros_since(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX)
}

pub fn sleep(time: Duration) {
    std::thread::sleep(time);
}

/// CPU time of the calling thread so far, user and system, in microseconds (`CLOCK_THREAD_CPUTIME_ID`).
pub fn thread_cpu_us() -> u64 {
    nanos::read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0) / 1_000
}
