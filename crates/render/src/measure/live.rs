//! Interval lines while the trial runs: readings go in as they come from either end, finished intervals come out.

use super::reading::{Part, Reading, interval};
use narrows_model::run::measure::IntervalView;
use narrows_model::{Flow, Place, TcpPlan};
use std::collections::BTreeMap;
use std::ops::Range;

/// One stream of one flow.
type Key = (Flow, u32);

/// Cuts the readings of a running trial into intervals.
///
/// An interval ends when every stream of its flow was seen beyond its end by the end that drives; what the other end
/// said last is put beside it.
#[derive(Debug)]
pub struct Live {
    interval_us: u64,
    omit_us: u64,
    /// Of each flow: the numbers of its streams. Both ways at once, those down come after those up.
    ids: BTreeMap<Flow, Range<u32>>,
    driver: Option<Place>,
    /// Of each stream and end: the reading at which the current interval began.
    began: BTreeMap<(Key, Place), Reading>,
    /// Of each stream and end: the newest reading.
    newest: BTreeMap<(Key, Place), Reading>,
    /// Of each flow: the end of its current interval.
    due_us: BTreeMap<Flow, u64>,
}

/// The numbers of the streams of the plan's nth flow.
fn ids(plan: &TcpPlan, nth: u32) -> Range<u32> {
    let first = plan.streams.saturating_mul(nth);
    first..first.saturating_add(plan.streams)
}

impl Live {
    /// For a trial of this plan. Intervals are driven by `driver`'s readings, or by those of each flow's receiver where that
    /// is `None`: choose the client where the server's readings do not arrive while the trial runs.
    #[must_use]
    pub fn new(plan: &TcpPlan, driver: Option<Place>) -> Self {
        let interval_us = plan.interval_ms.saturating_mul(1000).max(1);
        Self {
            interval_us,
            omit_us: plan.omit_ms.saturating_mul(1000),
            ids: (0..).zip(plan.flows()).map(|(nth, flow)| (*flow, ids(plan, nth))).collect(),
            driver,
            began: BTreeMap::new(),
            newest: BTreeMap::new(),
            due_us: plan.flows().iter().map(|flow| (*flow, interval_us)).collect(),
        }
    }

    /// Takes a reading of one stream by one end, and gives the intervals that it completes: each stream, then their sum.
    ///
    /// A reading of a stream or flow that the plan does not have is passed over.
    pub fn push(&mut self, at: Place, flow: Flow, stream: u32, reading: Reading) -> Vec<IntervalView> {
        if !self.ids.get(&flow).is_some_and(|ids| ids.contains(&stream)) {
            return Vec::new();
        }
        let key = ((flow, stream), at);
        self.began.entry(key).or_insert(reading);
        self.newest.insert(key, reading);
        self.finish(flow)
    }

