//! Clocks in nanoseconds as plain numbers, and a sleep until an instant, for pacing packets.
//!
//! Both reads go through the vDSO and cost some 20 ns. Source: clock_gettime(2), clock_nanosleep(2).

/// A clock in nanoseconds; `None` if there is none of that id.
pub(crate) fn read(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec for the call to fill.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return None;
    }
    Some(u64::try_from(time.tv_sec).ok()? * 1_000_000_000 + u64::try_from(time.tv_nsec).ok()?)
}

/// `CLOCK_MONOTONIC`.
#[inline]
pub fn monotonic() -> u64 {
    read(libc::CLOCK_MONOTONIC).unwrap_or(0)
}

/// `CLOCK_REALTIME`, since the Unix epoch: comparable with the kernel's receive time stamps.
#[inline]
pub fn real() -> u64 {
    read(libc::CLOCK_REALTIME).unwrap_or(0)
}

/// Sleeps until `CLOCK_MONOTONIC` reads `instant`, or a signal arrives. The wake-up delay depends on the thread's timer
/// slack ([`crate::thread::exact_timers`]) and on the host.
pub fn sleep_until(instant: u64) {
    let time = libc::timespec {
        tv_sec: i64::try_from(instant / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (instant % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: the timespec lives through the call; with an absolute time nothing is written back.
    unsafe {
        libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const time, std::ptr::null_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_does_not_end_early() {
        let until = monotonic() + 300_000;
        sleep_until(until);
        assert!(monotonic() >= until);
        // A past instant returns at once, and the wall clock is past 2020.
        sleep_until(until - 1);
        assert!(real() > 1_577_836_800_000_000_000);
    }
}
