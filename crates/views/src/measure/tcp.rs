//! The view of a measurement of TCP.

use super::{Common, FlowRecords, Pair, Part, Span, StreamRecord, Viewed, cpu, in_turn, remarks};
use narrows_model::run::measure::{
    FlowSummary, IntervalView, MeasureReport, SCHEMA, SentView, StreamView, SubflowView, SummaryView,
};
use narrows_model::run::report::RunView;
use narrows_model::run::tcp_columns::{Column, Over, TcpColumns};
use narrows_model::run::{Purpose, Run};
use narrows_model::words::figures::float;
use narrows_model::{Flow, TcpEndRecord, TcpInfo, TcpPlan, TcpSample, TcpStreamRecord, TcpSubflow, TcpTrial};

/// RTTs that the time stamps of a kernel resolve: it takes one stamp for all that a softirq handles (`tcp_mstamp_refresh`,
/// `net/ipv4/tcp_output.c`), so that smaller values are of its own work; the largest value stands for none.
const RESOLVED_RTT_US: std::ops::Range<u64> = 10..u32::MAX as u64;

/// Below this many intervals a correlation between neighbours says nothing.
const MIN_FOR_LAG: usize = 8;

impl StreamRecord for TcpStreamRecord {
    type Sample = TcpSample;

    fn common(&self) -> Common<'_, TcpSample> {
        Common { flow: self.flow, id: self.id, addresses: [&self.local, &self.remote], samples: &self.samples }
    }
}

impl Viewed for TcpPlan {
    type Stream = TcpStreamRecord;
    type Interval = IntervalView;

    fn times_ms(&self) -> [u64; 2] {
        [self.interval_ms, self.omit_ms]
    }

    fn flows(&self) -> &'static [Flow] {
        self.flows()
    }

    fn records(record: &TcpEndRecord) -> &[TcpStreamRecord] {
        &record.streams
    }

    /// The end whose bytes count is one for all streams: the receiver, or the sender where the receiver recorded nothing.
    fn counted<'a>(pairs: &[Pair<'a, TcpStreamRecord>]) -> Vec<Pair<'a, TcpStreamRecord>> {
        let seen = pairs.iter().any(|pair| pair.receiver.is_some_and(|it| it.samples.len() > 1));
        let of = |pair: &Pair<'a, TcpStreamRecord>| {
            let receiver = pair.receiver.filter(|_| seen);
            (if seen { receiver } else { pair.sender })?;
            Some(Pair { receiver, ..*pair })
        };
        pairs.iter().filter_map(of).collect()
    }

    fn interval(
        flow: Flow,
        stream: Option<u32>,
        omit_us: u64,
        parts: &[Part<Span<'_, TcpSample>>],
    ) -> Option<IntervalView> {
        let counted = || parts.iter().filter_map(Part::counted);
        let from_us = counted().map(|(from, _)| from.at_us).min()?;
        let to_us = counted().map(|(_, to)| to.at_us).max()?;
        let length = to_us.checked_sub(from_us).filter(|length| *length > 0)?;
        let is_received = parts.iter().any(|part| part.received.is_some());
        let bytes = counted().map(|span| carried(is_received, span)).fold(0, u64::saturating_add);
        let senders: Vec<_> = parts.iter().map(|part| part.sent.map(|(from, to)| (&from.tcp, &to.tcp))).collect();
        Some(IntervalView {
            flow,
            stream,
            seen_by: if is_received { flow.receiver() } else { flow.sender() },
            from_s: float(from_us) / 1e6,
            to_s: float(to_us) / 1e6,
            bytes,
            goodput_bps: float(bytes) * 8e6 / float(length),
            omitted: from_us < omit_us,
            columns: TcpColumns::from_each(|column| value(column, &senders)),
            sent: None,
            sender: None,
            receiver: None,
        })
    }

    fn add_details(view: &mut IntervalView, part: &Part<Span<'_, TcpSample>>) {
        view.sender = part.sent.map(|(_, last)| last.tcp.clone());
        view.receiver = part.received.map(|(_, last)| last.tcp.clone());
    }
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
            narrows_stats::median(&values).map(|value| value.round() as u64)
        }
    }
}

/// Application bytes of a span: what a receiver took; of a sender what was acknowledged, or else what it handed over.
fn carried(is_received: bool, (from, to): Span<'_, TcpSample>) -> u64 {
    let acked = from.tcp.bytes_acked.zip(to.tcp.bytes_acked).filter(|_| !is_received);
    let (from, to) = acked.unwrap_or((from.bytes, to.bytes));
    to.saturating_sub(from)
}

