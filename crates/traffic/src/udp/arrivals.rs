//! When datagrams arrived: gaps, jitter, delay above the smallest. Pure; times are nanoseconds.

use narrows_stats::Histogram;

/// The mark from which delays are measured follows the smallest delay in steps of at least this: each step touches all buckets.
const STEP_NS: i64 = 250;
/// The smallest delay of a span of this length is compared with those of others: longer than most pauses of a host, and little of a trial.
const SPAN_NS: u64 = 10_000_000;
/// Few delays that vary have no telling least: a span has so many.
const SPAN_DATAGRAMS: u32 = 10;
/// Spans that are kept.
const SPANS: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    first_ns: Option<u64>,
    last_ns: u64,
    transit_ns: i64,
    jitter_ns: f64,
    gaps: Histogram,
    delays: Histogram,
    /// Delays are measured from here; never more than a step above the smallest.
    mark_ns: i64,
    smallest_ns: i64,
    spans: Spans,
}

/// The smallest delay of each span, of which pairs become one where there are many.
#[derive(Debug)]
struct Spans {
    lasts_ns: u64,
    began_ns: u64,
    datagrams: u32,
    smallest_ns: i64,
    /// When each began, and its smallest delay.
    whole: Vec<(u64, i64)>,
}

impl Default for Spans {
    fn default() -> Self {
        let whole = Vec::with_capacity(SPANS);
        Self { lasts_ns: SPAN_NS, began_ns: 0, datagrams: 0, smallest_ns: 0, whole }
    }
}

impl Spans {
    #[inline]
    fn arrive(&mut self, transit_ns: i64, received_ns: u64) {
        let is_first = self.began_ns == 0;
        let goes_on = received_ns.saturating_sub(self.began_ns) < self.lasts_ns || self.datagrams < SPAN_DATAGRAMS;
        if !is_first && goes_on {
            self.datagrams = self.datagrams.saturating_add(1);
            self.smallest_ns = self.smallest_ns.min(transit_ns);
            return;
        }
        if !is_first {
            self.close();
        }
        (self.began_ns, self.datagrams, self.smallest_ns) = (received_ns, 1, transit_ns);
    }

    fn close(&mut self) {
        self.whole.push((self.began_ns, self.smallest_ns));
        if self.whole.len() == SPANS {
            let pairs = self.whole.chunks(2).map(|pair| (pair[0].0, pair.iter().map(|it| it.1).min().unwrap_or(0)));
            self.whole = pairs.collect();
            self.lasts_ns = self.lasts_ns.saturating_mul(2);
        }
    }

    /// What the delay grew by from the first arrival to the last, by the median slope of all pairs of spans (Theil, Sen): a queue that fills
    /// grows all the time, what one pause of a host leaves behind is a step.
    fn growth_ns(&self, ended_ns: u64) -> Option<i64> {
        let is_long =
            ended_ns.saturating_sub(self.began_ns) >= self.lasts_ns / 2 && self.datagrams >= SPAN_DATAGRAMS / 2;
        let last = is_long.then_some((self.began_ns, self.smallest_ns));
        let all: Vec<(u64, i64)> = self.whole.iter().copied().chain(last).collect();
        let slope = |from: &(u64, i64), to: &(u64, i64)| {
            let span_ns = to.0.checked_sub(from.0).filter(|ns| *ns > 0)?;
            Some(to.1.saturating_sub(from.1) as f64 / span_ns as f64)
        };
        let pairs = all.iter().enumerate().flat_map(|(at, from)| all[at + 1..].iter().map(move |to| (from, to)));
        let slopes: Vec<f64> = pairs.filter_map(|(from, to)| slope(from, to)).collect();
        let took_ns = ended_ns.saturating_sub(all.first()?.0);
        Some((narrows_stats::quantile(&slopes, 0.5)? * took_ns as f64) as i64)
    }
}

impl Arrivals {
    /// Takes one arrival, by the sender's and the receiver's wall clocks.
    #[inline]
    pub(crate) fn arrive(&mut self, sent_ns: u64, received_ns: u64) {
        // The clocks may differ by any amount, and a foreign datagram may hold any time.
        let transit = received_ns.wrapping_sub(sent_ns).cast_signed();
        if self.first_ns.is_none() {
            self.first_ns = Some(received_ns);
            (self.mark_ns, self.smallest_ns) = (transit, transit);
        } else {
            self.gaps.record(received_ns.saturating_sub(self.last_ns));
            // RFC 3550, section 6.4.1: J += (|D| - J) / 16
            let difference = transit.abs_diff(self.transit_ns) as f64;
            self.jitter_ns += (difference - self.jitter_ns) / 16.0;
        }
        self.spans.arrive(transit, received_ns);
        self.last_ns = received_ns;
        self.transit_ns = transit;
        if transit < self.smallest_ns {
            self.smallest_ns = transit;
            let below = self.mark_ns.saturating_sub(transit);
            if below >= STEP_NS {
                self.delays.shift_up(below.cast_unsigned());
                self.mark_ns = transit;
            }
        }
        self.delays.record(u64::try_from(transit.saturating_sub(self.mark_ns)).unwrap_or(0));
    }

