//! Loss as the sender sees it.

use narrows_model::load::tcp::TcpSample;

/// Segments over the counted part of a trial, over all streams of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Loss {
    /// Segments with payload that were sent, retransmissions included.
    pub sent: u64,
    pub retransmitted: u64,
    /// Segments that the receiver reported to have had already: retransmissions without a loss.
    pub spurious: u64,
    /// Segments that were acknowledged after later ones and had not been sent again (`tcp_check_sack_reordering`).
    pub reordered: u64,
    /// Segments that were taken for lost and not sent again by the end.
    pub unrepaired: u64,
    /// Segments that were sent and did not arrive, where both sockets say so.
    pub missing: Option<u64>,
    /// Moments at which segments were sent again, a few round trips apart: one overflow of a queue is one.
    pub moments: u64,
    /// The most of them that were sent again within one such moment: a host that is stopped sends a burst, which overflows any queue.
    pub bunched: u64,
    /// Median of the smoothed RTT in the samples before them: behind a queue that overflowed it had risen by the queue. Microseconds.
    pub rtt_before_us: Option<u64>,
}

/// Round trips within which the repairs of one overflow lie, over all streams …
pub(super) const REPAIR: u64 = 4;
/// … and the least that moments are apart: a few samples.
pub(super) const LEAST_APART_US: u64 = 300_000;

/// The largest sum of counts within [`LEAST_APART_US`]; counts are in order of time.
fn most_within(counts: &[(u64, u64)]) -> u64 {
    let within = |index: usize| {
        let (start_us, _) = counts[index];
        let moment = counts[index..].iter().take_while(|(at_us, _)| at_us - start_us < LEAST_APART_US);
        moment.fold(0_u64, |sum, (_, count)| sum.saturating_add(*count))
    };
    (0..counts.len()).map(within).max().unwrap_or(0)
}

impl Loss {
    pub(super) fn of<'a>(streams: impl Iterator<Item = &'a [TcpSample]>) -> Option<Self> {
        let (mut sum, mut repairs) = (Self::default(), Vec::new());
        for samples in streams {
            let (first, last) = (samples.first()?, samples.last()?);
            let grew = |of: fn(&TcpSample) -> Option<u64>| Some(of(last)?.saturating_sub(of(first)?));
            sum.sent = sum.sent.saturating_add(grew(|sample| sample.tcp.data_segs_out)?);
            sum.retransmitted = sum.retransmitted.saturating_add(grew(|sample| sample.tcp.total_retrans)?);
            sum.spurious = sum.spurious.saturating_add(grew(|sample| sample.tcp.dsack_dups).unwrap_or(0));
            sum.reordered = sum.reordered.saturating_add(grew(|sample| sample.tcp.reord_seen).unwrap_or(0));
            let open = |sample: &TcpSample| Some(sample.tcp.lost?.saturating_sub(sample.tcp.retrans?));
            sum.unrepaired = sum.unrepaired.saturating_add(grew(open).unwrap_or(0));
            repairs.extend(samples.windows(2).filter_map(|pair| {
                let again =
                    pair[1].tcp.total_retrans?.checked_sub(pair[0].tcp.total_retrans?).filter(|again| *again > 0)?;
                Some((pair[1].at_us, pair[1].tcp.rtt_us.unwrap_or(0).min(1_000_000), pair[0].tcp.rtt_us, again))
            }));
        }
        repairs.sort_unstable();
        let mut before: Vec<u64> = repairs.iter().filter_map(|(_, _, rtt_us, _)| *rtt_us).collect();
        before.sort_unstable();
        sum.rtt_before_us = before.get(before.len() / 2).copied();
        sum.bunched = most_within(&repairs.iter().map(|(at_us, .., again)| (*at_us, *again)).collect::<Vec<_>>());
        let mut quiet_until_us = 0;
        for (at_us, rtt_us, ..) in repairs {
            sum.moments += u64::from(at_us >= quiet_until_us);
            quiet_until_us = quiet_until_us.max(at_us.saturating_add((REPAIR * rtt_us).max(LEAST_APART_US)));
        }
        Some(sum)
    }

    /// Of a sender that tells no more than what it sent again after the omitted part: segments by the bytes that arrived. `got`: of the
    /// receivers of the whole load, whose samples in which segments came out of order show a loss each, at least.
    pub(super) fn by_bytes<'a>(
        streams: impl Iterator<Item = &'a [TcpSample]>,
        got: impl Iterator<Item = &'a [TcpSample]>,
        mss_bytes: f64,
    ) -> Option<Self> {
        let mut sum = Self::default();
        for samples in streams {
            let (first, last) = (samples.first()?, samples.last()?);
            let again = last.tcp.total_retrans?.saturating_sub(first.tcp.total_retrans?);
            let arrived = last.bytes.saturating_sub(first.bytes) as f64 / mss_bytes.max(1.0);
            sum.sent = sum.sent.saturating_add(again).saturating_add(arrived as u64);
            sum.retransmitted = sum.retransmitted.saturating_add(again);
        }
        let jumps =
            |pair: &&[TcpSample]| pair[0].tcp.rcv_ooopack.zip(pair[1].tcp.rcv_ooopack).is_some_and(|(a, b)| b > a);
        let seen: usize = got.map(|samples| samples.windows(2).filter(jumps).count()).sum();
        sum.retransmitted = sum.retransmitted.max(seen as u64);
        Some(sum)
    }

    /// The same by the counts of both sockets, which the packet ledger has, too.
    pub(super) const fn counted(self, (sent, arrived): (u64, u64)) -> Self {
        Self { sent, missing: Some(sent.saturating_sub(arrived)), ..self }
    }

    /// Segments that were lost: by both sockets, else as far as the sender can know.
    pub const fn lost(&self) -> u64 {
        match self.missing {
            Some(missing) => missing,
            None => self.retransmitted.saturating_sub(self.spurious).saturating_add(self.unrepaired),
        }
    }

    /// Whether fewer than `n` were lost, and not all that was sent.
    pub const fn is_few(&self, n: u64) -> bool {
        self.lost() < n && self.lost() < self.sent
    }

    /// Lost segments per sent segment.
    pub fn rate(&self) -> f64 {
        if self.sent == 0 { 0.0 } else { self.lost() as f64 / self.sent as f64 }
    }
}
