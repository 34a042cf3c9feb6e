//! Interval lines while the trial runs: both ends' progress goes in as it comes, finished intervals come out.

use super::part::{Part, interval};
use narrows_model::run::measure_udp::{UdpInterval, UdpProgress};
use narrows_model::{Flow, Place, UdpPlan, UdpSample};
use std::collections::BTreeMap;

/// One stream of one flow, as one end sees it.
type Key = (Flow, Place, u32);

/// Cuts the progress of a running trial into intervals.
///
/// An interval ends when every stream of its flow was seen beyond its end by the end that drives; what the other end
/// said last is put beside it.
#[derive(Debug)]
pub struct Live {
    interval_us: u64,
    omit_us: u64,
    streams: usize,
    driver: Option<Place>,
    /// The samples at which the current interval began.
    began: BTreeMap<Key, UdpSample>,
    /// The newest samples.
    newest: BTreeMap<Key, UdpSample>,
    /// Of each flow: the end of its current interval.
    due_us: BTreeMap<Flow, u64>,
}

impl Live {
    /// For a trial of this plan. Intervals are driven by `driver`'s samples, or by those of each flow's receiver where that
    /// is `None`: choose the client where the server's progress does not arrive while the trial runs.
    #[must_use]
    pub fn new(plan: &UdpPlan, driver: Option<Place>) -> Self {
        let interval_us = plan.interval_ms.saturating_mul(1000).max(1);
        Self {
            interval_us,
            omit_us: plan.omit_ms.saturating_mul(1000),
            streams: usize::try_from(plan.streams).unwrap_or(usize::MAX),
            driver,
            began: BTreeMap::new(),
            newest: BTreeMap::new(),
            due_us: plan.flows().iter().map(|flow| (*flow, interval_us)).collect(),
        }
    }

    /// Takes what an end says, and gives the intervals that it completes: of each flow its streams, then their sum.
    ///
    /// A flow that the plan does not have, and more streams than it has, are passed over.
    pub fn push(&mut self, progress: &UdpProgress) -> Vec<UdpInterval> {
        for stream in &progress.streams {
            let key = (stream.flow, progress.place, stream.id);
            let known = self.began.contains_key(&key);
            if !self.due_us.contains_key(&stream.flow)
                || (!known && self.ids(stream.flow, progress.place).count() >= self.streams)
            {
                continue;
            }
            // Every count begins at zero with the trial.
            self.began.entry(key).or_default();
            self.newest.insert(key, stream.sample.clone());
        }
        let flows: Vec<Flow> = self.due_us.keys().copied().collect();
        flows.into_iter().flat_map(|flow| self.finish(flow)).collect()
    }

    fn ids(&self, flow: Flow, at: Place) -> impl Iterator<Item = u32> + '_ {
        self.began.keys().filter(move |(of, place, _)| (*of, *place) == (flow, at)).map(|(_, _, id)| *id)
    }

    fn finish(&mut self, flow: Flow) -> Vec<UdpInterval> {
        let driver = self.driver.unwrap_or(flow.receiver());
        let Some(&due) = self.due_us.get(&flow) else { return Vec::new() };
        let ids: Vec<u32> = self.ids(flow, driver).collect();
        let at = |id: &u32| self.newest.get(&(flow, driver, *id)).map_or(0, |sample| sample.at_us);
        if ids.len() < self.streams || ids.iter().any(|id| at(id) < due) {
            return Vec::new();
        }
        let span = |place: Place, id: u32| {
            let key = (flow, place, id);
            Some((self.began.get(&key)?, self.newest.get(&key)?))
        };
        let parts: Vec<(u32, Part<'_>)> = ids
            .iter()
            .map(|id| (*id, Part { sent: span(flow.sender(), *id), received: span(flow.receiver(), *id) }))
            .collect();
        let mut views: Vec<UdpInterval> =
            parts.iter().filter_map(|(id, part)| interval(flow, Some(*id), self.omit_us, &[*part])).collect();
        let all: Vec<Part<'_>> = parts.iter().map(|(_, part)| *part).collect();
        views.extend(interval(flow, None, self.omit_us, &all));
        let newest = ids.iter().map(at).max().unwrap_or(due);
        for (key, sample) in self.newest.iter().filter(|((of, ..), _)| *of == flow) {
            self.began.insert(*key, sample.clone());
        }
        // The next boundary on the grid: after a pause several have passed, and they make one interval.
        self.due_us.insert(flow, (newest / self.interval_us).saturating_add(1).saturating_mul(self.interval_us));
        views
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::run::measure_udp::UdpStreamProgress;

    fn says(place: Place, flow: Flow, streams: &[(u32, u64, u64)]) -> UdpProgress {
        let stream = |(id, at_ms, datagrams): &(u32, u64, u64)| UdpStreamProgress {
            id: *id,
            flow,
            sample: UdpSample {
                at_us: at_ms * 1000,
                datagrams: *datagrams,
                bytes: datagrams * 1000,
                ..UdpSample::default()
            },
        };
        UdpProgress { place, streams: streams.iter().map(stream).collect() }
    }

    #[test]
    fn an_interval_ends_when_every_stream_has_passed_it() {
        let mut live = Live::new(&UdpPlan { streams: 2, ..UdpPlan::default() }, None);
        assert!(live.push(&says(Place::Client, Flow::Up, &[(0, 990, 99), (1, 990, 99)])).is_empty());
        assert!(live.push(&says(Place::Server, Flow::Up, &[(0, 1000, 90), (1, 900, 90)])).is_empty());
        let views = live.push(&says(Place::Server, Flow::Up, &[(1, 1000, 100)]));
        assert_eq!(views.iter().map(|view| view.stream).collect::<Vec<_>>(), [Some(0), Some(1), None]);
        let all = &views[2];
        assert_eq!(all.received.expect("both receivers").datagrams, 190);
        assert!((all.sent.expect("both senders").pps - 200.0).abs() < 1e-6, "by the sender's own time");
        // The next interval begins where this one ended.
        let views = live.push(&says(Place::Server, Flow::Up, &[(0, 2000, 190), (1, 2000, 200)]));
        assert_eq!(views[2].received.expect("both receivers").datagrams, 200);
        assert_eq!(views[2].sent, None, "the sender said nothing new");
    }

    #[test]
    fn what_the_plan_does_not_have_is_passed_over() {
        let mut live = Live::new(&UdpPlan::default(), None);
        assert!(live.push(&says(Place::Server, Flow::Down, &[(0, 5000, 1)])).is_empty());
        assert_eq!(live.push(&says(Place::Server, Flow::Up, &[(0, 5000, 1), (9, 5000, 1)])).len(), 2);
        assert_eq!(live.began.len(), 1);
    }
}