    fn finish(&mut self, flow: Flow) -> Vec<IntervalView> {
        let seen_by = self.driver.unwrap_or(flow.receiver());
        let (Some(&due), Some(ids)) = (self.due_us.get(&flow), self.ids.get(&flow).cloned()) else { return Vec::new() };
        let reached = |id: u32| self.newest.get(&((flow, id), seen_by)).is_some_and(|reading| reading.at_us >= due);
        if !ids.clone().all(reached) {
            return Vec::new();
        }
        let span = |id: u32, place: Place| {
            let key = ((flow, id), place);
            Some((*self.began.get(&key)?, *self.newest.get(&key)?))
        };
        let parts: Vec<(u32, Part)> = ids
            .clone()
            .filter_map(|id| Some((id, Part { bytes: span(id, seen_by)?, sender: span(id, flow.sender()) })))
            .collect();
        let of = |stream, parts: &[Part]| interval(flow, stream, seen_by, self.omit_us, parts);
        let mut views: Vec<_> = parts.iter().filter_map(|(id, part)| of(Some(*id), &[*part])).collect();
        let all: Vec<Part> = parts.iter().map(|(_, part)| *part).collect();
        views.extend(of(None, &all));
        let newest = all.iter().map(|part| part.bytes.1.at_us).max().unwrap_or(due);
        for id in ids {
            for place in [Place::Client, Place::Server] {
                if let Some(&reading) = self.newest.get(&((flow, id), place)) {
                    self.began.insert(((flow, id), place), reading);
                }
            }
        }
        // The next boundary on the grid: after a pause several have passed, and they make one interval.
        self.due_us.insert(flow, (newest / self.interval_us).saturating_add(1).saturating_mul(self.interval_us));
        views
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(at_ms: u64, mbytes: u64) -> Reading {
        Reading { at_us: at_ms * 1000, bytes: mbytes * 1_000_000, ..Reading::default() }
    }

    #[test]
    fn streams_down_are_numbered_after_those_up() {
        let plan = TcpPlan { streams: 2, direction: narrows_model::Direction::Both, ..TcpPlan::default() };
        let mut live = Live::new(&plan, Some(Place::Client));
        let mut views = Vec::new();
        for at_ms in [0, 1000] {
            for (flow, ids) in [(Flow::Up, [0, 1]), (Flow::Down, [2, 3])] {
                for id in ids {
                    views.extend(live.push(Place::Client, flow, id, reading(at_ms, at_ms / 10)));
                }
            }
        }
        let seen: Vec<_> = views.iter().map(|view| (view.flow, view.stream)).collect();
        let (up, down) = (Flow::Up, Flow::Down);
        assert_eq!(seen, [(up, Some(0)), (up, Some(1)), (up, None), (down, Some(2)), (down, Some(3)), (down, None)]);
        assert!(live.push(Place::Client, Flow::Down, 0, reading(2000, 200)).is_empty(), "it is none of that way");
    }

    #[test]
    fn an_interval_ends_when_every_stream_has_passed_it() {
        let plan = TcpPlan { streams: 2, ..TcpPlan::default() };
        let mut live = Live::new(&plan, None);
        for stream in [0, 1] {
            assert!(live.push(Place::Server, Flow::Up, stream, reading(0, 0)).is_empty());
        }
        assert!(live.push(Place::Server, Flow::Up, 0, reading(500, 30)).is_empty());
        assert!(live.push(Place::Server, Flow::Up, 0, reading(1000, 60)).is_empty());
        let sent = Reading { rtt_us: Some(35_000), retransmits: Some(3), ..reading(1000, 70) };
        assert!(live.push(Place::Client, Flow::Up, 0, Reading { retransmits: Some(1), ..reading(0, 0) }).is_empty());
        assert!(live.push(Place::Client, Flow::Up, 0, sent).is_empty());
        let views = live.push(Place::Server, Flow::Up, 1, reading(1000, 65));
        assert_eq!(views.iter().map(|view| view.stream).collect::<Vec<_>>(), [Some(0), Some(1), None]);
        assert!((views[2].goodput_bps - 1e9).abs() < 1.0, "{:?}", views[2]);
        assert_eq!((views[0].retransmits, views[0].rtt_us), (Some(2), Some(35_000)));
        assert_eq!(views[2].retransmits, None, "one sender is not known");
    }

    #[test]
    fn a_pause_makes_one_longer_interval_and_the_grid_goes_on() {
        let mut live = Live::new(&TcpPlan::default(), Some(Place::Client));
        assert!(live.push(Place::Client, Flow::Up, 0, reading(0, 0)).is_empty());
        let views = live.push(Place::Client, Flow::Up, 0, reading(3400, 10));
        assert_eq!((views[0].from_s, views[0].to_s), (0.0, 3.4));
        assert!(live.push(Place::Client, Flow::Up, 0, reading(3900, 20)).is_empty());
        assert_eq!(live.push(Place::Client, Flow::Up, 0, reading(4000, 30)).len(), 2);
    }

    #[test]
    fn what_the_plan_does_not_have_is_passed_over() {
        let mut live = Live::new(&TcpPlan::default(), None);
        assert!(live.push(Place::Server, Flow::Down, 0, reading(5000, 1)).is_empty());
        assert!(live.push(Place::Server, Flow::Up, 9, reading(5000, 1)).is_empty());
        assert!(live.began.is_empty());
    }
}
