//! The view of a measurement from what both ends recorded.

use super::cpu;
use super::cut::cut;
use super::interval::{Part, interval};
use narrows_model::run::measure::{FlowSummary, IntervalView, MeasureReport, Remark, SCHEMA, StreamView, SummaryView};
use narrows_model::run::report::RunView;
use narrows_model::run::{Purpose, Run};
use narrows_model::{EndRecord as _, Flow, Load, Place, TcpEndRecord, TcpSample, TcpStreamRecord, TcpTrial, TrialOf};

/// Below this many intervals a correlation between neighbours says nothing.
const FEWEST_FOR_LAG: usize = 8;

/// The view of a run of `narrows measure tcp`; `None` where it holds no trial.
#[must_use]
pub fn build(run: &Run) -> Option<MeasureReport> {
    let measured = run.trials_of().find(|(purpose, _)| **purpose == Purpose::Measure);
    let (_, trial) = measured.or_else(|| run.trials_of().next())?;
    Some(from_trial(trial, run.into()))
}

/// The view of one trial.
#[must_use]
pub fn from_trial(trial: TcpTrial<'_>, run: RunView) -> MeasureReport {
    let flows = trial.plan.flows();
    let remarks = remarks(trial);
    let omit_us = trial.plan.omit_ms.saturating_mul(1000);
    let mut by_flow: Vec<_> = flows.iter().map(|flow| FlowRecords::of(trial, *flow).intervals().into_iter()).collect();
    let mut intervals = Vec::new();
    loop {
        // One interval of each flow in turn.
        let next: Vec<_> = by_flow.iter_mut().filter_map(Iterator::next).collect();
        if next.is_empty() {
            break;
        }
        intervals.extend(next.into_iter().flatten());
    }
    MeasureReport {
        schema: SCHEMA.to_owned(),
        run,
        plan: trial.plan.clone(),
        streams: flows.iter().flat_map(|flow| FlowRecords::of(trial, *flow).streams()).collect(),
        summary: SummaryView {
            flows: flows
                .iter()
                .filter_map(|flow| {
                    let own: Vec<_> =
                        intervals.iter().filter(|it| it.flow == *flow && it.stream.is_none()).cloned().collect();
                    FlowRecords::of(trial, *flow).summary(&own)
                })
                .collect(),
            client: cpu::cost(&[trial.client], omit_us),
            server: cpu::cost(&[trial.server], omit_us),
        },
        intervals,
        remarks,
    }
}

/// What both ends say of anything that went otherwise than planned.
pub(crate) fn remarks<L: Load>(trial: TrialOf<'_, L>) -> Vec<Remark> {
    let of = |end: &L::Record| -> Vec<Remark> {
        end.remarks().iter().map(|says| Remark { at: end.place(), says: says.clone() }).collect()
    };
    [of(trial.client), of(trial.server)].concat()
}

/// Both ends' records of one flow.
struct FlowRecords<'a> {
    flow: Flow,
    /// The end whose bytes count: the receiver, or the sender where the receiver recorded nothing.
    seen_by: Place,
    omit_us: u64,
    interval_us: u64,
    /// Each stream as the counting end saw it, and as the sender saw it.
    pairs: Vec<(&'a TcpStreamRecord, Option<&'a TcpStreamRecord>)>,
    sender: &'a TcpEndRecord,
    receiver: &'a TcpEndRecord,
}

impl<'a> FlowRecords<'a> {
    fn of(trial: TcpTrial<'a>, flow: Flow) -> Self {
        let (sender, receiver) = match flow {
            Flow::Up => (trial.client, trial.server),
            Flow::Down => (trial.server, trial.client),
        };
        let seen = |end: &TcpEndRecord| end.streams.iter().any(|it| it.flow == flow && it.samples.len() > 1);
        let counting = if seen(receiver) { receiver } else { sender };
        let seen_by = if seen(receiver) { flow.receiver() } else { flow.sender() };
        let pairs = counting
            .streams
            .iter()
            .filter(|stream| stream.flow == flow)
            .map(|stream| (stream, sender.streams.iter().find(|it| it.id == stream.id && it.flow == flow)))
            .collect();
        Self {
            flow,
            seen_by,
            omit_us: trial.plan.omit_ms.saturating_mul(1000),
            interval_us: trial.plan.interval_ms.saturating_mul(1000),
            pairs,
            sender,
            receiver,
        }
    }

