//! When datagrams leave: a schedule of absolute instants, one for each datagram, and a bounded way to come back to it.
//!
//! Datagrams leave in bursts of at most `burst`; each burst leaves at the instant of its first datagram, so that late wake-ups
//! do not add up. A stall moves the schedule back, and it comes forward again at 102 % of the rate, burst by burst, never in a
//! longer burst. Datagrams beyond the tolerance are skipped and counted. Pure: the time is an
//! argument, in nanoseconds since the sender's start.

/// The fraction of a nanosecond in which instants are kept: at 10 million a second the rate is exact to 10^-7.
const FRACTION_BITS: u32 = 16;
/// Longer than any trial.
const FOREVER: u64 = 1 << 60;

/// On a busy host a thread regularly wakes up this late; that does not count as a stall.
const LATENESS_NS: u64 = 250_000;
/// How far stalls may move the schedule back: about as long as a scheduler makes a thread wait now and then (a tick is 4 ms with
/// `CONFIG_HZ=250`).
const TOLERANCE_NS: u64 = 5_000_000;
/// The schedule comes forward by this part of the time: little enough that queues and policers that carry the rate with some
/// room to spare do not feel it.
const CATCH_UP: u64 = 50;

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// Send this many back to back.
    Now(u32),
    /// Nothing before this instant.
    At(u64),
    /// The schedule is over.
    Over,
}

#[derive(Debug)]
pub(crate) struct Pacer {
    /// What each datagram of the cycle of sizes takes, in fractions.
    costs: Vec<u64>,
    /// The sum of the cycle.
    cycle: u64,
    /// The next datagram's place in the cycle.
    at: usize,
    /// Its instant, in fractions.
    next: u64,
    /// Instants from here on are not of the schedule, in fractions.
    end: u64,
    /// How far stalls moved the schedule back, in fractions.
    delay: u64,
    /// The next burst leaves no earlier, in fractions: two bursts never become one.
    earliest: u64,
    /// When the last burst began, and its time at the rate, in fractions.
    last: (u64, u64),
    burst: u32,
    lateness: u64,
    tolerance: u64,
    issued: u64,
    skipped: u64,
}

const fn fractions(ns: u64) -> u64 {
    if ns >= FOREVER >> FRACTION_BITS { FOREVER } else { ns << FRACTION_BITS }
}

impl Pacer {
    /// `costs_ns`: what the datagrams of the cycle of sizes take at the rate, ns. `offset_ns`: the first instant, which
    /// spaces the streams of a flow. `end_ns`: the schedule ends before it.
    pub(crate) fn new(costs_ns: &[f64], burst: u32, offset_ns: f64, end_ns: u64) -> Self {
        // within FOREVER
        let fraction = |ns: f64| ((ns * f64::from(1_u32 << FRACTION_BITS)).min(FOREVER as f64)).round() as u64;
        let costs: Vec<u64> = costs_ns.iter().map(|ns| fraction(*ns).max(1)).collect();
        let cycle = costs.iter().fold(0_u64, |sum, cost| sum.saturating_add(*cost)).max(1);
        let mean = cycle / costs.len().max(1) as u64;
        Self {
            costs,
            cycle,
            at: 0,
            next: fraction(offset_ns),
            end: fractions(end_ns),
            delay: 0,
            earliest: 0,
            last: (0, 0),
            burst: burst.max(1),
            // One that leaves alone may be late by half its gap without coming near the next one.
            lateness: fractions(LATENESS_NS).max(mean / 2),
            tolerance: fractions(TOLERANCE_NS).max(mean / 2),
            issued: 0,
            skipped: 0,
        }
    }