    #[inline]
    pub(crate) const fn jitter_ns(&self) -> f64 {
        self.jitter_ns
    }

    /// From the first to the last arrival.
    pub(crate) fn active_ns(&self) -> u64 {
        self.first_ns.map_or(0, |first| self.last_ns.saturating_sub(first))
    }

    /// By how much the delay grew over all arrivals; `None` of too few.
    pub(crate) fn growth_ns(&self) -> Option<i64> {
        self.spans.growth_ns(self.last_ns)
    }

    pub(crate) const fn gaps(&self) -> &Histogram {
        &self.gaps
    }

    /// Delays above the smallest one.
    pub(crate) const fn delays(&self) -> &Histogram {
        &self.delays
    }

    /// The smallest difference of the two clocks.
    pub(crate) fn smallest_ns(&self) -> Option<i64> {
        self.first_ns.map(|_| self.smallest_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_is_that_of_rfc_3550() {
        let mut arrivals = Arrivals::default();
        // Transit 50, 66, 50 us: D is 16 us twice. J = 1, then 1 + (16 - 1) / 16.
        for (sent, received) in [(0, 50_000), (100_000, 166_000), (200_000, 250_000)] {
            arrivals.arrive(sent, received);
        }
        assert!((arrivals.jitter_ns() - 1937.5).abs() < 1e-9);
        assert_eq!(arrivals.active_ns(), 200_000);
        assert_eq!(arrivals.gaps().max(), Some(116_000));
    }

    #[test]
    fn delays_are_above_the_smallest_wherever_it_comes() {
        let mut arrivals = Arrivals::default();
        // The receiver's clock is an hour behind: all differences are negative.
        let behind = 3_600_000_000_000;
        for (n, delay) in [900_000_u64, 400_000, 100_000, 500_000, 100_100].iter().enumerate() {
            let sent = 10_000_000_000_000 + n as u64 * 1_000_000;
            arrivals.arrive(sent, sent + delay - behind);
        }
        assert_eq!(arrivals.smallest_ns(), Some(100_000 - behind as i64));
        assert_eq!(arrivals.delays().min(), Some(0));
        let largest = arrivals.delays().max().unwrap();
        assert!(largest.abs_diff(800_000) <= 800_000 / 64, "{largest}");
        let median = arrivals.delays().quantile(0.5).unwrap();
        assert!(median.abs_diff(300_000) <= 300_000 / 64, "{median}");
    }

    #[test]
    fn a_queue_that_grows_shows_and_a_pause_does_not() {
        let growth = |delay_us: &dyn Fn(u64) -> u64| {
            let mut arrivals = Arrivals::default();
            for ms in 1..=1_000_u64 {
                let sent = ms * 1_000_000;
                arrivals.arrive(sent, sent + delay_us(ms) * 1_000);
            }
            arrivals.growth_ns().map(|ns| ns / 1_000)
        };
        // 10 us more with each of a thousand.
        let us = growth(&|ms| 500 + 10 * ms).expect("a second");
        assert!((9_800..=10_000).contains(&us), "{us}");
        // The first and the last 4 ms were held up; a pause in the middle left 2 ms behind, or somewhere else.
        assert_eq!(growth(&|ms| if (4..996).contains(&ms) { 500 } else { 900 }), Some(0));
        for at in [300, 700] {
            assert_eq!(growth(&|ms| if ms < at { 500 } else { 2_500 }), Some(0), "{at}");
        }
        // A queue that is full after 800 ms.
        let us = growth(&|ms| 500 + 10 * ms.min(800)).expect("a second");
        assert!((8_000..=10_000).contains(&us), "{us}");
        assert_eq!(Arrivals::default().growth_ns(), None);
    }

    #[test]
    fn strange_times_are_survived() {
        let mut arrivals = Arrivals::default();
        for (sent, received) in [(u64::MAX, 0), (0, u64::MAX), (1 << 63, 0), (0, 1 << 63), (5, 5)] {
            arrivals.arrive(sent, received);
        }
        assert_eq!(arrivals.delays().count(), 5);
    }
}
