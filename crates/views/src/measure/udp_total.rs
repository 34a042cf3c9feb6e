//! The counted part of a UDP measurement: totals of each stream, and of a flow.
//!
//! Counts are those of the finished records less what had been counted when the omitted part ended. Rates are over
//! [`UdpPlan::rate_seconds`], of what was sent over the sender's own time, so that a stall at the end is part of them; with an omitted part they are over the samples between its end and the planned end.

use super::distribution::merged;
use super::udp::loss;
use super::{FlowRecords, Pair};
use narrows_model::load::udp::report::{ReceivedTotal, SentTotal, ShortBuffer, UdpFlowSummary, UdpTotal};
use narrows_model::words::figures::float;
use narrows_model::{Flow, UdpPlan, UdpRate, UdpSample, UdpSent, UdpStreamRecord};

/// The summary of one flow; `None` where neither end saw it.
pub(super) fn flow_summary(records: &FlowRecords<'_, UdpPlan>, plan: &UdpPlan) -> Option<UdpFlowSummary> {
    let rate = plan.rate(records.flow);
    let streams: Vec<UdpTotal> =
        records.pairs.iter().map(|pair| stream(pair, plan, records.flow, share_of(rate, plan))).collect();
    let senders: Option<Vec<&SentTotal>> = streams.iter().map(|it| it.sent.as_ref()).collect();
    let receivers: Option<Vec<&ReceivedTotal>> = streams.iter().map(|it| it.received.as_ref()).collect();
    let total = UdpTotal {
        stream: None,
        sent: senders.and_then(|all| all_sent(&all)),
        received: receivers.and_then(|all| all_received(&all)),
    };
    (!streams.is_empty()).then(|| UdpFlowSummary {
        flow: records.flow,
        asked: rate,
        total,
        streams,
        short_buffers: short_buffers(records, plan),
    })
}

/// The rate that one stream of a flow was asked for.
fn share_of(rate: UdpRate, plan: &UdpPlan) -> UdpRate {
    let streams = u64::from(plan.streams.max(1));
    match rate {
        UdpRate::Bps(bps) => UdpRate::Bps(bps / streams),
        UdpRate::Pps(pps) => UdpRate::Pps(pps / float(streams)),
        UdpRate::Max => UdpRate::Max,
    }
}

fn stream(pair: &Pair<'_, UdpStreamRecord>, plan: &UdpPlan, flow: Flow, asked: UdpRate) -> UdpTotal {
    let omit_us = plan.omit_ms.saturating_mul(1000);
    let ends = [pair.sender, pair.receiver];
    // A trial that was cut short within its omitted part is summed up whole.
    let cut_short = ends.iter().flatten().all(|it| it.samples.last().is_none_or(|sample| sample.at_us <= omit_us));
    let omit_us = if cut_short { 0 } else { omit_us };
    let zero = UdpSample::default();
    let base = |record: &UdpStreamRecord| match omit_us {
        0 => zero.clone(),
        _ => record.samples.iter().find(|sample| sample.at_us >= omit_us).unwrap_or(&zero).clone(),
    };
    let (sent_totals, received_totals) =
        (pair.sender.and_then(|it| it.sent.as_ref()), pair.receiver.and_then(|it| it.received.as_ref()));
    let finished = sent_totals.is_some() || received_totals.is_some();
    // A queue that drains after the last departure lengthens what arrives, not what was sent.
    let whole_seconds = (omit_us == 0 && finished).then(|| WholeSeconds {
        sent: plan.rate_seconds(flow, sent_totals, received_totals.filter(|_| sent_totals.is_none())),
        received: plan.rate_seconds(flow, sent_totals, received_totals),
    });
    let pace = Pace {
        omit_us,
        end_us: plan.duration_ms.saturating_mul(1000),
        whole_seconds,
        sent: sent_totals.map(|it| it.datagrams),
    };
    UdpTotal {
        stream: Some(pair.id),
        sent: pair.sender.and_then(|it| sent(it, &base(it), &pace, asked)),
        received: pair.receiver.and_then(|it| received(it, &base(it), &pace)),
    }
}

