//! The view of request/response trials from what both ends recorded. The counts and latencies are the client's.

use super::distribution::{merged, quantile};
use super::{Common, FlowRecords, Pair, Part, Span, StreamRecord, Viewed, cpu, in_turn, remarks, tcp};
use crate::figures;
use narrows_diagnose::latency::under_load;
use narrows_model::load::rr::report::{
    LatencyUnderLoad, RrIntervalView, RrPhase, RrReport, RrStreamView, RrSummary, SCHEMA,
};
use narrows_model::run::Run;
use narrows_model::run::history::Headline;
use narrows_model::run::measure::{EndCpu, FlowSummary};
use narrows_model::run::report::RunView;
use narrows_model::words::figures::float;
use narrows_model::{
    Distribution, EndRecord, Flow, Place, RrEndRecord, RrPlan, RrSample, RrStreamRecord, RrTrial, TcpTrial,
};
use std::iter;

impl StreamRecord for RrStreamRecord {
    type Sample = RrSample;

    fn common(&self) -> Common<'_, RrSample> {
        Common { flow: Flow::Up, id: self.id, addresses: [&self.local, &self.remote], samples: &self.samples }
    }
}

impl Viewed for RrPlan {
    type Stream = RrStreamRecord;
    type Interval = RrIntervalView;

    fn times_ms(&self) -> [u64; 2] {
        [self.interval_ms, self.omit_ms]
    }

    fn flows(&self) -> &'static [Flow] {
        &[Flow::Up]
    }

    fn records(record: &RrEndRecord) -> &[RrStreamRecord] {
        &record.streams
    }

    /// The counts and latencies are the client's.
    fn counted<'a>(pairs: &[Pair<'a, RrStreamRecord>]) -> Vec<Pair<'a, RrStreamRecord>> {
        pairs.iter().map(|pair| Pair { receiver: None, ..*pair }).collect()
    }

    fn interval(
        _: Flow,
        stream: Option<u32>,
        omit_us: u64,
        parts: &[Part<Span<'_, RrSample>>],
    ) -> Option<RrIntervalView> {
        let spans = || parts.iter().filter_map(|part| part.sent);
        let from_us = spans().map(|(from, _)| from.at_us).min()?;
        let to_us = spans().map(|(_, to)| to.at_us).max()?;
        let length = to_us.checked_sub(from_us).filter(|length| *length > 0)?;
        let grown = |of: fn(&RrSample) -> u64| {
            spans().map(|(from, to)| of(to).saturating_sub(of(from))).fold(0, u64::saturating_add)
        };
        let transactions = grown(|sample| sample.transactions);
        Some(RrIntervalView {
            stream,
            from_s: float(from_us) / 1e6,
            to_s: float(to_us) / 1e6,
            transactions,
            failures: grown(|sample| sample.failures),
            per_s: float(transactions) * 1e6 / float(length),
            mean_latency_ns: (transactions > 0)
                .then(|| float(grown(|sample| sample.latency_sum_ns)) / float(transactions)),
            omitted: from_us < omit_us,
        })
    }

    fn counted_at(_: Flow) -> Place {
        Place::Client
    }

    fn arrived(sample: &RrSample) -> u64 {
        sample.transactions
    }

    fn tells(place: Place) -> bool {
        place == Place::Client
    }
}

/// The interval of one stream or of several together.
fn total(stream: Option<u32>, omit_us: u64, spans: &[(RrSample, RrSample)]) -> Option<RrIntervalView> {
    let parts: Vec<_> =
        spans.iter().map(|(from, to)| Part { sent: Some((from, to)), received: None, is_last: true }).collect();
    RrPlan::interval(Flow::Up, stream, omit_us, &parts)
}

/// The requests and responses of a run, idle and loaded side by side where both were measured; `None` where there are none.
pub fn of_run(run: &Run) -> Option<RrReport> {
    let trials: Vec<RrTrial<'_>> = run.trials_of().map(|(_, trial)| trial).collect();
    let find = |loaded: bool| trials.iter().find(|trial| trial.plan.load.is_some() == loaded);
    let compared = find(false).zip(find(true)).and_then(|(idle, loaded)| under_load(*idle, *loaded).ok());
    (!trials.is_empty()).then(|| build(run.into(), &trials, compared))
}

