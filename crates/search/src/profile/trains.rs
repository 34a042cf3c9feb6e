//! Trains of datagrams back to back: how fast they left and arrived.

use narrows_model::StepRecord;

/// The rate at which trains of so many datagrams left: the median.
pub(super) fn sent_bps(steps: &[StepRecord], header_bytes: u32, length: u32) -> Option<f64> {
    let trains = steps.iter().filter(|it| it.step.gap_ns == 0 && it.step.datagrams == length && it.sent.span_ns > 0);
    let rates: Vec<f64> = trains
        .map(|it| {
            let bits = f64::from(it.step.datagram_bytes + header_bytes) * 8.0;
            f64::from(it.sent.datagrams.saturating_sub(1)) * bits * 1e9 / it.sent.span_ns as f64
        })
        .collect();
    narrows_stats::quantile(&rates, 0.5)
}

/// A train whose last quarter arrives at less than this part of its rate met a bucket that ran out.
const RUNS_OUT: f64 = 0.75;

/// Trains whose times differ by more than this and by more than a quarter met a bucket at different fills; a host that stalls is back sooner.
const REFILLS_NS: f64 = 5e6;

/// Whether trains of one length took about as long as each other: otherwise their rates lie between that of a bucket and that of its
/// refill, and are none of the path.
pub(super) fn agree(steps: &[StepRecord], length: u32) -> bool {
    let trains = steps.iter().filter(|record| record.step.gap_ns == 0 && record.step.datagrams == length);
    let whole = trains.filter_map(|it| it.received.as_ref()).filter(|it| it.datagrams == length);
    let spans: Vec<f64> = whole.map(|it| it.span_ns as f64).collect();
    let (Some(middle), Some(longest)) = (narrows_stats::quantile(&spans, 0.5), spans.iter().copied().reduce(f64::max))
    else {
        return true;
    };
    longest - middle <= REFILLS_NS.max(0.25 * middle)
}

/// The rate at which trains arrived: the lower quartile of their rates, since a host that stalls for a moment receives
/// what arrived meanwhile in one batch; and the datagrams of such a train. Where longer trains were sent they count alone.
pub(super) fn arrived_bps(steps: &[StepRecord], header_bytes: u32) -> Option<(f64, u32)> {
    let rate = |record: &StepRecord| {
        let received = record.received.as_ref().filter(|received| received.datagrams >= 5 && received.span_ns > 0)?;
        // The delay at the end of a train is that of its last datagram only where that arrived.
        if received.parts.is_empty() && received.datagrams < record.sent.datagrams {
            return None;
        }
        let bits = f64::from(record.step.datagram_bytes + header_bytes) * 8.0;
        // What is lost at the end of a train only shortens it.
        Some(f64::from(received.datagrams - 1) * bits * 1e9 / received.span_ns as f64)
    };
    let ends = |record: &StepRecord| {
        let (parts, bits) =
            (&record.received.as_ref()?.parts, f64::from(record.step.datagram_bytes + header_bytes) * 8.0);
        let (first, last) = parts.split_at_checked(parts.len() * 3 / 4)?;
        let ns = last.last()?.last_ns.checked_sub(first.last()?.last_ns).filter(|ns| *ns > 0)?;
        let count: u32 = last.iter().map(|part| part.received).sum();
        (count >= 8).then(|| f64::from(count) * bits * 1e9 / ns as f64)
    };
    let trains = || steps.iter().filter(|record| record.step.gap_ns == 0);
    let of_length = |length: u32| {
        let all = || trains().filter(|record| record.step.datagrams == length);
        let rates: Vec<f64> = all().filter_map(rate).collect();
        let bps = (rates.len() >= 2).then(|| narrows_stats::quantile(&rates, 0.25))??;
        // Within a long train another bucket may run out, behind the first limit: what the ends of most arrive at goes on.
        let ends: Vec<f64> = all().filter_map(ends).collect();
        let end = (ends.len() >= 3).then(|| narrows_stats::quantile(&ends, 0.5)).flatten();
        Some((end.filter(|end| *end < RUNS_OUT * bps).unwrap_or(bps), length))
    };
    let lengths = || trains().map(|record| record.step.datagrams);
    of_length(lengths().max()?).or_else(|| of_length(lengths().min()?))
}

/// Bursts that pass at this many times the sustained rate pass by credit: trains of one link agree within a few percent …
const CREDIT: f64 = 1.15;
/// … and take shorter by so much: a host that wakes up late for the first datagram of a train makes it look shorter by less.
const WAKE_UP_US: f64 = 100.0;

/// Whether the receiver of these steps told totals alone.
pub(super) fn is_by_totals(steps: &[StepRecord]) -> bool {
    let mut known = steps.iter().filter_map(|step| step.received.as_ref()).peekable();
    known.peek().is_some() && known.all(|received| received.parts.is_empty())
}

/// Whether trains passed clearly faster than `bps`; `None` where they are too short to tell.
pub(super) fn credit(steps: &[StepRecord], header_bytes: u32, bps: f64, jitter_us: f64) -> Option<bool> {
    let (burst, length) = arrived_bps(steps, header_bytes)?;
    let bytes = steps.iter().find(|record| record.step.datagrams == length)?.step.datagram_bytes;
    let bits = f64::from(length.saturating_sub(1)) * f64::from(bytes + header_bytes) * 8.0;
    let us = |rate: f64| bits / rate * 1e6;
    // The end of a train alone, by an answer, is known no better than answers vary, and a link a little faster than the limit looks like it.
    if is_by_totals(steps) {
        return (burst >= CREDIT * bps && us(bps) - us(burst) > WAKE_UP_US.max(jitter_us)).then_some(true);
    }
    if us(bps) > 3.0 * WAKE_UP_US {
        return Some(burst >= CREDIT * bps && us(bps) - us(burst) > WAKE_UP_US);
    }
    // However short, what passed no faster than the path sustains had no credit.
    (burst <= bps).then_some(false)
}
