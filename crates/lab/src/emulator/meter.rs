//! A rate with a token bucket, as a virtual clock: the instant at which the bucket is full again.
//!
//! One formula serves three devices. A link is a bucket of depth 0: a packet is through when its last bit is. A shaper has a
//! depth: that much passes at once after an idle time. A policer is a shaper that refuses what would have to wait. Time is in
//! nanoseconds, and exact: the remainder of the division is carried over.

/// Nanoseconds on the emulator's clock.
pub type Nanos = u64;

const BILLION: u64 = 1_000_000_000;

/// The state of a rate.
#[derive(Debug, Clone, Copy)]
pub struct Meter {
    rate_bps: u64,
    /// How far ahead of now the virtual clock may be without a wait.
    depth: Nanos,
    full_at: Nanos,
    /// In `1 / rate_bps` of a nanosecond.
    remainder: u64,
}

impl Meter {
    /// A full bucket. A rate of 0 counts as 1 bit/s.
    pub fn new(rate_bps: u64, depth_bytes: u64) -> Self {
        let rate_bps = rate_bps.max(1);
        let depth = u128::from(depth_bytes) * 8 * u128::from(BILLION) / u128::from(rate_bps);
        Self { rate_bps, depth: u64::try_from(depth).unwrap_or(u64::MAX), full_at: 0, remainder: 0 }
    }

    /// Replaces rate and depth from now on; packets under way keep their time.
    pub fn change(&mut self, rate_bps: u64, depth_bytes: u64) {
        *self = Self { full_at: self.full_at, ..Self::new(rate_bps, depth_bytes) };
    }

    /// The virtual clock after a packet of `bytes` that arrives at `now`.
    fn advanced(&self, now: Nanos, bytes: u64) -> (Nanos, u64) {
        let (from, remainder) = if now > self.full_at { (now, 0) } else { (self.full_at, self.remainder) };
        let work = u128::from(bytes) * 8 * u128::from(BILLION) + u128::from(remainder);
        let rate = u128::from(self.rate_bps);
        let whole = u64::try_from(work / rate).unwrap_or(u64::MAX);
        (from.saturating_add(whole), u64::try_from(work % rate).unwrap_or(0))
    }

    /// Lets a packet through and returns the instant at which it is: `now` or later.
    pub fn pass(&mut self, now: Nanos, bytes: u64) -> Nanos {
        (self.full_at, self.remainder) = self.advanced(now, bytes);
        let through = self.full_at.saturating_add(u64::from(self.remainder > 0));
        through.saturating_sub(self.depth).max(now)
    }

    /// Lets a packet through only if it need not wait; returns whether it did.
    pub fn police(&mut self, now: Nanos, bytes: u64) -> bool {
        let (full_at, remainder) = self.advanced(now, bytes);
        let conforms = full_at.saturating_add(u64::from(remainder > 0)) <= now.saturating_add(self.depth);
        if conforms {
            (self.full_at, self.remainder) = (full_at, remainder);
        }
        conforms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_link_takes_the_time_of_the_bits() {
        let mut link = Meter::new(1_000_000_000, 0);
        assert_eq!(link.pass(0, 1538), 12_304);
        assert_eq!(link.pass(0, 1538), 24_608);
        assert_eq!(link.pass(1_000_000, 1538), 1_012_304, "an idle link begins at once");
    }

    #[test]
    fn thirds_of_nanoseconds_are_not_lost() {
        // 3 Gbit/s: a byte takes 2 2/3 ns.
        let mut link = Meter::new(3_000_000_000, 0);
        let last = (0..3_000_000).map(|_| link.pass(0, 1)).last();
        assert_eq!(last, Some(8_000_000));
    }

    #[test]
    fn a_shaper_lets_its_burst_pass_at_once() {
        let mut shaper = Meter::new(8_000_000, 3000);
        assert_eq!(
            [1000, 1000, 1000, 1000].map(|bytes| shaper.pass(5_000_000, bytes)),
            [5_000_000, 5_000_000, 5_000_000, 6_000_000]
        );
    }

    #[test]
    fn a_policer_refuses_and_is_not_charged_for_it() {
        let mut policer = Meter::new(8_000_000, 1500);
        assert!(policer.police(0, 1500));
        assert!(!policer.police(0, 1500));
        assert!(!policer.police(1_499_999, 1500));
        assert!(policer.police(1_500_000, 1500));
    }

    proptest! {
        #[test]
        fn never_more_than_the_rate_and_the_burst(
            rate in 1_000_u64..10_000_000_000,
            depth in 0_u64..1_000_000,
            packets in prop::collection::vec((0_u64..3_000_000, 40_u64..9000), 1..200),
        ) {
            let mut shaper = Meter::new(rate, depth);
            let (mut now, mut out) = (0, Vec::new());
            for (gap, bytes) in packets {
                now += gap;
                out.push((shaper.pass(now, bytes), bytes));
            }
            prop_assert!(out.is_sorted_by_key(|(at, _)| *at), "in order");
            // In any window from one departure to another, no more leaves than the burst plus the rate times
            // the window.
            for (index, (from, _)) in out.iter().enumerate() {
                let mut sent = 0_u128;
                for (to, bytes) in out.iter().skip(index) {
                    sent += u128::from(*bytes);
                    let first = u128::from(out[index].1);
                    let allowance = u128::from(to - from) * u128::from(rate) / 8 / u128::from(BILLION);
                    prop_assert!(sent <= u128::from(depth) + first + allowance + 2);
                }
            }
        }

        #[test]
        fn policed_traffic_fits_the_bucket(
            rate in 1_000_u64..1_000_000_000,
            depth in 1_500_u64..200_000,
            packets in prop::collection::vec((0_u64..1_000_000, 40_u64..1500), 1..200),
        ) {
            let mut policer = Meter::new(rate, depth);
            let (mut now, mut passed) = (0, Vec::new());
            for (gap, bytes) in packets {
                now += gap;
                if policer.police(now, bytes) {
                    passed.push((now, bytes));
                }
            }
            for (index, (from, _)) in passed.iter().enumerate() {
                let mut sent = 0_u128;
                for (to, bytes) in passed.iter().skip(index) {
                    sent += u128::from(*bytes);
                    let allowance = u128::from(to - from) * u128::from(rate) / 8 / u128::from(BILLION);
                    prop_assert!(sent <= u128::from(depth) + allowance + 2);
                }
            }
        }
    }
}
