//! When the clock of an end starts, when samples are taken, and how many of them are kept.

use narrows_model::Place;
use std::time::Duration;

/// The first instants: slow start is over before the first interval is. Milliseconds.
const EARLY_MS: [u64; 8] = [0, 2, 5, 10, 20, 40, 70, 100];

/// When the clock of an end starts. The gates of the two ends open about a round trip apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Starts {
    /// When the gate opens: this end sends by itself.
    AtGate,
    /// With the first data, which the other end sends by itself; a long silence before them is an outage, and counts.
    WithData {
        /// Of the path, where it is known.
        rtt: Option<Duration>,
    },
    /// With the first data, whenever they come: an end asks for them.
    OnlyWithData,
}

impl Starts {
    /// What a start may take beside round trips: one packet lost before a round-trip time is known well (`TCP_RTO_MIN` is 200 ms),
    /// and a busy host that starts its threads.
    const SLACK: Duration = Duration::from_millis(300);
    /// The reply that starts the client and its first data take one round trip; the first retransmission timeout is three
    /// (RFC 6298, section 2.2).
    const ROUND_TRIPS: u32 = 4;
    /// Used when the RTT is unknown: the initial retransmission timeout (RFC 6298, section 2.1).
    const UNKNOWN: Duration = Duration::from_secs(1);

    /// When data were due, since the gate opened, once nothing came for so long that the start does not explain it: a client
    /// starts when it learns that the server has started.
    pub(crate) fn due_in_silence(self, since_gate: Duration, place: Place) -> Option<Duration> {
        let Self::WithData { rtt } = self else { return None };
        let start = Self::SLACK + rtt.map_or(Self::UNKNOWN, |rtt| rtt * Self::ROUND_TRIPS);
        (since_gate >= start).then(|| rtt.filter(|_| place == Place::Server).unwrap_or_default())
    }
}

/// The instants of a trial, in microseconds since its start.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    interval_us: u64,
    omit_us: u64,
    extra_us: Vec<u64>,
    /// The planned end; `None` where bytes end the trial.
    pub(crate) end_us: Option<u64>,
}

impl Schedule {
    /// `duration_ms`: `None` where bytes end the trial.
    pub(crate) fn new(interval_ms: u64, omit_ms: u64, duration_ms: Option<u64>) -> Self {
        let mut extra_us: Vec<u64> = EARLY_MS.iter().map(|ms| ms * 1000).collect();
        // Where the counted part begins and ends there is a sample, whatever the interval.
        let omit_us = omit_ms.saturating_mul(1000);
        extra_us.push(omit_us);
        let end_us = duration_ms.map(|ms| ms.saturating_mul(1000));
        extra_us.extend(end_us);
        extra_us.sort_unstable();
        extra_us.dedup();
        Self { interval_us: interval_ms.max(1) * 1000, omit_us, extra_us, end_us }
    }

    /// The first instant after `after_us`, and whether an interval ends there: the omitted part ends one as well.
    pub(crate) fn next(&self, after_us: u64) -> (u64, bool) {
        let interval = (after_us / self.interval_us + 1) * self.interval_us;
        match self.extra_us.iter().find(|&&at| at > after_us) {
            Some(&extra) if extra < interval => (extra, extra == self.omit_us),
            _ => (interval, true),
        }
    }
}

/// Keeps memory bounded: when too many samples are kept, every other one is dropped, and from then on only every other one is kept.
#[derive(Debug)]
pub(crate) struct Thinning {
    max: usize,
    step: u64,
    seen: u64,
}

impl Thinning {
    /// Samples of all streams together: about 1 KB each.
    const MAX_IN_ALL: usize = 4_800;

    pub(crate) fn new(streams: usize) -> Self {
        // Even, so that after thinning the kept ones stay evenly spaced.
        let max = (Self::MAX_IN_ALL / streams.max(1)).max(200) & !1;
        Self { max, step: 1, seen: 0 }
    }

    /// Whether the samples of this instant are kept; call it once per instant.
    pub(crate) fn keeps_next(&mut self) -> bool {
        let kept = self.seen.is_multiple_of(self.step);
        self.seen += 1;
        kept
    }

    /// Whether `kept` samples are too many; then call [`Thinning::thin`] on each list.
    pub(crate) fn is_full(&mut self, kept: usize) -> bool {
        let full = kept >= self.max;
        if full {
            self.step *= 2;
        }
        full
    }

    /// One in this many instants is kept.
    pub(crate) const fn step(&self) -> u64 {
        self.step
    }

    /// Drops every other one, the first stays.
    pub(crate) fn thin<T>(list: &mut Vec<T>) {
        let mut index = 0;
        list.retain(|_| {
            index += 1;
            index % 2 == 1
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instants(schedule: &Schedule, until_ms: u64) -> Vec<u64> {
        let mut at = 0;
        let mut all = vec![0];
        while at < until_ms * 1000 {
            at = schedule.next(at).0;
            all.push(at / 1000);
        }
        all
    }

    #[test]
    fn a_silence_counts_once_it_is_longer_than_a_start() {
        let ms = Duration::from_millis;
        let of = |rtt, since_gate, place| Starts::WithData { rtt }.due_in_silence(ms(since_gate), place);
        assert_eq!(of(Some(ms(100)), 699, Place::Server), None, "4 round trips and 300 ms");
        assert_eq!(of(Some(ms(100)), 700, Place::Server), Some(ms(100)));
        // The server's data may be there as soon as the client is.
        assert_eq!(of(Some(ms(100)), 700, Place::Client), Some(ms(0)));
        assert_eq!((of(None, 1299, Place::Server), of(None, 1300, Place::Server)), (None, Some(ms(0))));
        for starts in [Starts::AtGate, Starts::OnlyWithData] {
            assert_eq!(starts.due_in_silence(ms(60_000), Place::Server), None);
        }
    }

    #[test]
    fn closer_at_first_then_every_interval() {
        assert_eq!(
            instants(&Schedule::new(100, 0, Some(450)), 500),
            [0, 2, 5, 10, 20, 40, 70, 100, 200, 300, 400, 450, 500]
        );
    }

    #[test]
    fn intervals_end_on_the_grid_and_where_the_omitted_part_ends() {
        let schedule = Schedule::new(1000, 1500, Some(10_000));
        assert_eq!(schedule.next(70_000), (100_000, false));
        assert_eq!(schedule.next(100_000), (1_000_000, true));
        assert_eq!(schedule.next(1_000_000), (1_500_000, true));
        assert_eq!(schedule.next(1_700_000), (2_000_000, true));
        // Late by more than an interval: missed intervals are skipped.
        assert_eq!(schedule.next(3_100_000), (4_000_000, true));
    }

    #[test]
    fn memory_is_bounded_and_spacing_stays_even() {
        let mut keep = Thinning { max: 8, step: 1, seen: 0 };
        let mut list = Vec::new();
        for at in 0..100 {
            if keep.keeps_next() {
                list.push(at);
                if keep.is_full(list.len()) {
                    Thinning::thin(&mut list);
                }
            }
        }
        assert!(list.len() < 8);
        assert_eq!(list, (0..100).step_by(16).collect::<Vec<_>>());
        assert_eq!(keep.step(), 16);
        assert_eq!(Thinning::new(1).max, 4_800);
        assert_eq!(Thinning::new(256).max, 200);
    }
}