/// The time of a whole stream, seconds.
#[derive(Clone, Copy)]
struct WholeSeconds {
    sent: f64,
    received: f64,
}

/// What rates are made from.
struct Pace {
    omit_us: u64,
    end_us: u64,
    /// Of a stream whose totals are known and count whole.
    whole_seconds: Option<WholeSeconds>,
    sent: Option<u64>,
}

impl Pace {
    /// Bits and datagrams a second of one end's stream that carried `bytes` in `datagrams`.
    fn rates(&self, record: &UdpStreamRecord, datagrams: u64, bytes: u64) -> Option<(f64, f64)> {
        if datagrams == 0 {
            return Some((0.0, 0.0));
        }
        if let Some(whole) = self.whole_seconds {
            let seconds = if record.sent.is_some() { whole.sent } else { whole.received };
            return Some((float(bytes) * 8.0 / seconds, float(datagrams) / seconds));
        }
        let first = record.samples.iter().find(|sample| sample.at_us >= self.omit_us)?;
        let planned = record.samples.iter().rfind(|sample| sample.at_us <= self.end_us);
        let half = (self.end_us.saturating_sub(self.omit_us)) / 2;
        let last = planned.filter(|it| it.at_us.saturating_sub(first.at_us) >= half).or(record.samples.last())?;
        let seconds = last.at_us.checked_sub(first.at_us).filter(|us| *us > 0).map(|us| float(us) / 1e6)?;
        let passed = |of: fn(&UdpSample) -> u64| float(of(last).saturating_sub(of(first))) / seconds;
        Some((passed(|it| it.bytes) * 8.0, passed(|it| it.datagrams)))
    }
}

fn sent(record: &UdpStreamRecord, base: &UdpSample, pace: &Pace, asked: UdpRate) -> Option<SentTotal> {
    let whole = record.sent.as_ref();
    let last = record.samples.last();
    let count = |of: Option<u64>, sampled: fn(&UdpSample) -> u64| {
        Some(of.or_else(|| last.map(sampled))?.saturating_sub(sampled(base)))
    };
    let datagrams = count(whole.map(|it| it.datagrams), |it| it.datagrams)?;
    let bytes = count(whole.map(|it| it.bytes), |it| it.bytes)?;
    let unsent = count(whole.map(|it| it.unsent.total()), |it| it.unsent)?;
    let (bps, pps) = pace.rates(record, datagrams, bytes)?;
    let intended = whole.map(|it| it.intended).filter(|intended| pace.omit_us == 0 && *intended > 0);
    let of_asked = match (intended, asked) {
        (_, UdpRate::Max) => None,
        (Some(intended), _) => Some(float(datagrams) / float(intended)),
        (None, UdpRate::Bps(asked)) => (asked > 0).then(|| bps / float(asked)),
        (None, UdpRate::Pps(asked)) => (asked > 0.0).then(|| pps / asked),
    };
    Some(SentTotal {
        datagrams,
        bytes,
        bps,
        pps,
        of_asked,
        calls: count(whole.map(|it| it.calls), |it| it.calls)?,
        errors: count(whole.map(|it| it.errors), |it| it.errors)?,
        unsent,
        success: success(datagrams, unsent).filter(|_| whole.is_none_or(UdpSent::counts_calls)),
        offered_pps: offered(pps, datagrams, unsent),
        unsent_by: whole.map(|it| it.unsent),
        skipped: whole.map(|it| it.skipped),
        gaps_ns: whole.and_then(|it| merged([&it.gaps_ns])),
        burst_max: whole.map(|it| it.burst_max),
    })
}

fn success(taken: u64, refused: u64) -> Option<f64> {
    let all = taken.saturating_add(refused);
    (all > 0).then(|| float(taken) / float(all))
}