    /// What to do at `now_ns`; [`Due::Now`] is taken to be done.
    pub(crate) fn poll(&mut self, now_ns: u64) -> Due {
        let now = fractions(now_ns);
        if self.next >= self.end {
            return Due::Over;
        }
        let planned = self.next.saturating_add(self.delay);
        let start = planned.max(self.earliest);
        if now < start {
            return Due::At((start >> FRACTION_BITS) + 1);
        }
        self.delay += (now - planned).saturating_sub(self.lateness);
        if self.delay > self.tolerance {
            let before = self.next;
            self.skip_before(before + self.delay - self.tolerance);
            self.delay = self.delay.saturating_sub(self.next - before);
            if self.next >= self.end {
                return Due::Over;
            }
        }
        let begin = self.next;
        let mut count = 0;
        while count < self.burst && self.next < self.end {
            self.step();
            count += 1;
        }
        let span = self.next - begin;
        self.delay = self.delay.saturating_sub(span / CATCH_UP);
        self.earliest = now.saturating_add(span / 5 * 2);
        self.last = (now, span);
        self.issued += u64::from(count);
        Due::Now(count)
    }

    /// The last burst has left: a pause follows, also where the calls took long, a shorter one where the rate leaves little room.
    pub(crate) fn left(&mut self, now_ns: u64) {
        let (now, (began, span)) = (fractions(now_ns), self.last);
        let room = span.saturating_sub(now.saturating_sub(began));
        self.earliest = self.earliest.max(now.saturating_add((span / 10).min(room / 2).max(span / 50)));
    }

    /// Datagrams due so far: those issued, those skipped, and those due but not yet polled.
    pub(crate) fn intended(&mut self, now_ns: u64) -> u64 {
        self.skip_before(fractions(now_ns));
        self.issued + self.skipped
    }

    pub(crate) const fn skipped(&self) -> u64 {
        self.skipped
    }

    fn step(&mut self) {
        self.next = self.next.saturating_add(self.costs.get(self.at).copied().unwrap_or(1));
        self.at += 1;
        if self.at >= self.costs.len() {
            self.at = 0;
        }
    }

