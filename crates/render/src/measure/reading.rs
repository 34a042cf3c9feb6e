//! One stream at one instant, as far as an interval needs it; and the interval between two of them.

pub(crate) use crate::figures::float;
use narrows_model::run::measure::IntervalView;
use narrows_model::{Flow, Place, TcpSample};

/// One stream at one instant, seen from one end. All counts are cumulative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    /// Since the trial began on that end.
    pub at_us: u64,
    /// Bytes that the application handed over or took.
    pub bytes: u64,
    /// Payload that the kernel saw acknowledged, where it says; of senders only.
    pub acked_bytes: Option<u64>,
    /// Segments retransmitted, where the kernel says.
    pub retransmits: Option<u64>,
    /// Smoothed RTT, where the kernel says.
    pub rtt_us: Option<u64>,
    /// Congestion window, where the kernel says.
    pub cwnd_bytes: Option<u64>,
}

impl From<&TcpSample> for Reading {
    fn from(sample: &TcpSample) -> Self {
        let tcp = &sample.tcp;
        Self {
            at_us: sample.at_us,
            bytes: sample.bytes,
            acked_bytes: tcp.bytes_acked,
            retransmits: tcp.total_retrans,
            rtt_us: tcp.rtt_us,
            cwnd_bytes: tcp.snd_cwnd.zip(tcp.snd_mss_bytes).map(|(segments, mss)| segments.saturating_mul(mss)),
        }
    }
}

/// From one reading of an end to a later one.
pub(crate) type Span = (Reading, Reading);

/// One stream's part of an interval: the end whose bytes count, and the sender's view of the same time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub(crate) bytes: Span,
    pub(crate) sender: Option<Span>,
}

/// The interval of one stream (`stream` given) or of several together. `None` of no part or of no time.
pub(crate) fn interval(
    flow: Flow,
    stream: Option<u32>,
    seen_by: Place,
    omit_us: u64,
    parts: &[Part],
) -> Option<IntervalView> {
    let from_us = parts.iter().map(|part| part.bytes.0.at_us).min()?;
    let to_us = parts.iter().map(|part| part.bytes.1.at_us).max()?;
    let length = to_us.checked_sub(from_us).filter(|length| *length > 0)?;
    let bytes = parts.iter().map(|part| carried(flow, seen_by, part.bytes)).fold(0, u64::saturating_add);
    let ends = || parts.iter().filter_map(|part| part.sender.map(|(_, end)| end));
    let rtts: Vec<f64> = ends().filter_map(|end| end.rtt_us).map(float).collect();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a median of u32 microseconds
    let rtt_us = narrows_stats::median(&rtts).map(|rtt| rtt.round() as u64);
    Some(IntervalView {
        flow,
        stream,
        seen_by,
        from_s: float(from_us) / 1e6,
        to_s: float(to_us) / 1e6,
        bytes,
        goodput_bps: float(bytes) * 8e6 / float(length),
        omitted: from_us < omit_us,
        retransmits: parts.iter().map(retransmits).sum(),
        rtt_us,
        cwnd_bytes: ends().map(|end| end.cwnd_bytes).sum::<Option<u64>>().filter(|_| ends().next().is_some()),
        sender: None,
        receiver: None,
    })
}

/// Application bytes of a span: what a receiver took; of a sender what was acknowledged, or else what it handed over.
fn carried(flow: Flow, seen_by: Place, (from, to): Span) -> u64 {
    let acked = from.acked_bytes.zip(to.acked_bytes).filter(|_| seen_by == flow.sender());
    let (from, to) = acked.unwrap_or((from.bytes, to.bytes));
    to.saturating_sub(from)
}

fn retransmits(part: &Part) -> Option<u64> {
    let (from, to) = part.sender?;
    Some(to.retransmits?.saturating_sub(from.retransmits?))
}
