//! The view of a UDP measurement from what both ends recorded.

use super::part::{Part, interval};
use super::summary;
use crate::measure::{build::remarks, cpu, cut::cut};
use narrows_model::run::Run;
use narrows_model::run::measure_udp::{MeasureUdpReport, SCHEMA, UdpInterval, UdpStreamView, UdpSummary};
use narrows_model::run::report::RunView;
use narrows_model::{Flow, UdpEndRecord, UdpSample, UdpStreamRecord, UdpTrial};

/// The view of a run of `narrows measure udp`; `None` where it holds no trial.
#[must_use]
pub fn build(run: &Run) -> Option<MeasureUdpReport> {
    Some(from_trial(run.trials_of().next()?.1, run.into()))
}

/// The view of one trial.
#[must_use]
pub fn from_trial(trial: UdpTrial<'_>, run: RunView) -> MeasureUdpReport {
    let flows: Vec<FlowRecords<'_>> = trial.plan.flows().iter().map(|flow| FlowRecords::of(trial, *flow)).collect();
    let omit_us = trial.plan.omit_ms.saturating_mul(1000);
    let mut by_flow: Vec<_> = flows.iter().map(|flow| flow.intervals().into_iter()).collect();
    let mut intervals = Vec::new();
    loop {
        // One interval of each flow in turn.
        let next: Vec<_> = by_flow.iter_mut().filter_map(Iterator::next).collect();
        if next.is_empty() {
            break;
        }
        intervals.extend(next.into_iter().flatten());
    }
    MeasureUdpReport {
        schema: SCHEMA.to_owned(),
        run,
        plan: trial.plan.clone(),
        streams: flows.iter().flat_map(FlowRecords::streams).collect(),
        intervals,
        summary: UdpSummary {
            flows: flows.iter().filter_map(|flow| summary::of(flow, trial.plan)).collect(),
            client: cpu::cost(&[trial.client], omit_us),
            server: cpu::cost(&[trial.server], omit_us),
        },
        remarks: remarks(trial),
    }
}

/// Both ends' records of one stream; at least one is there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair<'a> {
    pub(super) id: u32,
    pub(super) sender: Option<&'a UdpStreamRecord>,
    pub(super) receiver: Option<&'a UdpStreamRecord>,
}

/// Both ends' records of one flow.
pub(super) struct FlowRecords<'a> {
    pub(super) flow: Flow,
    pub(super) pairs: Vec<Pair<'a>>,
    omit_us: u64,
    interval_us: u64,
}

impl<'a> FlowRecords<'a> {
    fn of(trial: UdpTrial<'a>, flow: Flow) -> Self {
        let (sender, receiver) = match flow {
            Flow::Up => (trial.client, trial.server),
            Flow::Down => (trial.server, trial.client),
        };
        let of = |end: &'a UdpEndRecord| end.streams.iter().filter(move |it| it.flow == flow);
        let mut ids: Vec<u32> = of(sender).chain(of(receiver)).map(|it| it.id).collect();
        ids.sort_unstable();
        ids.dedup();
        let find = |end: &'a UdpEndRecord, id: u32| of(end).find(|it| it.id == id);
        let pairs =
            ids.into_iter().map(|id| Pair { id, sender: find(sender, id), receiver: find(receiver, id) }).collect();
        Self {
            flow,
            pairs,
            omit_us: trial.plan.omit_ms.saturating_mul(1000),
            interval_us: trial.plan.interval_ms.saturating_mul(1000),
        }
    }

    fn streams(&self) -> Vec<UdpStreamView> {
        let view = |pair: &Pair<'_>| {
            let near = |mine: Option<&UdpStreamRecord>, theirs: Option<&UdpStreamRecord>| {
                let mine = mine.map(|it| it.local.clone());
                mine.or_else(|| theirs.map(|it| it.remote.clone())).unwrap_or_default()
            };
            let (sender, receiver) = (near(pair.sender, pair.receiver), near(pair.receiver, pair.sender));
            let (client, server) = match self.flow {
                Flow::Up => (sender, receiver),
                Flow::Down => (receiver, sender),
            };
            let any = pair.sender.or(pair.receiver);
            UdpStreamView {
                id: pair.id,
                flow: self.flow,
                client,
                server,
                datagram_bytes: any.map(|it| it.datagram_bytes),
                path_mtu_bytes: pair.sender.and_then(|it| it.path_mtu_bytes),
                sndbuf_bytes: pair.sender.and_then(|it| it.sndbuf_bytes),
                rcvbuf_bytes: pair.receiver.and_then(|it| it.rcvbuf_bytes),
                sent_by: pair.sender.map(|it| it.method.clone()),
                received_by: pair.receiver.map(|it| it.method.clone()),
            }
        };
        self.pairs.iter().map(view).collect()
    }

    /// Each interval: its streams, then all of them together.
    fn intervals(&self) -> Vec<Vec<UdpInterval>> {
        let cuts: Vec<_> = self.pairs.iter().map(|pair| self.parts(pair)).collect();
        let most = cuts.iter().map(Vec::len).max().unwrap_or(0);
        (0..most)
            .map(|k| {
                let parts: Vec<(u32, Part<'_>)> =
                    self.pairs.iter().zip(&cuts).filter_map(|(pair, cuts)| Some((pair.id, *cuts.get(k)?))).collect();
                let of = |stream, parts: &[Part<'_>]| interval(self.flow, stream, self.omit_us, parts);
                let all: Vec<Part<'_>> = parts.iter().map(|(_, part)| *part).collect();
                parts.iter().filter_map(|(id, part)| of(Some(*id), &[*part])).chain(of(None, &all)).collect()
            })
            .collect()
    }

    /// One stream's intervals: cut by the receiver's samples, or by the sender's where there are none.
    fn parts(&self, pair: &Pair<'a>) -> Vec<Part<'a>> {
        let seen = |record: Option<&'a UdpStreamRecord>| record.filter(|it| it.samples.len() > 1);
        let (sender, receiver) = (seen(pair.sender), seen(pair.receiver));
        let Some(driver) = receiver.or(sender) else { return Vec::new() };
        let times: Vec<u64> = driver.samples.iter().map(|sample| sample.at_us).collect();
        cut(&times, self.interval_us)
            .windows(2)
            .filter_map(|ends| {
                let (first, last) = (driver.samples.get(ends[0])?, driver.samples.get(ends[1])?);
                let sent = sender.and_then(|it| Some((nearest(it, first.at_us)?, nearest(it, last.at_us)?)));
                Some(Part { sent, received: receiver.is_some().then_some((first, last)) })
            })
            .collect()
    }
}

/// The sample nearest to an instant.
fn nearest(stream: &UdpStreamRecord, at_us: u64) -> Option<&UdpSample> {
    stream.samples.iter().min_by_key(|sample| sample.at_us.abs_diff(at_us))
}