/// Handed over a second, at the pace of those that were taken.
fn offered(pps: f64, taken: u64, refused: u64) -> f64 {
    if taken == 0 { 0.0 } else { pps * (1.0 + float(refused) / float(taken)) }
}

fn received(record: &UdpStreamRecord, base: &UdpSample, pace: &Pace) -> Option<ReceivedTotal> {
    let whole = record.received.as_ref();
    let last = record.samples.last();
    let count = |of: Option<u64>, sampled: fn(&UdpSample) -> u64| {
        Some(of.or_else(|| last.map(sampled))?.saturating_sub(sampled(base)))
    };
    let datagrams = count(whole.map(|it| it.datagrams), |it| it.datagrams)?;
    let bytes = count(whole.map(|it| it.bytes), |it| it.bytes)?;
    // Those that were sent after the last one that arrived are lost too, and only the sender knows of them.
    let missing = whole.zip(pace.sent).map(|(it, sent)| sent.saturating_sub(it.distinct).saturating_sub(it.uncounted));
    let lost = count(missing.or_else(|| whole.map(|it| it.lost)), |it| it.lost)?;
    let duplicates = count(whole.map(|it| it.duplicates), |it| it.duplicates)?;
    let (bps, pps) = pace.rates(record, datagrams, bytes)?;
    let drops = whole.map_or_else(|| last.and_then(|it| it.socket_drops), |it| it.socket_drops);
    Some(ReceivedTotal {
        datagrams,
        bytes,
        bps,
        pps,
        lost,
        loss: loss(lost, datagrams.saturating_sub(duplicates)),
        uncounted: whole.map_or(0, |it| it.uncounted),
        duplicates,
        reordered: count(whole.map(|it| it.reordered), |it| it.reordered)?,
        reorder_extent_max: whole.map(|it| it.reorder_extent_max),
        late: whole.map(|it| it.late),
        loss_bursts: whole.map(|it| it.loss_bursts),
        loss_burst_max: whole.map(|it| it.loss_burst_max),
        socket_drops: drops.map(|drops| drops.saturating_sub(base.socket_drops.unwrap_or(0))),
        jitter_ns: whole.map_or_else(|| last.map_or(0.0, |it| it.jitter_ns), |it| it.jitter_ns),
        delay_variation_ns: whole.and_then(|it| merged([&it.delay_variation_ns])),
        gaps_ns: whole.and_then(|it| merged([&it.gaps_ns])),
        stamps: whole.map(|it| it.stamps.clone()),
        min_clock_difference_ns: whole.and_then(|it| it.min_clock_difference_ns),
    })
}

fn all_sent(parts: &[&SentTotal]) -> Option<SentTotal> {
    let sum = |of: fn(&SentTotal) -> u64| parts.iter().fold(0u64, |sum, it| sum.saturating_add(of(it)));
    let rate = |of: fn(&SentTotal) -> f64| parts.iter().map(|it| of(it)).sum::<f64>();
    let shares: Option<Vec<f64>> = parts.iter().map(|it| it.of_asked).collect();
    let (datagrams, unsent, pps) = (sum(|it| it.datagrams), sum(|it| it.unsent), rate(|it| it.pps));
    (!parts.is_empty()).then(|| SentTotal {
        datagrams,
        bytes: sum(|it| it.bytes),
        bps: rate(|it| it.bps),
        pps,
        // Each stream was asked for the same.
        of_asked: shares.map(|all| all.iter().sum::<f64>() / float(all.len() as u64)),
        calls: sum(|it| it.calls),
        errors: sum(|it| it.errors),
        unsent,
        success: success(datagrams, unsent)
            .filter(|_| parts.iter().all(|it| it.success.is_some() || it.datagrams == 0)),
        offered_pps: rate(|it| it.offered_pps),
        unsent_by: parts.iter().map(|it| it.unsent_by).reduce(|a, b| Some(a?.plus(b?))).flatten(),
        skipped: parts.iter().map(|it| it.skipped).try_fold(0u64, |sum, it| Some(sum.saturating_add(it?))),
        gaps_ns: merged(parts.iter().filter_map(|it| it.gaps_ns.as_ref())),
        burst_max: parts.iter().filter_map(|it| it.burst_max).max(),
    })
}

