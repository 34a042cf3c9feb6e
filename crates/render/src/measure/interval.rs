//! The interval between two samples of each stream.

use super::cutter::Span;
use crate::figures::float;
use narrows_model::run::measure::IntervalView;
use narrows_model::run::tcp_columns::{Column, Over, TcpColumns};
use narrows_model::{Flow, Place, TcpInfo, TcpSample};

/// One stream's part of an interval: the end whose bytes count, and the sender's view of the same time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) bytes: Span<'a, TcpSample>,
    pub(crate) sender: Option<Span<'a, TcpSample>>,
}

/// The interval of one stream (`stream` given) or of several together. `None` of no part or of no time.
pub(crate) fn interval(
    flow: Flow,
    stream: Option<u32>,
    seen_by: Place,
    omit_us: u64,
    parts: &[Part<'_>],
) -> Option<IntervalView> {
    let from_us = parts.iter().map(|part| part.bytes.0.at_us).min()?;
    let to_us = parts.iter().map(|part| part.bytes.1.at_us).max()?;
    let length = to_us.checked_sub(from_us).filter(|length| *length > 0)?;
    let bytes = parts.iter().map(|part| carried(flow, seen_by, part.bytes)).fold(0, u64::saturating_add);
    let senders: Vec<_> = parts.iter().map(|part| part.sender.map(|(from, to)| (&from.tcp, &to.tcp))).collect();
    Some(IntervalView {
        flow,
        stream,
        seen_by,
        from_s: float(from_us) / 1e6,
        to_s: float(to_us) / 1e6,
        bytes,
        goodput_bps: float(bytes) * 8e6 / float(length),
        omitted: from_us < omit_us,
        columns: TcpColumns::from_each(|column| value(column, &senders)),
        sender: None,
        receiver: None,
    })
}

/// A column's value over the streams; each has its sender's first and last view, where they are known.
fn value(column: &Column, streams: &[Option<(&TcpInfo, &TcpInfo)>]) -> Option<u64> {
    let newest = || streams.iter().map(|stream| (column.of)(stream.as_ref()?.1));
    match column.over {
        // What a kernel counts, it counts from zero.
        Over::Growth => {
            let before = |(from, _): &(&TcpInfo, &TcpInfo)| (column.of)(from).unwrap_or(0);
            let before = streams.iter().map(|stream| stream.as_ref().map_or(0, before));
            newest().zip(before).map(|(to, from)| Some(to?.saturating_sub(from))).sum()
        }
        Over::Sum => newest().sum(),
        Over::Median => {
            let values: Vec<f64> = newest().flatten().map(float).collect();
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a median of 32-bit values
            narrows_stats::median(&values).map(|value| value.round() as u64)
        }
    }
}

/// Application bytes of a span: what a receiver took; of a sender what was acknowledged, or else what it handed over.
fn carried(flow: Flow, seen_by: Place, (from, to): Span<'_, TcpSample>) -> u64 {
    let acked = from.tcp.bytes_acked.zip(to.tcp.bytes_acked).filter(|_| seen_by == flow.sender());
    let (from, to) = acked.unwrap_or((from.bytes, to.bytes));
    to.saturating_sub(from)
}
