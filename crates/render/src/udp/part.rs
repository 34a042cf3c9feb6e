//! One stream between two of its samples, as both ends saw it; and several of them as one interval.

use crate::figures::float;
use narrows_model::run::measure_udp::{ReceivedPart, SentPart, UdpInterval};
use narrows_model::{Flow, UdpSample};

/// From one sample of an end to a later one of the same end.
pub(crate) type Span<'a> = crate::measure::cutter::Span<'a, UdpSample>;

/// One stream's part of an interval.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) sent: Option<Span<'a>>,
    pub(crate) received: Option<Span<'a>>,
}

/// The interval of one stream (`stream` given) or of several together. `None` of no part or of no time.
pub(crate) fn interval(flow: Flow, stream: Option<u32>, omit_us: u64, parts: &[Part<'_>]) -> Option<UdpInterval> {
    let spans = |of: fn(&Part<'_>) -> bool| parts.iter().filter(move |part| of(part));
    let by_receiver = spans(|part| part.received.is_some()).count() > 0;
    let times: Vec<(u64, u64)> = parts
        .iter()
        .filter_map(|part| if by_receiver { part.received } else { part.sent })
        .map(|(from, to)| (from.at_us, to.at_us))
        .collect();
    let from_us = times.iter().map(|(from, _)| *from).min()?;
    let to_us = times.iter().map(|(_, to)| *to).max().filter(|to| *to > from_us)?;
    Some(UdpInterval {
        flow,
        stream,
        from_s: float(from_us) / 1e6,
        to_s: float(to_us) / 1e6,
        omitted: from_us < omit_us,
        sent: parts
            .iter()
            .map(|part| part.sent.and_then(sent))
            .collect::<Option<Vec<_>>>()
            .and_then(|all| all_sent(&all)),
        received: parts
            .iter()
            .map(|part| part.received.and_then(received))
            .collect::<Option<Vec<_>>>()
            .and_then(|all| all_received(&all)),
    })
}

/// Seconds of a span; `None` where no time passed.
fn seconds((from, to): Span<'_>) -> Option<f64> {
    to.at_us.checked_sub(from.at_us).filter(|us| *us > 0).map(|us| float(us) / 1e6)
}

fn sent(span: Span<'_>) -> Option<SentPart> {
    let (seconds, (from, to)) = (seconds(span)?, span);
    let datagrams = to.datagrams.saturating_sub(from.datagrams);
    let bytes = to.bytes.saturating_sub(from.bytes);
    Some(SentPart {
        datagrams,
        bytes,
        bps: float(bytes) * 8.0 / seconds,
        pps: float(datagrams) / seconds,
        calls: to.calls.saturating_sub(from.calls),
        errors: to.errors.saturating_sub(from.errors),
        unsent: to.unsent.saturating_sub(from.unsent),
    })
}

fn received(span: Span<'_>) -> Option<ReceivedPart> {
    let (seconds, (from, to)) = (seconds(span)?, span);
    let datagrams = to.datagrams.saturating_sub(from.datagrams);
    let bytes = to.bytes.saturating_sub(from.bytes);
    let (lost, duplicates) = (to.lost.saturating_sub(from.lost), to.duplicates.saturating_sub(from.duplicates));
    Some(ReceivedPart {
        datagrams,
        bytes,
        bps: float(bytes) * 8.0 / seconds,
        pps: float(datagrams) / seconds,
        lost,
        loss: loss(lost, datagrams.saturating_sub(duplicates)),
        duplicates,
        reordered: to.reordered.saturating_sub(from.reordered),
        jitter_ns: to.jitter_ns,
        socket_drops: to.socket_drops.zip(from.socket_drops).map(|(to, from)| to.saturating_sub(from)),
    })
}

/// Lost of all that should have arrived.
pub(crate) fn loss(lost: u64, distinct: u64) -> Option<f64> {
    let due = lost.saturating_add(distinct);
    (due > 0).then(|| float(lost) / float(due))
}

fn all_sent(parts: &[SentPart]) -> Option<SentPart> {
    let (first, rest) = parts.split_first()?;
    Some(rest.iter().fold(*first, |sum, part| SentPart {
        datagrams: sum.datagrams.saturating_add(part.datagrams),
        bytes: sum.bytes.saturating_add(part.bytes),
        bps: sum.bps + part.bps,
        pps: sum.pps + part.pps,
        calls: sum.calls.saturating_add(part.calls),
        errors: sum.errors.saturating_add(part.errors),
        unsent: sum.unsent.saturating_add(part.unsent),
    }))
}

fn all_received(parts: &[ReceivedPart]) -> Option<ReceivedPart> {
    let (first, rest) = parts.split_first()?;
    Some(rest.iter().fold(*first, |sum, part| {
        let lost = sum.lost.saturating_add(part.lost);
        let datagrams = sum.datagrams.saturating_add(part.datagrams);
        let duplicates = sum.duplicates.saturating_add(part.duplicates);
        ReceivedPart {
            datagrams,
            bytes: sum.bytes.saturating_add(part.bytes),
            bps: sum.bps + part.bps,
            pps: sum.pps + part.pps,
            lost,
            loss: loss(lost, datagrams.saturating_sub(duplicates)),
            duplicates,
            reordered: sum.reordered.saturating_add(part.reordered),
            jitter_ns: sum.jitter_ns.max(part.jitter_ns),
            socket_drops: sum.socket_drops.zip(part.socket_drops).map(|(a, b)| a.saturating_add(b)),
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_is_of_what_was_due_and_copies_do_not_hide_it() {
        let from = UdpSample::default();
        let to = UdpSample { at_us: 500_000, datagrams: 95, bytes: 9_500, lost: 10, duplicates: 5, ..from.clone() };
        let part = Part { sent: None, received: Some((&from, &to)) };
        let view = interval(Flow::Up, None, 0, &[part, part]).expect("time passed");
        let got = view.received.expect("a receiver");
        assert_eq!((got.lost, got.datagrams, got.loss), (20, 190, Some(0.1)));
        assert!((got.bps - 304_000.0).abs() < 1e-6, "{got:?}");
        assert_eq!(view.sent, None, "an unknown sender is not a silent one");
    }

    #[test]
    fn one_unknown_sender_makes_the_sum_unknown() {
        let from = UdpSample::default();
        let to = UdpSample { at_us: 1_000_000, datagrams: 1, ..from.clone() };
        let known = Part { sent: Some((&from, &to)), received: Some((&from, &to)) };
        let half = Part { sent: None, ..known };
        let view = interval(Flow::Down, None, 0, &[known, half]).expect("time passed");
        assert!(view.sent.is_none() && view.received.is_some());
        assert_eq!(interval(Flow::Up, None, 0, &[]), None);
    }
}
