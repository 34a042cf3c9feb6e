//! The view of a measurement of UDP.

use super::udp_total::flow_summary;
use super::{Common, FlowRecords, Pair, Part, Span, StreamRecord, Viewed, cpu, in_turn, own_queue, remarks};
use narrows_diagnose::ledger;
use narrows_model::load::udp::report::{
    MeasureUdpReport, ReceivedPart, SCHEMA, SentPart, UdpInterval, UdpStreamView, UdpSummary,
};
use narrows_model::run::Run;
use narrows_model::run::report::RunView;
use narrows_model::words::figures::float;
use narrows_model::{Flow, Ledger, UdpEndRecord, UdpPlan, UdpSample, UdpStreamRecord, UdpTrial};

impl StreamRecord for UdpStreamRecord {
    type Sample = UdpSample;

    fn common(&self) -> Common<'_, UdpSample> {
        Common { flow: self.flow, id: self.id, addresses: [&self.local, &self.remote], samples: &self.samples }
    }
}

impl Viewed for UdpPlan {
    type Stream = UdpStreamRecord;
    type Interval = UdpInterval;

    fn times_ms(&self) -> [u64; 2] {
        [self.interval_ms, self.omit_ms]
    }

    fn flows(&self) -> &'static [Flow] {
        self.flows()
    }

    fn records(record: &UdpEndRecord) -> &[UdpStreamRecord] {
        &record.streams
    }

    fn counted<'a>(pairs: &[Pair<'a, UdpStreamRecord>]) -> Vec<Pair<'a, UdpStreamRecord>> {
        let seen = |record: Option<&'a UdpStreamRecord>| record.filter(|it| it.samples.len() > 1);
        pairs.iter().map(|it| Pair { id: it.id, sender: seen(it.sender), receiver: seen(it.receiver) }).collect()
    }

    fn interval(
        flow: Flow,
        stream: Option<u32>,
        omit_us: u64,
        parts: &[Part<Span<'_, UdpSample>>],
    ) -> Option<UdpInterval> {
        let by_receiver = parts.iter().any(|part| part.received.is_some());
        let times = || {
            let span = |part: &Part<_>| if by_receiver { part.received } else { part.sent };
            parts.iter().filter_map(span).map(|(from, to): Span<'_, UdpSample>| (from.at_us, to.at_us))
        };
        let from_us = times().map(|(from, _)| from).min()?;
        let to_us = times().map(|(_, to)| to).max().filter(|to| *to > from_us)?;
        let sent: Option<Vec<SentPart>> = parts.iter().map(|part| sent(part, to_us - from_us)).collect();
        let received: Option<Vec<ReceivedPart>> = parts.iter().map(|part| part.received.and_then(received)).collect();
        Some(UdpInterval {
            flow,
            stream,
            from_s: float(from_us) / 1e6,
            to_s: float(to_us) / 1e6,
            omitted: from_us < omit_us,
            sent: sent.and_then(|all| all_sent(&all)),
            received: received.and_then(|all| all_received(&all)),
        })
    }
}

/// The view of a run of `narrows measure udp`; `None` where it holds no trial.
pub fn build(run: &Run) -> Option<MeasureUdpReport> {
    Some(from_trial(run.trials_of().next()?.1, run.into()))
}

/// The packet ledger of each flow of a run's first trial of UDP; none where it holds none.
pub fn ledgers(run: &Run) -> Vec<Ledger> {
    let Some((_, trial)) = run.trials_of::<UdpPlan>().next() else { return Vec::new() };
    trial.plan.flows().iter().map(|flow| ledger(trial, *flow)).collect()
}

/// The same, where the counters for them were read.
pub fn counted_ledgers(run: &Run) -> Vec<Ledger> {
    let counted = run.trials_of::<UdpPlan>().next().is_some_and(|(_, trial)| !trial.client.before.facts.is_empty());
    if counted { ledgers(run) } else { Vec::new() }
}

/// The view of one trial.
pub fn from_trial(trial: UdpTrial<'_>, run: RunView) -> MeasureUdpReport {
    let flows = FlowRecords::all(trial);
    let of_queue = own_queue::remarks(trial);
    MeasureUdpReport {
        schema: SCHEMA.to_owned(),
        run,
        plan: trial.plan.clone(),
        streams: flows.iter().flat_map(|flow| flow.pairs.iter().map(|pair| stream(flow.flow, pair))).collect(),
        intervals: in_turn(flows.iter().map(FlowRecords::intervals).collect()),
        summary: summary(trial),
        remarks: [remarks(trial), of_queue].concat(),
    }
}

/// The counted part of a trial.
pub fn summary(trial: UdpTrial<'_>) -> UdpSummary {
    let omit_us = trial.plan.omit_ms.saturating_mul(1000);
    UdpSummary {
        flows: FlowRecords::all(trial).iter().filter_map(|flow| flow_summary(flow, trial.plan)).collect(),
        client: cpu::cost(&[trial.client], omit_us),
        server: cpu::cost(&[trial.server], omit_us),
    }
}

fn stream(flow: Flow, pair: &Pair<'_, UdpStreamRecord>) -> UdpStreamView {
    let [client, server] = pair.addresses(flow);
    let (sent, got) = (pair.sender, pair.receiver);
    UdpStreamView {
        id: pair.id,
        flow,
        client,
        server,
        datagram_bytes: sent.or(got).map(|it| it.datagram_bytes),
        path_mtu_bytes: sent.and_then(|it| it.path_mtu_bytes),
        sndbuf_bytes: sent.and_then(|it| it.sndbuf_bytes),
        rcvbuf_bytes: got.and_then(|it| it.rcvbuf_bytes),
        sent_by: sent.map(|it| it.method.clone()),
        received_by: got.map(|it| it.method.clone()),
    }
}

/// Seconds of a span; `None` where no time passed.
fn seconds((from, to): Span<'_, UdpSample>) -> Option<f64> {
    to.at_us.checked_sub(from.at_us).filter(|us| *us > 0).map(|us| float(us) / 1e6)
}

/// What was sent of an interval of this length, by the sender's own time; in the last one, over the whole time that it shows: the sender
/// may have ended at its begin.
fn sent(part: &Part<Span<'_, UdpSample>>, length_us: u64) -> Option<SentPart> {
    let (from, to) = part.sent?;
    let own = seconds((from, to));
    let shown = (part.is_last && to.at_us >= from.at_us).then(|| float(length_us) / 1e6);
    let seconds = own.into_iter().chain(shown).reduce(f64::max)?;
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

fn received(span: Span<'_, UdpSample>) -> Option<ReceivedPart> {
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
pub(super) fn loss(lost: u64, distinct: u64) -> Option<f64> {
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
    use crate::measure::live::Live;
    use narrows_model::{Load as _, Place, Progress, StreamProgress, UdpReceived, UdpSent};

    #[test]
    fn loss_is_of_what_was_due_and_copies_do_not_hide_it() {
        let from = UdpSample::default();
        let to = UdpSample { at_us: 500_000, datagrams: 95, bytes: 9_500, lost: 10, duplicates: 5, ..from.clone() };
        let part = Part { sent: None, received: Some((&from, &to)), is_last: false };
        let view = UdpPlan::interval(Flow::Up, None, 0, &[part, part]).expect("time passed");
        let got = view.received.expect("a receiver");
        assert_eq!((got.lost, got.datagrams, got.loss), (20, 190, Some(0.1)));
        assert!((got.bps - 304_000.0).abs() < 1e-6, "{got:?}");
        assert_eq!(view.sent, None, "an unknown sender is not a silent one");
    }

    #[test]
    fn one_unknown_sender_makes_the_sum_unknown() {
        let from = UdpSample::default();
        let to = UdpSample { at_us: 1_000_000, datagrams: 1, ..from.clone() };
        let known = Part { sent: Some((&from, &to)), received: Some((&from, &to)), is_last: false };
        let half = Part { sent: None, ..known };
        let view = UdpPlan::interval(Flow::Down, None, 0, &[known, half]).expect("time passed");
        assert!(view.sent.is_none() && view.received.is_some());
        assert_eq!(UdpPlan::interval(Flow::Up, None, 0, &[]), None);
    }

    fn says(flow: Flow, streams: &[(u32, u64, u64)]) -> Progress {
        let stream = |(id, at_ms, datagrams): &(u32, u64, u64)| StreamProgress {
            id: *id,
            flow,
            sample: UdpSample {
                at_us: at_ms * 1000,
                datagrams: *datagrams,
                bytes: datagrams * 1000,
                ..UdpSample::default()
            }
            .into(),
        };
        Progress { at_us: streams[0].1 * 1000, streams: streams.iter().map(stream).collect() }
    }

    #[test]
    fn the_sums_are_those_of_both_ends() {
        let mut live = Live::new(&UdpPlan { streams: 2, ..UdpPlan::default() });
        assert!(live.take(Place::Client, &says(Flow::Up, &[(0, 1000, 100), (1, 1000, 100)])).is_empty());
        let views = live.take(Place::Server, &says(Flow::Up, &[(0, 1000, 90), (1, 1000, 100)]));
        assert_eq!(views.iter().map(|view| view.stream).collect::<Vec<_>>(), [Some(0), Some(1), None]);
        let all = &views[2];
        assert_eq!(all.received.expect("both receivers").datagrams, 190);
        assert!((all.sent.expect("both senders").pps - 200.0).abs() < 1e-6, "by the sender's own time");
        // The next interval begins where this one ended.
        assert!(live.take(Place::Server, &says(Flow::Up, &[(0, 2000, 190), (1, 2000, 200)])).is_empty());
        let views = live.take(Place::Server, &says(Flow::Up, &[(0, 3000, 290), (1, 3000, 300)]));
        assert_eq!(views[2].received.expect("both receivers").datagrams, 200);
        assert_eq!(views[2].sent, None, "the sender said nothing new");
    }

    #[test]
    fn what_the_plan_does_not_have_is_passed_over() {
        let mut live = Live::new(&UdpPlan::default());
        live.take(Place::Client, &says(Flow::Up, &[(0, 5000, 1)]));
        assert_eq!(live.take(Place::Server, &says(Flow::Up, &[(0, 5000, 1), (9, 5000, 1)])).len(), 2);
        assert!(live.take(Place::Server, &says(Flow::Down, &[(0, 9000, 1)])).is_empty());
    }

    /// A trial against iperf3, whose end reports only totals.
    fn with_totals(flow: Flow) -> (UdpPlan, [UdpEndRecord; 2]) {
        let sample = |at_us, datagrams| UdpSample { at_us, datagrams, bytes: datagrams * 1000, ..UdpSample::default() };
        let here = vec![sample(0, 0), sample(10_000, 9), sample(1_000_000, 1000), sample(3_000_000, 3000)];
        let there = vec![sample(0, 0), sample(3_010_000, 2990)];
        let plan = UdpPlan { direction: flow.direction(), duration_ms: 3000, ..UdpPlan::default() };
        let end = |place, samples| UdpPlan::partial_record(place, vec![(0, flow, samples)], String::new());
        (plan, [end(Place::Client, here), end(Place::Server, there)])
    }

    #[test]
    fn where_one_end_reports_only_totals_the_intervals_are_those_of_the_other() {
        for flow in [Flow::Up, Flow::Down] {
            let (plan, [client, server]) = with_totals(flow);
            let trial = UdpTrial { plan: &plan, client: &client, server: &server, elapsed_us: 3_000_000 };
            let stored = in_turn(FlowRecords::all(trial).iter().map(FlowRecords::intervals).collect());
            let mut live = Live::new(&plan);
            let mut seen = Vec::new();
            for at_ms in [10, 1000, 2000, 3000] {
                let says = says(flow, &[(0, at_ms, if at_ms == 10 { 9 } else { at_ms })]);
                seen.extend(live.take(Place::Client, &says));
                seen.extend(live.take(Place::Server, &Progress { at_us: at_ms * 1000, streams: Vec::new() }));
            }
            seen.extend(live.rest(trial));
            for (views, times) in [(stored, &[1.0, 3.0][..]), (seen, &[1.0, 2.0, 3.0])] {
                let all: Vec<_> = views.iter().filter(|view| view.stream.is_none()).collect();
                assert_eq!(all.iter().map(|view| view.to_s).collect::<Vec<_>>(), times, "{flow:?}");
                let here = |view: &UdpInterval| match flow {
                    Flow::Up => (view.sent.map(|it| it.datagrams), view.received.is_some()),
                    Flow::Down => (view.received.map(|it| it.datagrams), view.sent.is_some()),
                };
                let counts: Vec<_> = all.iter().map(|view| here(view)).collect();
                assert_eq!(counts.iter().filter_map(|it| it.0).sum::<u64>(), 3000, "{flow:?}: {views:#?}");
                assert!(counts.iter().all(|it| !it.1), "the other end's part is not known: {views:#?}");
            }
        }
    }

    #[test]
    fn the_totals_are_known_of_an_interval_that_is_the_whole_trial() {
        let (plan, [client, server]) = with_totals(Flow::Up);
        let plan = UdpPlan { interval_ms: 3000, ..plan };
        let trial = UdpTrial { plan: &plan, client: &client, server: &server, elapsed_us: 3_000_000 };
        let views = FlowRecords::all(trial)[0].intervals();
        let whole = &views[0][0];
        assert_eq!(whole.sent.zip(whole.received).map(|(a, b)| (a.datagrams, b.datagrams)), Some((3000, 2990)));
        assert_eq!(views.len(), 1);
    }

    #[test]
    fn what_the_receiver_did_not_count_any_more_is_not_lost() {
        let (plan, [mut client, mut server]) = with_totals(Flow::Down);
        let received =
            UdpReceived { datagrams: 3000, distinct: 3000, uncounted: 56, bytes: 3_000_000, ..UdpReceived::default() };
        client.streams[0].received = Some(received);
        server.streams[0].sent = Some(UdpSent { datagrams: 3056, active_ns: 3_010_000_000, ..UdpSent::default() });
        let trial = UdpTrial { plan: &plan, client: &client, server: &server, elapsed_us: 3_000_000 };
        let total = &summary(trial).flows[0].total;
        let got = total.received.as_ref().expect("a receiver");
        assert_eq!((got.lost, got.loss, got.uncounted), (0, Some(0.0), 56));
        assert_eq!(total.sent.as_ref().expect("a sender").success, None, "iperf3 reports no calls");
        let ledger = narrows_diagnose::ledger(trial, Flow::Down);
        assert_eq!((ledger.offered, ledger.delivered, ledger.unexplained), (3000, 3000, 0));
        assert!(ledger.remarks.iter().any(|it| it.starts_with("left out: 56 datagrams")), "{ledger:?}");
        let unsent = ledger.stages.iter().filter(|it| it.at == Place::Server && it.counted);
        assert_eq!(unsent.count(), 0, "nothing is known of the sender's socket: {ledger:?}");
    }
}
