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

/// The wall clock as it read when this was begun, carried on by the monotonic one: nobody sets it.
#[derive(Debug, Clone, Copy)]
pub struct EvenClock {
    ahead_ns: u64,
}

impl EvenClock {
    /// From the wall clock of now.
    pub fn begin() -> Self {
        Self { ahead_ns: real().wrapping_sub(monotonic()) }
    }

    /// Since the Unix epoch.
    #[inline]
    pub fn now(self) -> u64 {
        monotonic().wrapping_add(self.ahead_ns)
    }

    /// Where on it the kernel's stamps of messages lie that were just received.
    #[inline]
    pub fn stamps(self) -> Stamps {
        Stamps { now_ns: self.now(), wall_ns: real() }
    }
}

/// See [`EvenClock::stamps`].
#[derive(Debug, Clone, Copy)]
pub struct Stamps {
    now_ns: u64,
    wall_ns: u64,
}

impl Stamps {
    /// No message waits so long in a socket; what seems to was stamped before the wall clock was set.
    const OLDEST_NS: u64 = 10_000_000_000;

    /// The time of a message by its stamp of the wall clock; without one, now.
    #[inline]
    pub fn at(self, stamp_ns: Option<u64>) -> u64 {
        let age_ns = stamp_ns.map_or(0, |stamp_ns| self.wall_ns.saturating_sub(stamp_ns));
        self.now_ns - if age_ns < Self::OLDEST_NS { age_ns } else { 0 }
    }
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
    fn a_wall_clock_that_was_set_moves_no_message() {
        let at = |wall_ns, stamp_ns| Stamps { now_ns: 100_000_000_000, wall_ns }.at(stamp_ns);
        assert_eq!(
            at(700_000_000_000, Some(699_999_999_000)),
            99_999_999_000,
            "a microsecond ago, whatever the clock says"
        );
        for set in [740_000_000_000, 660_000_000_000] {
            assert_eq!(at(set, Some(699_999_999_000)), 100_000_000_000);
        }
        assert_eq!(at(700_000_000_000, None), 100_000_000_000);
        let clock = EvenClock::begin();
        assert!(clock.stamps().at(Some(real())) <= clock.now());
    }

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
