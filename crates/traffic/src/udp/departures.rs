//! What left, when, and what did not: the sender's side of the record. Pure; times are nanoseconds of a monotonic clock.

use narrows_model::{UdpSent, Unsent};
use narrows_stats::Histogram;

/// Calls that follow each other sooner are one burst on the wire.
const BACK_TO_BACK_NS: u64 = 1_000;

#[derive(Debug, Default)]
pub(crate) struct Departures {
    pub(crate) datagrams: u64,
    pub(crate) bytes: u64,
    pub(crate) calls: u64,
    pub(crate) errors: u64,
    pub(crate) unsent: Unsent,
    first_ns: Option<u64>,
    /// When the last call that sent began, and when it was over.
    last_ns: (u64, u64),
    gaps: Histogram,
    burst: u64,
    burst_max: u64,
}

impl Departures {
    /// A call sent this many datagrams.
    #[inline]
    pub(crate) fn left(&mut self, datagrams: u64, bytes: u64, began_ns: u64, over_ns: u64) {
        self.calls += 1;
        self.datagrams += datagrams;
        self.bytes += bytes;
        if self.first_ns.is_some() {
            self.gaps.record(began_ns.saturating_sub(self.last_ns.0));
        } else {
            self.first_ns = Some(began_ns);
        }
        self.gaps.record_many(0, datagrams.saturating_sub(1));
        if began_ns.saturating_sub(self.last_ns.1) >= BACK_TO_BACK_NS {
            self.burst = 0;
        }
        self.burst += datagrams;
        self.burst_max = self.burst_max.max(self.burst);
        self.last_ns = (began_ns, over_ns);
    }

    /// A call failed, and left this many datagrams unsent.
    pub(crate) fn failed(&mut self, datagrams: u64, count: fn(&mut Unsent) -> &mut u64) {
        self.calls += 1;
        self.errors += 1;
        *count(&mut self.unsent) += datagrams;
    }

    /// A call failed because of segmentation, which is not tried again; nothing is unsent.
    pub(crate) const fn retried(&mut self) {
        self.calls += 1;
        self.errors += 1;
    }

    pub(crate) fn finish(&self, intended: u64, skipped: u64) -> UdpSent {
        UdpSent {
            intended,
            datagrams: self.datagrams,
            bytes: self.bytes,
            calls: self.calls,
            errors: self.errors,
            unsent: self.unsent,
            skipped,
            active_ns: self.first_ns.map_or(0, |first| self.last_ns.0.saturating_sub(first)),
            gaps_ns: self.gaps.distribution(),
            burst_max: self.burst_max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_and_bursts_are_those_of_the_wire() {
        let mut departures = Departures::default();
        departures.left(10, 1000, 100_000, 105_000);
        departures.left(5, 500, 105_500, 108_000); // half a microsecond later: the same burst
        departures.left(7, 700, 200_000, 203_000);
        departures.failed(3, |unsent| &mut unsent.no_buffers);
        let sent = departures.finish(30, 5);
        assert_eq!((sent.datagrams, sent.bytes, sent.calls, sent.errors), (22, 2200, 4, 1));
        assert_eq!((sent.unsent.total(), sent.unsent.no_buffers, sent.skipped), (3, 3, 5));
        assert_eq!((sent.burst_max, sent.active_ns), (15, 100_000));
        assert_eq!((sent.gaps_ns.count, sent.gaps_ns.p50, sent.gaps_ns.max), (21, 0, 94_500));
    }
}