/// The view of a run of `narrows measure tcp`; `None` where it holds no trial.
pub fn build(run: &Run) -> Option<MeasureReport> {
    let measured = run.trials_of().find(|(purpose, _)| **purpose == Purpose::Measure);
    let (_, trial) = measured.or_else(|| run.trials_of().next())?;
    Some(from_trial(trial, run.into()))
}

/// The view of one trial.
pub fn from_trial(trial: TcpTrial<'_>, run: RunView) -> MeasureReport {
    let flows = FlowRecords::all(trial);
    MeasureReport {
        schema: SCHEMA.to_owned(),
        run,
        plan: trial.plan.clone(),
        streams: flows.iter().flat_map(|flow| flow.pairs.iter().map(|pair| stream(flow.flow, pair))).collect(),
        intervals: in_turn(flows.iter().map(FlowRecords::intervals).collect()),
        summary: summary(trial),
        remarks: remarks(trial),
    }
}

/// The counted part of a trial.
pub fn summary(trial: TcpTrial<'_>) -> SummaryView {
    let omit_us = trial.plan.omit_ms.saturating_mul(1000);
    SummaryView {
        flows: FlowRecords::all(trial).iter().filter_map(flow_summary).collect(),
        client: cpu::cost(&[trial.client], omit_us),
        server: cpu::cost(&[trial.server], omit_us),
    }
}

fn stream(flow: Flow, pair: &Pair<'_, TcpStreamRecord>) -> StreamView {
    let [client, server] = pair.addresses(flow);
    let (sent, got) = (pair.sender, pair.receiver);
    StreamView {
        id: pair.id,
        flow,
        client,
        server,
        congestion_control: sent.and_then(|it| it.congestion_control.clone()),
        mss_bytes: sent.and_then(|it| it.mss_bytes),
        sndbuf_bytes: sent.and_then(|it| it.sndbuf_bytes),
        rcvbuf_bytes: got.and_then(|it| it.rcvbuf_bytes),
        sent_by: sent.map(|it| it.method.clone()),
        received_by: got.map(|it| it.method.clone()),
        subflows: subflows(flow, sent, got),
    }
}

/// The subflows as the sender saw them, or else the receiver.
fn subflows(flow: Flow, sent: Option<&TcpStreamRecord>, got: Option<&TcpStreamRecord>) -> Vec<SubflowView> {
    let of_sender = sent.filter(|it| !it.subflows.is_empty());
    let (record, sends) = (of_sender.or(got), of_sender.is_some());
    let is_client = sends == (flow == Flow::Up);
    let view = |it: &TcpSubflow| {
        let [client, server] = if is_client { [&it.local, &it.remote] } else { [&it.remote, &it.local] };
        SubflowView {
            client: client.clone(),
            server: server.clone(),
            bytes: if sends { it.tcp.bytes_acked } else { it.tcp.bytes_received },
            retransmits: it.tcp.total_retrans.filter(|_| sends),
            rtt_us: it.tcp.rtt_us.filter(|_| sends),
        }
    };
    record.into_iter().flat_map(|it| it.subflows.iter().map(view)).collect()
}