    fn streams(&self) -> Vec<StreamView> {
        let records = |end: &'a TcpEndRecord| end.streams.iter().filter(|it| it.flow == self.flow);
        let mut ids: Vec<u32> = records(self.sender).chain(records(self.receiver)).map(|it| it.id).collect();
        ids.sort_unstable();
        ids.dedup();
        let view = |id: u32| {
            let sent = records(self.sender).find(|it| it.id == id);
            let got = records(self.receiver).find(|it| it.id == id);
            let near = |mine: Option<&TcpStreamRecord>, theirs: Option<&TcpStreamRecord>| {
                let mine = mine.map(|it| it.local.clone());
                mine.or_else(|| theirs.map(|it| it.remote.clone())).unwrap_or_default()
            };
            let (sender, receiver) = (near(sent, got), near(got, sent));
            let (client, server) = match self.flow {
                Flow::Up => (sender, receiver),
                Flow::Down => (receiver, sender),
            };
            StreamView {
                id,
                flow: self.flow,
                client,
                server,
                congestion_control: sent.and_then(|it| it.congestion_control.clone()),
                mss_bytes: sent.and_then(|it| it.mss_bytes),
                sndbuf_bytes: sent.and_then(|it| it.sndbuf_bytes),
                rcvbuf_bytes: got.and_then(|it| it.rcvbuf_bytes),
                sent_by: sent.map(|it| it.method.clone()),
                received_by: got.map(|it| it.method.clone()),
            }
        };
        ids.into_iter().map(view).collect()
    }

    /// Each interval: its streams, then all of them together.
    fn intervals(&self) -> Vec<Vec<IntervalView>> {
        let times = |stream: &TcpStreamRecord| stream.samples.iter().map(|sample| sample.at_us).collect::<Vec<_>>();
        let cuts: Vec<Vec<usize>> =
            self.pairs.iter().map(|(stream, _)| cut(&times(stream), self.interval_us)).collect();
        let most = cuts.iter().map(|cuts| cuts.len().saturating_sub(1)).max().unwrap_or(0);
        (0..most).map(|k| self.one_interval(&cuts, k)).collect()
    }

    fn one_interval(&self, cuts: &[Vec<usize>], k: usize) -> Vec<IntervalView> {
        let mut views = Vec::new();
        let mut parts = Vec::new();
        for ((stream, sent), cuts) in self.pairs.iter().zip(cuts) {
            let (Some(&from), Some(&to)) = (cuts.get(k), cuts.get(k + 1)) else { continue };
            let (first, last) = (&stream.samples[from], &stream.samples[to]);
            let sender = sent.and_then(|sent| Some((nearest(sent, first.at_us)?, nearest(sent, last.at_us)?)));
            let part = Part { bytes: (first, last), sender };
            if let Some(mut view) = interval(self.flow, Some(stream.id), self.seen_by, self.omit_us, &[part]) {
                view.sender = sender.map(|(_, last)| last.tcp.clone());
                view.receiver = (self.seen_by == self.flow.receiver()).then(|| last.tcp.clone());
                views.push(view);
            }
            parts.push(part);
        }
        views.extend(interval(self.flow, None, self.seen_by, self.omit_us, &parts));
        views
    }

    /// The counted part: from the first sample after the omitted one to the last. A trial that was cut before its counted
    /// part is summed up whole.
    fn summary(&self, intervals: &[IntervalView]) -> Option<FlowSummary> {
        let cut_short = self.pairs.iter().all(|(it, _)| it.samples.last().is_none_or(|s| s.at_us <= self.omit_us));
        let omit_us = if cut_short { 0 } else { self.omit_us };
        let counted = |stream: &'a TcpStreamRecord| {
            let first = stream.samples.iter().find(|sample| sample.at_us >= omit_us)?;
            Some((first, stream.samples.last()?))
        };
        let parts: Vec<(u32, Part<'_>)> = self
            .pairs
            .iter()
            .filter_map(|(stream, sent)| {
                let (first, last) = counted(stream)?;
                Some((stream.id, Part { bytes: (first, last), sender: sent.and_then(counted) }))
            })
            .collect();
        let whole: Vec<Part<'_>> = parts.iter().map(|(_, part)| *part).collect();
        let of = |stream, parts: &[Part<'_>]| interval(self.flow, stream, self.seen_by, omit_us, parts);
        let rates: Vec<f64> = intervals.iter().filter(|it| !it.omitted).map(|it| it.goodput_bps).collect();
        let sent = |stream: &TcpStreamRecord| stream.samples.last()?.tcp.min_rtt_us;
        Some(FlowSummary {
            total: of(None, &whole)?,
            streams: parts.iter().filter_map(|(id, part)| of(Some(*id), &[*part])).collect(),
            sent_bytes: whole
                .iter()
                .map(|part| part.sender.map(|(from, to)| to.bytes.saturating_sub(from.bytes)))
                .sum(),
            min_rtt_us: self.pairs.iter().filter_map(|(_, sender)| sender.and_then(sent)).min(),
            lag1: (rates.len() >= FEWEST_FOR_LAG).then(|| narrows_stats::lag1(&rates)).flatten(),
        })
    }
}

/// The sample nearest to an instant.
fn nearest(stream: &TcpStreamRecord, at_us: u64) -> Option<&TcpSample> {
    stream.samples.iter().min_by_key(|sample| sample.at_us.abs_diff(at_us))
}