/// The view of a run's trials, in the order in which they were measured. `under_load` is the diagnosis of two of them.
pub fn build(run: RunView, trials: &[RrTrial<'_>], under_load: Option<LatencyUnderLoad>) -> RrReport {
    RrReport { schema: SCHEMA.to_owned(), run, phases: trials.iter().copied().map(phase).collect(), under_load }
}

/// The view of one trial.
pub fn phase(trial: RrTrial<'_>) -> RrPhase {
    RrPhase {
        plan: trial.plan.clone(),
        streams: trial.client.streams.iter().map(|stream| view(stream, trial.server)).collect(),
        intervals: in_turn(FlowRecords::all(trial).iter().map(FlowRecords::intervals).collect()),
        summary: summary(trial),
        remarks: remarks(trial),
    }
}

fn view(stream: &RrStreamRecord, server: &RrEndRecord) -> RrStreamView {
    let theirs = server.streams.iter().find(|it| it.id == stream.id);
    RrStreamView {
        id: stream.id,
        client: stream.local.clone(),
        server: stream.remote.clone(),
        transactions: stream.transactions,
        failures: stream.failures,
        answered: theirs.map(|it| it.transactions),
        latency_ns: stream.latency_ns.clone(),
    }
}

/// The counted part: from the first sample after the omitted one to the last. A trial that was cut before its counted part is
/// summed up whole.
fn summary(trial: RrTrial<'_>) -> RrSummary {
    let omit_us = trial.plan.omit_ms.saturating_mul(1000);
    let streams = &trial.client.streams;
    let from_us = FlowRecords::of(trial, Flow::Up).counted_from_us(streams);
    // What comes after the planned end are the last answers, or the wait for them: no request begins there.
    let until_us = trial.plan.duration_ms.saturating_mul(1000);
    let counted = |stream: &RrStreamRecord| {
        let first = *stream.samples.iter().find(|sample| sample.at_us >= from_us)?;
        let last = *stream.samples.last()?;
        Some((first, RrSample { at_us: last.at_us.min(until_us.max(first.at_us)), ..last }))
    };
    let spans: Vec<_> = streams.iter().filter_map(counted).collect();
    let all = |of: fn(&RrStreamRecord) -> &Distribution| merged(streams.iter().map(of)).unwrap_or_default();
    RrSummary {
        total: total(None, from_us, &spans),
        latency_ns: all(|stream| &stream.latency_ns),
        connect_ns: all(|stream| &stream.connect_ns),
        load: load(trial),
        client: cost(trial.client, omit_us),
        server: cost(trial.server, omit_us),
    }
}

/// What the trial cost an end, the load beside the requests included.
fn cost(end: &RrEndRecord, omit_us: u64) -> Option<EndCpu> {
    let load = end.load.iter().map(|load| load as &dyn EndRecord);
    cpu::cost(&iter::once(end as &dyn EndRecord).chain(load).collect::<Vec<_>>(), omit_us)
}

/// What the load carried, over the same counted part.
fn load(trial: RrTrial<'_>) -> Vec<FlowSummary> {
    let Some(plan) = &trial.plan.load else { return Vec::new() };
    let (Some(client), Some(server)) = (&trial.client.load, &trial.server.load) else { return Vec::new() };
    let mut plan = plan.clone();
    plan.omit_ms = plan.omit_ms.max(trial.plan.omit_ms);
    let load = TcpTrial { plan: &plan, client, server, elapsed_us: trial.elapsed_us };
    tcp::summary(load).flows
}

const FIGURES: &[figures::Read<RrSummary>] = &[
    (&figures::P50, |it| figures::us(&it.latency_ns, |of| float(of.p50))),
    (&figures::P99, |it| figures::us(&it.latency_ns, |of| float(of.p99))),
    (&figures::TRANSACTIONS, |it| Some(it.total?.per_s)),
    (&figures::MIN, |it| figures::us(&it.latency_ns, |of| float(of.min))),
    (&figures::MEAN, |it| figures::us(&it.latency_ns, |of| of.mean)),
    (&figures::MAX, |it| figures::us(&it.latency_ns, |of| float(of.max))),
    (&figures::P95, |it| Some(float(quantile(&it.latency_ns.buckets, 0.95)?) / 1e3)),
    (&figures::FAILURES, |it| Some(float(it.total?.failures))),
    (&figures::CONNECT, |it| figures::us(&it.connect_ns, |of| float(of.p50))),
];

/// Of a `measure rr` or `crr`. The loaded path comes first: it is the one of interest.
pub fn figures(run: &Run) -> Vec<Headline> {
    let phases = of_run(run).map(|report| report.phases).unwrap_or_default();
    let mut all = Vec::new();
    for (n, phase) in phases.iter().enumerate().rev() {
        let (it, of) = (&phase.summary, if phases.len() > 1 && n == 0 { "idle" } else { "" });
        if it.total.is_some() && it.latency_ns.count > 0 {
            all.extend(figures::read(FIGURES, std::slice::from_ref(it), |_| of));
            all.extend(figures::cost([&it.client, &it.server], of));
            all.extend(figures::read(figures::TCP, &it.load, |it| it.total.flow.direction()));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::live::Live;
    use narrows_model::{Progress, StreamProgress};

    fn sample(at_ms: u64, transactions: u64) -> RrSample {
        RrSample { at_us: at_ms * 1000, transactions, latency_sum_ns: transactions * 50_000, ..RrSample::default() }
    }

    fn says<const N: usize>(at_ms: u64, streams: [(u32, RrSample); N]) -> Progress {
        let stream = |(id, sample): (u32, RrSample)| StreamProgress { id, flow: Flow::Up, sample: sample.into() };
        Progress { at_us: at_ms * 1000, streams: streams.map(stream).into() }
    }

    #[test]
    fn intervals_end_on_the_grid_and_a_stream_that_ended_has_none() {
        let mut live = Live::new(&RrPlan { streams: 2, omit_ms: 500, ..RrPlan::default() });
        let views =
            live.take(Place::Client, &says(500, [(0, sample(500, 50)), (1, sample(500, 150)), (7, sample(500, 9))]));
        assert_eq!(views.iter().map(|view| view.transactions).collect::<Vec<_>>(), [50, 150, 200]);
        assert!(views.iter().all(|view| view.omitted && view.mean_latency_ns == Some(50_000.0)));
        assert!(
            live.take(Place::Client, &says(501, [(0, sample(501, 50)), (1, sample(501, 151))])).is_empty(),
            "a sliver"
        );
        let views = live.take(Place::Client, &says(1000, [(0, sample(1000, 100)), (1, sample(700, 300))]));
        assert_eq!(
            views.iter().map(|view| (view.stream, view.to_s)).collect::<Vec<_>>(),
            [(Some(0), 1.0), (Some(1), 0.7), (None, 1.0)]
        );
        let views = live.take(Place::Client, &says(2000, [(0, sample(2000, 125)), (1, sample(700, 300))]));
        assert_eq!(
            views.iter().map(|view| (view.stream, view.per_s)).collect::<Vec<_>>(),
            [(Some(0), 25.0), (None, 25.0)]
        );
    }
}