fn all_received(parts: &[&ReceivedTotal]) -> Option<ReceivedTotal> {
    let sum = |of: fn(&ReceivedTotal) -> u64| parts.iter().fold(0u64, |sum, it| sum.saturating_add(of(it)));
    let rate = |of: fn(&ReceivedTotal) -> f64| parts.iter().map(|it| of(it)).sum::<f64>();
    let known = |of: fn(&ReceivedTotal) -> Option<u64>| {
        parts.iter().map(|it| of(it)).try_fold(0u64, |sum, it| Some(sum.saturating_add(it?)))
    };
    let (lost, datagrams, duplicates) = (sum(|it| it.lost), sum(|it| it.datagrams), sum(|it| it.duplicates));
    let first = parts.first()?;
    let alike = parts.iter().all(|it| it.stamps == first.stamps);
    Some(ReceivedTotal {
        datagrams,
        bytes: sum(|it| it.bytes),
        bps: rate(|it| it.bps),
        pps: rate(|it| it.pps),
        lost,
        loss: loss(lost, datagrams.saturating_sub(duplicates)),
        uncounted: sum(|it| it.uncounted),
        duplicates,
        reordered: sum(|it| it.reordered),
        reorder_extent_max: parts.iter().filter_map(|it| it.reorder_extent_max).max(),
        late: known(|it| it.late),
        loss_bursts: known(|it| it.loss_bursts),
        loss_burst_max: parts.iter().filter_map(|it| it.loss_burst_max).max(),
        socket_drops: known(|it| it.socket_drops),
        jitter_ns: parts.iter().map(|it| it.jitter_ns).fold(0.0, f64::max),
        delay_variation_ns: merged(parts.iter().filter_map(|it| it.delay_variation_ns.as_ref())),
        gaps_ns: merged(parts.iter().filter_map(|it| it.gaps_ns.as_ref())),
        stamps: if alike { first.stamps.clone() } else { Some("kernel or user".to_owned()) },
        min_clock_difference_ns: parts.iter().filter_map(|it| it.min_clock_difference_ns).min(),
    })
}

/// Buffers below what was wanted. The kernel doubles what is asked for and reports the double (net/core/sock.c).
fn short_buffers(records: &FlowRecords<'_, UdpPlan>, plan: &UdpPlan) -> Vec<ShortBuffer> {
    let short = |at, buffer: &str, sysctl: &str, all: Vec<(u64, u64)>| {
        let short: Vec<_> = all.into_iter().filter(|(wanted, obtained)| obtained < wanted).collect();
        let wanted_bytes = short.iter().map(|(wanted, _)| *wanted).max()?;
        let obtained_bytes = short.iter().map(|(_, obtained)| *obtained).min()?;
        let (buffer, sysctl) = (buffer.to_owned(), sysctl.to_owned());
        Some(ShortBuffer { at, buffer, wanted_bytes, obtained_bytes, sysctl, needs: wanted_bytes.div_ceil(2) })
    };
    let asked = plan.send_buffer_bytes.map(|bytes| u64::from(bytes).saturating_mul(2));
    let senders = records.pairs.iter().filter_map(|pair| Some((asked?, u64::from(pair.sender?.sndbuf_bytes?))));
    let receivers = records.pairs.iter().filter_map(|pair| {
        let it = pair.receiver?;
        Some((u64::from(it.rcvbuf_requested_bytes?), u64::from(it.rcvbuf_bytes?)))
    });
    let flow = records.flow;
    [
        short(flow.sender(), "send", "net.core.wmem_max", senders.collect()),
        short(flow.receiver(), "receive", "net.core.rmem_max", receivers.collect()),
    ]
    .into_iter()
    .flatten()
    .collect()
}
