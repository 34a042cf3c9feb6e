//! The acknowledgements of a flow, as both sockets counted them, or the receiver's alone.

use super::counted::Counted;
use narrows_model::load::tcp::TcpSample;
use narrows_model::words::figures::float;

/// Segments without payload that went against a flow, a second, over all its streams.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Acks {
    /// Those that the receiver sent …
    pub sent_per_s: f64,
    /// … and those that reached the sender; `None` of a sender that shows nothing.
    pub arrived_per_s: Option<f64>,
    /// Length of the count, seconds.
    pub counted_s: f64,
    /// By how much the sender's smoothed RTT grew in it, microseconds.
    pub rtt_grew_us: Option<f64>,
}

/// How many in a stream so far.
type Count = fn(&TcpSample) -> Option<u64>;

impl Acks {
    /// Of the counted samples of both ends; `None` where the receiver's socket does not count them.
    pub(super) fn of(sender: &Counted<'_>, receiver: &Counted<'_>) -> Option<Self> {
        let grew = |of: fn(&TcpSample) -> Option<u64>| {
            let (first, last) = sender.first().or_else(|| receiver.first())?.1.split_first()?;
            Some(float(of(last.last()?)?) - float(of(first)?))
        };
        Some(Self {
            counted_s: grew(|sample| Some(sample.at_us))? / 1e6,
            rtt_grew_us: grew(|sample| sample.tcp.rtt_us).filter(|_| !sender.is_empty()),
            sent_per_s: rate(receiver, |it| it.tcp.segs_out?.checked_sub(it.tcp.data_segs_out.unwrap_or(0)))?,
            arrived_per_s: rate(sender, |it| it.tcp.segs_in?.checked_sub(it.tcp.data_segs_in.unwrap_or(0)))
                .filter(|_| !sender.is_empty()),
        })
    }

    /// The part of them that did not arrive while they were counted; `None` where nobody tells.
    pub fn lost(&self) -> Option<f64> {
        let arrived_per_s = self.arrived_per_s?;
        Some(if self.sent_per_s > 0.0 { (1.0 - arrived_per_s / self.sent_per_s).max(0.0) } else { 0.0 })
    }

    /// By how much the wait on the way to the sender grew, microseconds (Little's law): of what was sent and did not arrive, where the RTT
    /// grew by as much within a factor of two. More was lost, less waited elsewhere.
    pub fn waits_us(&self) -> Option<f64> {
        let waits_us = self.lost()? * self.counted_s * 1e6;
        (waits_us > 0.0 && (0.5..=2.0).contains(&(waits_us / self.rtt_grew_us?))).then_some(waits_us)
    }
}

fn rate(streams: &Counted<'_>, count: Count) -> Option<f64> {
    let mut per_s = 0.0;
    for (_, samples) in streams {
        let (first, last) = (samples.first()?, samples.last()?);
        let span_us = last.at_us.checked_sub(first.at_us).filter(|us| *us > 0)?;
        per_s += count(last)?.saturating_sub(count(first)?) as f64 * 1e6 / span_us as f64;
    }
    Some(per_s)
}
