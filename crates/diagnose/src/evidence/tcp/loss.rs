//! Loss as the sender sees it.

use narrows_model::load::tcp::TcpSample;

/// Segments over the counted part of a trial, over all streams of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Loss {
    /// Segments with payload that were sent, retransmissions included.
    pub sent: u64,
    /// Of them, retransmissions.
    pub retransmitted: u64,
    /// Segments that the receiver reported to have had already: retransmissions without a loss.
    pub spurious: u64,
    /// Moments at which segments were sent again, a few round trips apart: one overflow of a queue is one.
    pub moments: u64,
}

/// Round trips within which the repairs of one overflow lie.
const REPAIR: u64 = 4;

impl Loss {
    pub(super) fn of<'a>(streams: impl Iterator<Item = &'a [TcpSample]>) -> Option<Self> {
        let mut sum = Self::default();
        for samples in streams {
            let (first, last) = (samples.first()?, samples.last()?);
            let grew = |of: fn(&TcpSample) -> Option<u64>| Some(of(last)?.saturating_sub(of(first)?));
            sum.sent = sum.sent.saturating_add(grew(|sample| sample.tcp.data_segs_out)?);
            sum.retransmitted = sum.retransmitted.saturating_add(grew(|sample| sample.tcp.total_retrans)?);
            sum.spurious = sum.spurious.saturating_add(grew(|sample| sample.tcp.dsack_dups).unwrap_or(0));
            let mut quiet_until_us = 0;
            for pair in samples.windows(2) {
                let [before, sample] = pair else { continue };
                if sample.tcp.total_retrans > before.tcp.total_retrans {
                    sum.moments += u64::from(sample.at_us >= quiet_until_us);
                    let rtt_us = sample.tcp.rtt_us.unwrap_or(0).min(1_000_000);
                    quiet_until_us = sample.at_us.saturating_add(REPAIR * rtt_us);
                }
            }
        }
        Some(sum)
    }

    /// Segments that were lost, as far as the sender can know.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.retransmitted.saturating_sub(self.spurious)
    }

    /// Lost segments per sent segment.
    #[must_use]
    pub fn rate(&self) -> f64 {
        #[allow(clippy::cast_precision_loss)]
        if self.sent == 0 { 0.0 } else { self.lost() as f64 / self.sent as f64 }
    }
}
