//! The emulated application: how fast it writes or reads, and the CPU time that it spends on the data.

use narrows_sys::clock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A rate shared by all streams of a flow: a clock of slots, each as long as its bytes take at the rate.
///
/// Slots are absolute, so that late wake-ups do not add up. After a delay above [`Pace::LAG_NS`] or two slots the missed slots
/// are skipped, not caught up in a burst.
#[derive(Debug)]
pub(super) struct Pace {
    ns_per_byte: f64,
    /// When the next slot begins, in nanoseconds since the trial's start.
    next_ns: AtomicU64,
}

impl Pace {
    /// On a busy host a sleeping thread wakes up this late; a smaller value would reduce the rate.
    const LAG_NS: u64 = 2_000_000;

    /// `None` for 0: no limit.
    pub(super) fn new(bps: u64) -> Option<Self> {
        (bps > 0).then(|| Self { ns_per_byte: 8e9 / bps as f64, next_ns: AtomicU64::new(0) })
    }

    /// How many bytes the application moves at once: at most `max`, and at most what 2 ms allow, but at least 1 KiB.
    pub(super) fn portion(&self, max: usize) -> usize {
        let worth = (2e6 / self.ns_per_byte) as usize;
        max.min(worth.max(1024))
    }

    /// Takes the next slot for this many bytes; returns when it begins.
    pub(super) fn claim(&self, now_ns: u64, bytes: usize) -> u64 {
        let cost = (bytes as f64 * self.ns_per_byte) as u64;
        let earliest = now_ns.saturating_sub(Self::LAG_NS.max(2 * cost));
        let begin = |next: u64| next.max(earliest);
        let before = self.next_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| Some(begin(next) + cost));
        begin(before.unwrap_or(0))
    }
}

/// CPU time spent per byte, on the thread's own CPU clock.
#[derive(Debug)]
pub(super) struct Burn {
    us_per_byte: f64,
    /// CPU time still to be spent; negative after too much.
    owed_us: f64,
}

impl Burn {
    /// Shorter periods would drown in the cost of the clock.
    const MIN_US: f64 = 20.0;

    pub(super) fn new(us_per_mib: u32) -> Self {
        Self { us_per_byte: f64::from(us_per_mib) / 1_048_576.0, owed_us: 0.0 }
    }

    /// Spends the CPU time of this many bytes, in periods of at least [`Burn::MIN_US`], until `over` returns true.
    pub(super) fn spend(&mut self, bytes: usize, over: impl Fn() -> bool) {
        if self.us_per_byte == 0.0 {
            return;
        }
        {
            self.owed_us += bytes as f64 * self.us_per_byte;
        }
        if self.owed_us < Self::MIN_US {
            return;
        }
        let start = clock::thread_cpu_us();
        let mut burnt = 0.0;
        while burnt < self.owed_us && !over() {
            for _ in 0..64 {
                std::hint::spin_loop();
            }
            {
                burnt = clock::thread_cpu_us().saturating_sub(start) as f64;
            }
        }
        self.owed_us -= burnt;
    }
}

/// Nanoseconds since `start`.
pub(super) fn nanos_since(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_as_long_as_their_bytes_take() {
        let pace = Pace::new(8_000_000).unwrap(); // 1 byte a microsecond
        assert_eq!(pace.claim(0, 1000), 0);
        assert_eq!(pace.claim(0, 1000), 1_000_000);
        assert_eq!(pace.claim(1_500_000, 500), 2_000_000);
        assert_eq!(pace.claim(2_500_000, 500), 2_500_000);
    }

    #[test]
    fn what_was_slept_through_is_not_caught_up() {
        let pace = Pace::new(8_000_000).unwrap();
        pace.claim(0, 1000);
        // A second later only the last 2 ms are caught up: two slots of a millisecond at once, the third has to wait.
        let late = 1_000_000_000;
        assert_eq!(pace.claim(late, 1000), late - 2_000_000);
        assert_eq!(pace.claim(late, 1000), late - 1_000_000);
        assert_eq!(pace.claim(late, 1000), late);
        assert_eq!(pace.claim(late, 1000), late + 1_000_000);
    }

    #[test]
    fn a_slow_application_moves_small_portions() {
        assert!(Pace::new(0).is_none());
        assert_eq!(Pace::new(8_000_000).unwrap().portion(131_072), 2000);
        assert_eq!(Pace::new(8_000).unwrap().portion(131_072), 1024);
        assert_eq!(Pace::new(80_000_000_000).unwrap().portion(131_072), 131_072);
        assert_eq!(Pace::new(8_000).unwrap().portion(64), 64);
    }

    #[test]
    fn burning_takes_the_time_that_it_should() {
        let mut burn = Burn::new(10_000);
        let before = clock::thread_cpu_us();
        for _ in 0..16 {
            burn.spend(65_536, || false);
        }
        let burnt = clock::thread_cpu_us() - before;
        assert!((9_900..12_000).contains(&burnt), "{burnt} us");
        let before = clock::thread_cpu_us();
        burn.spend(1 << 30, || true);
        assert!(clock::thread_cpu_us() - before < 5_000);
    }
}
