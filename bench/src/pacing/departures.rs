//! Statistics of departure times: rate, gaps, bursts. Pure.

/// Packets further apart than this (or than ten mean gaps) belong to different trains: a handshake before the load, or
/// a last message after it.
const TRAIN_GAP_NS: f64 = 100e6;

/// The ends of a train, which do not show the pace, are left out: this share of it, and at least this many packets
/// (handshakes of the same length, a slow start, the last message).
const ENDS: (usize, usize) = (100, 2);

/// A train of packets without its ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Departures {
    pub(crate) packets: usize,
    /// Packets per second, from the first to the last.
    pub(crate) pps: f64,
    pub(crate) gap_p50_ns: u64,
    pub(crate) gap_p99_ns: u64,
    /// The longest run of packets that each followed within half of a mean gap.
    pub(crate) burst: usize,
    /// The bucket size that a token bucket of this rate needs to pass the train: 1 is a perfect sender.
    pub(crate) bucket: f64,
}

impl Departures {
    /// For the longest train in `times_ns` (ascending), without its first and last hundredth. `asked_pps`: the
    /// requested rate. `None` for fewer than eight packets.
    pub(crate) fn of(times_ns: &[u64], asked_pps: f64) -> Option<Self> {
        let even_ns = 1e9 / asked_pps;
        let apart = TRAIN_GAP_NS.max(10.0 * even_ns);
        let times = times_ns.chunk_by(|a, b| gap(*a, *b) <= apart).max_by_key(|train| train.len())?;
        let cut = (times.len() / ENDS.0).max(ENDS.1);
        let times = times.get(cut..times.len().checked_sub(cut)?).filter(|train| train.len() >= 4)?;
        let ([first, ..], [.., last]) = (times, times) else { return None };
        if first == last {
            return None;
        }
        let mut gaps: Vec<u64> = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
        let pps = gaps.len() as f64 * 1e9 / gap(*first, *last);
        let burst = times.chunk_by(|a, b| gap(*a, *b) < even_ns / 2.0).map(<[u64]>::len).max().unwrap_or(1);
        let tokens_per_ns = pps.max(asked_pps) / 1e9;
        let (mut level, mut bucket) = (1.0_f64, 1.0_f64);
        for gap in &gaps {
            level = (level - *gap as f64 * tokens_per_ns).max(0.0) + 1.0;
            bucket = bucket.max(level);
        }
        gaps.sort_unstable();
        let quantile = |q: f64| gaps[((gaps.len() - 1) as f64 * q).round() as usize];
        Some(Self { packets: times.len(), pps, gap_p50_ns: quantile(0.5), gap_p99_ns: quantile(0.99), burst, bucket })
    }
}

fn gap(from: u64, to: u64) -> f64 {
    to.saturating_sub(from) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_train_needs_one_token() {
        let times: Vec<u64> = (0..1001).map(|n| n * 1000).collect();
        let even = Departures::of(&times, 1e6).expect("a train");
        assert_eq!((even.packets, even.gap_p50_ns, even.gap_p99_ns, even.burst), (981, 1000, 1000, 1));
        assert!((even.pps - 1e6).abs() < 1e-6 && (even.bucket - 1.0).abs() < 1e-9, "{even:?}");
    }

    #[test]
    fn a_burst_shows_in_length_and_tokens() {
        // Ten at once, then nothing for ten gaps: the same rate, repeated.
        let times: Vec<u64> = (0..1000).map(|n| n / 10 * 10_000).collect();
        let bursts = Departures::of(&times, 1e6).expect("a train");
        assert_eq!((bursts.gap_p50_ns, bursts.burst), (0, 10));
        assert!((9.9..=10.2).contains(&bursts.bucket), "{bursts:?}");
    }

    #[test]
    fn packets_long_before_or_after_are_ignored() {
        let times: Vec<u64> =
            std::iter::once(0).chain((0..100).map(|n| 5_000_000_000 + n * 1000)).chain([9_000_000_000]).collect();
        assert_eq!(Departures::of(&times, 1e6).map(|train| train.packets), Some(96));
        assert_eq!(Departures::of(&[1, 2, 3, 4, 5, 6, 7], 1e6), None);
        assert_eq!(Departures::of(&[], 1e6), None);
    }

    #[test]
    fn a_slow_train_is_one_train() {
        let times: Vec<u64> = (0..14).map(|n| n * 500_000_000).collect();
        assert_eq!(Departures::of(&times, 2.0).map(|train| train.packets), Some(10));
    }
}