    /// Skips what was due before an instant.
    fn skip_before(&mut self, instant: u64) {
        let instant = instant.min(self.end);
        if self.next >= instant {
            return;
        }
        let cycles = (instant - self.next) / self.cycle;
        self.next += cycles * self.cycle;
        self.skipped += cycles * self.costs.len() as u64;
        while self.next < instant {
            self.step();
            self.skipped += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Runs a sender that sleeps `late(n)` too long before its burst `n`; every burst with its instant.
    fn run(mut pacer: Pacer, mut late: impl FnMut(usize) -> u64) -> (Vec<(u64, u32)>, u64) {
        let (mut now, mut bursts) = (0, Vec::new());
        loop {
            match pacer.poll(now) {
                Due::Now(count) => bursts.push((now, count)),
                Due::At(at) => now = at + late(bursts.len()),
                Due::Over => return (bursts, pacer.skipped()),
            }
        }
    }

    fn sum(bursts: &[(u64, u32)]) -> u64 {
        bursts.iter().map(|(_, count)| u64::from(*count)).sum()
    }

    #[test]
    fn an_exact_clock_keeps_every_instant() {
        let (bursts, skipped) = run(Pacer::new(&[10_000.0], 1, 0.0, SECOND), |_| 0);
        assert_eq!((bursts.len(), skipped), (100_000, 0));
        assert!(bursts.iter().enumerate().all(|(n, (at, _))| at.abs_diff(n as u64 * 10_000) <= 1));
    }

    #[test]
    fn small_oversleeps_lose_nothing() {
        for (cost, burst) in [(11_776.0, 8), (117_760.0, 1), (2_355.2, 42)] {
            let (bursts, skipped) = run(Pacer::new(&[cost], burst, 0.0, SECOND), |n| (n as u64 * 7919) % 80_000);
            assert_eq!(skipped, 0);
            assert_eq!(sum(&bursts), (1e9 / cost).ceil() as u64);
            assert!(bursts.iter().all(|(_, count)| *count <= burst));
        }
    }

    #[test]
    fn a_stall_is_not_repaid_by_a_burst() {
        let (cost, burst) = (10_000, 10);
        let stall = |n| if n == 50 { 100_000_000 } else { 0 };
        let (bursts, skipped) = run(Pacer::new(&[cost as f64], burst, 0.0, SECOND), stall);
        // 100 ms are 10,000 datagrams; those of the last 5.25 ms are caught up, the others skipped.
        assert!((9_474..=9_476).contains(&skipped), "{skipped}");
        assert_eq!(sum(&bursts) + skipped, 100_000);
        // No burst is longer. A few come sooner after the stall, but none at once; the others no sooner than at 102 % of the rate.
        let mut gaps: Vec<u64> = bursts.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        gaps.sort_unstable();
        let span = cost * u64::from(burst);
        assert!(gaps[0] >= span / 5 * 2 - 1 && gaps[8] >= span - span / 50 - 1, "{:?}", &gaps[..10]);
        assert!(bursts.iter().all(|(_, count)| *count <= burst));
        // Over any time no more than the rate and the tolerance allow.
        for (first, (from, _)) in bursts.iter().enumerate() {
            for (upto, _) in bursts.iter().skip(first).take(60) {
                let sent =
                    bursts[first..].iter().take_while(|(at, _)| at <= upto).map(|(_, count)| *count).sum::<u32>();
                let allowed = (upto - from + TOLERANCE_NS + LATENESS_NS) / cost + u64::from(burst) + 1;
                assert!(u64::from(sent) <= allowed, "{sent} from {from} to {upto}");
            }
        }
    }

    #[test]
    fn late_bursts_that_take_long_stay_apart() {
        // 100 us each at the rate, 60 us in the calls, 200 us late: as soon as may be, but not at once.
        let mut pacer = Pacer::new(&[10_000.0], 10, 0.0, SECOND);
        assert_eq!(pacer.poll(200_000), Due::Now(10));
        pacer.left(260_000);
        assert_eq!(pacer.poll(260_000), Due::At(270_001));
        // Where the calls take nearly all of the time, half of what is left.
        assert_eq!(pacer.poll(300_000), Due::Now(10));
        pacer.left(396_000);
        assert_eq!(pacer.poll(396_000), Due::At(398_001));
        assert_eq!(pacer.poll(400_000), Due::Now(10));
        pacer.left(600_000);
        assert_eq!(pacer.poll(600_000), Due::At(602_001));
    }

    #[test]
    fn slow_streams_forgive_half_a_gap() {
        // 10 a second, each 50 ms late: all leave.
        let (bursts, skipped) = run(Pacer::new(&[1e8], 1, 0.0, SECOND), |_| 50_000_000);
        assert_eq!((sum(&bursts), skipped), (10, 0));
    }

    #[test]
    fn a_mix_of_sizes_keeps_the_rate_of_bits() {
        // 64 and 1472 bytes at 8 Mbit/s: 64 us and 1472 us.
        let mut pacer = Pacer::new(&[64_000.0, 1_472_000.0], 1, 0.0, SECOND);
        assert_eq!(pacer.poll(0), Due::Now(1));
        assert_eq!(pacer.poll(0), Due::At(64_001));
        assert_eq!(pacer.poll(64_001), Due::Now(1));
        assert_eq!(pacer.poll(64_001), Due::At(1_536_001));
        // After ten seconds all that was due in the schedule is counted.
        assert_eq!(pacer.intended(10 * SECOND), 2 * SECOND / 1_536_000 + 1);
    }

    #[test]
    fn the_end_cuts_the_last_burst() {
        let (bursts, skipped) = run(Pacer::new(&[1000.0], 7, 500.0, 10_000), |_| 0);
        assert_eq!((sum(&bursts), skipped), (10, 0));
        assert_eq!(bursts.last().map(|(_, count)| *count), Some(3));
    }

    #[test]
    fn absurd_rates_end() {
        let (bursts, _) = run(Pacer::new(&[1e30], 1, 0.0, SECOND), |_| 0);
        assert_eq!(sum(&bursts), 1);
        assert_eq!(Pacer::new(&[1e-30], 1, 0.0, 1).intended(SECOND), 1 << FRACTION_BITS);
    }
}
