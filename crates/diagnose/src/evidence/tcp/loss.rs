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
}

impl Loss {
    pub(super) fn of<'a>(streams: impl Iterator<Item = &'a [TcpSample]>) -> Option<Self> {
        let mut sum = Self::default();
        for samples in streams {
            let (first, last) = (samples.first()?, samples.last()?);
            let grew = |of: fn(&TcpSample) -> Option<u64>| Some(of(last)?.saturating_sub(of(first)?));
            sum.sent = sum.sent.saturating_add(grew(|sample| sample.tcp.data_segs_out)?);
            sum.retransmitted = sum.retransmitted.saturating_add(grew(|sample| sample.tcp.total_retrans)?);
            sum.spurious = sum.spurious.saturating_add(grew(|sample| sample.tcp.dsack_dups).unwrap_or(0));
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
