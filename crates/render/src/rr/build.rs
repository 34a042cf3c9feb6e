//! The view of request/response trials from what both ends recorded. The counts and latencies are the client's.

use crate::figures::float;
use crate::measure::build::{from_trial, remarks};
use crate::measure::cpu;
use crate::measure::cut::cut;
use narrows_model::run::measure::{EndCpu, FlowSummary};
use narrows_model::run::measure_rr::{
    LatencyUnderLoad, RrIntervalView, RrPhase, RrReport, RrStreamView, RrSummary, SCHEMA,
};
use narrows_model::run::report::RunView;
use narrows_model::{Distribution, EndRecord, RrEndRecord, RrSample, RrStreamRecord, RrTrial, TcpTrial};
use narrows_stats::Histogram;
use std::iter;

/// The view of a run's trials, in the order in which they were measured. `under_load` is the diagnosis of two of them.
#[must_use]
pub fn build(run: RunView, trials: &[RrTrial<'_>], under_load: Option<LatencyUnderLoad>) -> RrReport {
    RrReport { schema: SCHEMA.to_owned(), run, phases: trials.iter().copied().map(phase).collect(), under_load }
}

/// The view of one trial.
#[must_use]
pub fn phase(trial: RrTrial<'_>) -> RrPhase {
    RrPhase {
        plan: trial.plan.clone(),
        streams: trial.client.streams.iter().map(|stream| view(stream, trial.server)).collect(),
        intervals: intervals(trial),
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

/// From one sample of a stream to a later one.
pub(crate) type Span = (RrSample, RrSample);

/// The interval of one stream (`stream` given) or of several together. `None` of no span or of no time.
pub(crate) fn interval(stream: Option<u32>, omit_us: u64, spans: &[Span]) -> Option<RrIntervalView> {
    let from_us = spans.iter().map(|(from, _)| from.at_us).min()?;
    let to_us = spans.iter().map(|(_, to)| to.at_us).max()?;
    let length = to_us.checked_sub(from_us).filter(|length| *length > 0)?;
    let grown = |of: fn(&RrSample) -> u64| {
        spans.iter().map(|(from, to)| of(to).saturating_sub(of(from))).fold(0, u64::saturating_add)
    };
    let transactions = grown(|sample| sample.transactions);
    Some(RrIntervalView {
        stream,
        from_s: float(from_us) / 1e6,
        to_s: float(to_us) / 1e6,
        transactions,
        failures: grown(|sample| sample.failures),
        per_s: float(transactions) * 1e6 / float(length),
        mean_latency_ns: (transactions > 0).then(|| float(grown(|sample| sample.latency_sum_ns)) / float(transactions)),
        omitted: from_us < omit_us,
    })
}

/// Each interval: its streams, then all of them together.
fn intervals(trial: RrTrial<'_>) -> Vec<RrIntervalView> {
    let (interval_us, omit_us) = (trial.plan.interval_ms.saturating_mul(1000), trial.plan.omit_ms.saturating_mul(1000));
    let times = |stream: &RrStreamRecord| stream.samples.iter().map(|sample| sample.at_us).collect::<Vec<_>>();
    let cuts: Vec<Vec<usize>> = trial.client.streams.iter().map(|stream| cut(&times(stream), interval_us)).collect();
    let most = cuts.iter().map(|cuts| cuts.len().saturating_sub(1)).max().unwrap_or(0);
    let one = |k: usize| {
        let mut views = Vec::new();
        let mut spans = Vec::new();
        for (stream, cuts) in trial.client.streams.iter().zip(&cuts) {
            let (Some(&from), Some(&to)) = (cuts.get(k), cuts.get(k + 1)) else { continue };
            let span = (stream.samples[from], stream.samples[to]);
            views.extend(interval(Some(stream.id), omit_us, &[span]));
            spans.push(span);
        }
        views.extend(interval(None, omit_us, &spans));
        views
    };
    (0..most).flat_map(one).collect()
}

/// The counted part: from the first sample after the omitted one to the last. A trial that was cut before its counted part is
/// summed up whole.
fn summary(trial: RrTrial<'_>) -> RrSummary {
    let omit_us = trial.plan.omit_ms.saturating_mul(1000);
    let streams = &trial.client.streams;
    let cut_short = streams.iter().all(|it| it.samples.last().is_none_or(|last| last.at_us <= omit_us));
    let from_us = if cut_short { 0 } else { omit_us };
    // What comes after the planned end are the last answers, or the wait for them: no request begins there.
    let until_us = trial.plan.duration_ms.saturating_mul(1000);
    let counted = |stream: &RrStreamRecord| {
        let first = *stream.samples.iter().find(|sample| sample.at_us >= from_us)?;
        let last = *stream.samples.last()?;
        Some((first, RrSample { at_us: last.at_us.min(until_us.max(first.at_us)), ..last }))
    };
    let spans: Vec<Span> = streams.iter().filter_map(counted).collect();
    let all = |of: fn(&RrStreamRecord) -> &Distribution| {
        let mut all = Histogram::new();
        streams.iter().for_each(|stream| all.merge(&Histogram::from_distribution(of(stream))));
        all.distribution()
    };
    RrSummary {
        total: interval(None, from_us, &spans),
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
    let run = RunView {
        id: String::new(),
        made_by: String::new(),
        started_unix_us: 0,
        elapsed_s: 0.0,
        target: narrows_model::Target {
            asked: String::new(),
            address: String::new(),
            family: narrows_model::Family::Ipv4,
        },
        ending: narrows_model::Ending::Complete,
        idle_rtt_us: None,
    };
    from_trial(load, run).summary.flows
}