/// What the senders handed over; `None` where the record of one is missing.
fn sent(parts: &[Part<Span<'_, TcpSample>>]) -> Option<SentView> {
    let spans: Vec<_> = parts.iter().map(|part| part.sent).collect::<Option<_>>()?;
    let from_us = spans.iter().map(|(from, _)| from.at_us).min()?;
    let to_us = spans.iter().map(|(_, to)| to.at_us).max()?;
    let length = to_us.checked_sub(from_us).filter(|length| *length > 0)?;
    let bytes = spans.iter().map(|(from, to)| to.bytes.saturating_sub(from.bytes)).fold(0, u64::saturating_add);
    let [from_s, to_s] = [from_us, to_us].map(|us| float(us) / 1e6);
    Some(SentView { from_s, to_s, bytes, bps: float(bytes) * 8e6 / float(length) })
}

/// When the count of a stream begins: behind what a hole over the end of the omitted part held back. The other end takes its samples a
/// little earlier or later.
fn counted_from(samples: &[TcpSample], omit_us: u64) -> Option<u64> {
    let first = samples.partition_point(|sample| sample.at_us < omit_us);
    let begin = TcpSample::after_a_hole(samples, first);
    if begin == first {
        return Some(omit_us);
    }
    Some(samples.get(begin - 1)?.at_us.midpoint(samples.get(begin)?.at_us))
}

/// The counted part of one flow: from the first sample after the omitted one to the last.
fn flow_summary<'a>(flow: &FlowRecords<'a, TcpPlan>) -> Option<FlowSummary> {
    let pairs = TcpPlan::counted(&flow.pairs);
    let streams = || pairs.iter().filter_map(|pair| pair.receiver.or(pair.sender));
    let omit_us = flow.counted_from_us(streams());
    let from_us = streams().filter_map(|stream| counted_from(&stream.samples, omit_us)).max().unwrap_or(omit_us);
    let parts: Vec<(u32, Part<Span<'_, TcpSample>>)> = pairs
        .iter()
        .filter_map(|pair| {
            let counted = |stream: &'a TcpStreamRecord| {
                let first = stream.samples.iter().find(|sample| sample.at_us >= from_us)?;
                // One sample alone, as of an end that was lost, has counted nothing.
                Some((first, stream.samples.last()?)).filter(|(first, last)| last.at_us > first.at_us)
            };
            let part =
                Part { sent: pair.sender.and_then(counted), received: pair.receiver.and_then(counted), is_last: true };
            (if pair.receiver.is_some() { part.received } else { part.sent })?;
            Some((pair.id, part))
        })
        .collect();
    let whole: Vec<_> = parts.iter().map(|(_, part)| *part).collect();
    let of = |stream, parts: &[Part<Span<'_, TcpSample>>]| {
        let view = TcpPlan::interval(flow.flow, stream, omit_us, parts)?;
        Some(IntervalView { sent: sent(parts), ..view })
    };
    let intervals = flow.intervals();
    let sums = intervals.iter().flatten().filter(|it| it.stream.is_none() && !it.omitted);
    let rates: Vec<f64> = sums.map(|it| it.goodput_bps).collect();
    let min_rtt =
        |stream: &TcpStreamRecord| stream.samples.last()?.tcp.min_rtt_us.filter(|rtt| RESOLVED_RTT_US.contains(rtt));
    let rtts = pairs.iter().filter_map(|pair| pair.sender).flat_map(|stream| stream.load_rtts_us(omit_us));
    let rtts: Vec<f64> = rtts.map(float).collect();
    let total = of(None, &whole)?;
    Some(FlowSummary {
        sent_bytes: total.sent.map(|sent| sent.bytes),
        total,
        streams: parts.iter().filter_map(|(id, part)| of(Some(*id), &[*part])).collect(),
        min_rtt_us: pairs.iter().filter_map(|pair| min_rtt(pair.sender?)).min(),
        mean_rtt_us: narrows_stats::mean(&rtts),
        lag1: (rates.len() >= MIN_FOR_LAG).then(|| narrows_stats::lag1(&rates)).flatten(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::live::Live;
    use narrows_model::load::kind::Load as _;
    use narrows_model::{Direction, Place, Progress, StreamProgress};

    fn sample(at_ms: u64, mbytes: u64) -> TcpSample {
        TcpSample { at_us: at_ms * 1000, bytes: mbytes * 1_000_000, ..TcpSample::default() }
    }

    #[test]
    fn what_a_hole_held_back_before_the_count_is_no_goodput() {
        // 8 Mbit in each tenth of a second; a hole from 1.8 s on is filled in the interval that ends at 2.1 s.
        let holed = |at: u64| if (18..=20).contains(&at) { 18 } else { at };
        let end = |place, of: fn(u64) -> u64, late_us| {
            let samples = (0..=40).map(|at| TcpSample { at_us: 100_000 * at + late_us, ..sample(0, of(at)) }).collect();
            TcpPlan::partial_record(place, vec![(0, Flow::Up, samples)], String::new())
        };
        let plan = TcpPlan { omit_ms: 2000, interval_ms: 100, ..TcpPlan::default() };
        let (client, server) = (end(Place::Client, |at| at, 0), end(Place::Server, holed, 3));
        let trial = TcpTrial { plan: &plan, client: &client, server: &server, elapsed_us: 4_000_000 };
        let total = &summary(trial).flows[0].total;
        assert_eq!((total.goodput_bps, total.from_s, total.to_s), (80e6, 2.100_003, 4.000_003), "{total:?}");
        let sent = total.sent.expect("what was sent");
        assert_eq!((sent.bps, sent.from_s), (80e6, 2.1), "{sent:?}");
    }

    /// What an end says at that time of these streams.
    fn says(at_ms: u64, flow: Flow, streams: &[(u32, TcpSample)]) -> Progress {
        let stream = |(id, sample): &(u32, TcpSample)| StreamProgress { id: *id, flow, sample: sample.clone().into() };
        Progress { at_us: at_ms * 1000, streams: streams.iter().map(stream).collect() }
    }

    #[test]
    fn streams_down_are_numbered_after_those_up() {
        let mut live = Live::new(&TcpPlan { streams: 2, direction: Direction::Both, ..TcpPlan::default() });
        let both = |at_ms, mbytes| {
            let mut said = says(at_ms, Flow::Up, &[(0, sample(at_ms, mbytes)), (1, sample(at_ms, mbytes))]);
            said.streams
                .extend(says(at_ms, Flow::Down, &[(2, sample(at_ms, mbytes)), (3, sample(at_ms, mbytes))]).streams);
            said
        };
        assert!(live.take(Place::Server, &both(1000, 100)).is_empty(), "the senders down are not heard");
        let views = live.take(Place::Client, &both(1000, 100));
        let seen: Vec<_> = views.iter().map(|view| (view.flow, view.stream)).collect();
        let (up, down) = (Flow::Up, Flow::Down);
        assert_eq!(seen, [(up, Some(0)), (up, Some(1)), (up, None), (down, Some(2)), (down, Some(3)), (down, None)]);
        let other = says(2000, Flow::Down, &[(0, sample(2000, 200)), (9, sample(2000, 1))]);
        assert!(live.take(Place::Client, &other).is_empty(), "the plan does not have them");
    }

    #[test]
    fn an_interval_ends_when_both_ends_have_passed_it() {
        let mut live = Live::new(&TcpPlan { streams: 2, ..TcpPlan::default() });
        let mut take = |at, at_ms, mbytes: [u64; 2], retransmits| {
            let tcp = TcpInfo { rtt_us: Some(35_000), total_retrans: Some(retransmits), ..TcpInfo::default() };
            let one = |mbytes| TcpSample { tcp: tcp.clone(), ..sample(at_ms, mbytes) };
            live.take(at, &says(at_ms, Flow::Up, &[(0, one(mbytes[0])), (1, one(mbytes[1]))]))
        };
        assert!(take(Place::Server, 0, [0, 0], 0).is_empty());
        assert!(take(Place::Server, 1000, [60, 65], 0).is_empty(), "nothing is known of the sender");
        let views = take(Place::Client, 1000, [70, 70], 2);
        assert_eq!(views.iter().map(|view| view.stream).collect::<Vec<_>>(), [Some(0), Some(1), None]);
        assert!((views[2].goodput_bps - 1e9).abs() < 1.0, "{:?}", views[2]);
        assert_eq!((views[0].columns.retransmits, views[0].columns.rtt_us), (Some(2), Some(35_000)));
        assert_eq!(views[2].columns.retransmits, Some(4));
        // A sender that says nothing is not waited for, and what it counted is not lost.
        assert!(take(Place::Server, 2000, [120, 130], 0).is_empty());
        let views = take(Place::Server, 3000, [180, 190], 0);
        assert_eq!((views.len(), views[2].to_s, views[2].columns.retransmits), (3, 2.0, None));
        let views = take(Place::Client, 3000, [190, 190], 7);
        assert_eq!((views[2].to_s, views[2].columns.retransmits), (3.0, Some(10)));
    }

    #[test]
    fn a_pause_makes_one_longer_interval_and_the_grid_goes_on() {
        let mut live = Live::new(&TcpPlan::default());
        let mut take = |at_ms, mbytes| {
            let said = says(at_ms, Flow::Up, &[(0, sample(at_ms, mbytes))]);
            live.take(Place::Client, &said);
            live.take(Place::Server, &said)
        };
        let views = take(3400, 10);
        assert_eq!((views[0].from_s, views[0].to_s), (0.0, 3.4));
        assert!(take(3900, 20).is_empty());
        assert_eq!(take(4000, 30).len(), 2);
        let views = take(10_000, 30);
        assert_eq!(views.len(), 0, "the last one comes from the record");
    }

    #[test]
    fn the_omitted_part_ends_an_interval() {
        let mut live = Live::new(&TcpPlan { omit_ms: 500, ..TcpPlan::default() });
        let mut spans = Vec::new();
        for at_ms in [500, 1000, 2000] {
            let said = says(at_ms, Flow::Up, &[(0, sample(at_ms, at_ms))]);
            live.take(Place::Client, &said);
            let views = live.take(Place::Server, &said);
            spans.extend(views.iter().filter(|it| it.stream.is_some()).map(|it| (it.from_s, it.to_s, it.omitted)));
        }
        assert_eq!(spans, [(0.0, 0.5, true), (0.5, 1.0, false), (1.0, 2.0, false)]);
    }
}
