//! The samples of a running trial, cut into intervals: both ends' progress goes in as it comes, finished intervals come out.

use super::{FlowRecords, Part, Viewed, in_turn};
use narrows_model::{Flow, Place, Progress, Sample as _, TrialOf};
use std::collections::BTreeMap;

/// One stream of one flow, as one end sees it.
type Key = (Flow, u32, Place);

/// Samples of one stream that wait for the end of their interval, where the other end says nothing.
const MAX_WAITING: usize = 256;

/// Cuts the progress of a running trial into intervals.
///
/// An interval ends when both ends have passed its end; an end that lags by a whole interval is not waited for, and what it counted
/// meanwhile is part of a later one. The interval that ends with the trial comes from the record ([`Live::rest`]): it includes what
/// was still under way, and the intervals sum to the summary.
#[derive(Debug)]
pub struct Live<L: Viewed> {
    interval_us: u64,
    omit_us: u64,
    /// The planned end; `None` where bytes end the trial.
    end_us: Option<u64>,
    /// The numbers of each flow's streams.
    ids: BTreeMap<Flow, Vec<u32>>,
    /// What was heard since the current interval began; first the sample with which it began. Every count begins at zero.
    heard: BTreeMap<Key, Vec<L::Sample>>,
    /// How far each end is.
    told_us: BTreeMap<Place, u64>,
    /// The end of each flow's current interval.
    due_us: BTreeMap<Flow, u64>,
}

impl<L: Viewed> Live<L> {
    /// For a trial of this plan.
    pub fn new(plan: &L) -> Self {
        let [interval_us, omit_us] = plan.times_ms().map(|ms| ms.saturating_mul(1000));
        let interval_us = interval_us.max(1);
        let mut ids: BTreeMap<Flow, Vec<u32>> = BTreeMap::new();
        for stream in plan.streams() {
            ids.entry(stream.flow).or_default().push(stream.id);
        }
        let keys = ids.iter().flat_map(|(flow, ids)| ids.iter().map(|id| (*flow, *id)));
        let heard = keys
            .flat_map(|(flow, id)| {
                [Place::Client, Place::Server].map(|place| ((flow, id, place), vec![L::Sample::default()]))
            })
            .collect();
        let end_us = plan.duration_ms().map(|ms| ms.saturating_mul(1000));
        let mut live =
            Self { interval_us, omit_us, end_us, ids, heard, told_us: BTreeMap::new(), due_us: BTreeMap::new() };
        live.due_us = live.ids.keys().map(|flow| (*flow, live.boundary_after(0))).collect();
        live
    }

    /// Takes the progress of one end, and gives the intervals that it completes: each stream, then their sum. Streams that the plan
    /// does not have are passed over.
    pub fn take(&mut self, at: Place, progress: &Progress) -> Vec<L::Interval> {
        self.told_us.insert(at, progress.at_us);
        for stream in &progress.streams {
            if let (Some(heard), Some(sample)) =
                (self.heard.get_mut(&(stream.flow, stream.id, at)), stream.sample.get::<L::Sample>())
                && heard.last().is_none_or(|last| last.at_us() < sample.at_us())
            {
                heard.push(sample.clone());
                if heard.len() > MAX_WAITING {
                    heard.remove(1);
                }
            }
        }
        let flows: Vec<Flow> = self.ids.keys().copied().collect();
        let mut views = Vec::new();
        for flow in flows {
            while let Some(due_us) = self.due(flow) {
                self.cut(flow, due_us, &mut views);
            }
        }
        views
    }

    /// The intervals of the finished trial that were not given yet.
    pub fn rest(&self, trial: TrialOf<'_, L>) -> Vec<L::Interval> {
        let of = |records: &FlowRecords<'_, L>| {
            let began = |id, place| self.heard.get(&(records.flow, id, place))?.first().filter(|it| it.at_us() > 0);
            records.intervals_since(&began)
        };
        in_turn(FlowRecords::all(trial).iter().map(of).collect())
    }

    /// The end of the interval that begins there: on the grid, or where the omitted part ends.
    fn boundary_after(&self, at_us: u64) -> u64 {
        let grid = (at_us / self.interval_us).saturating_add(1).saturating_mul(self.interval_us);
        if self.omit_us > at_us { grid.min(self.omit_us) } else { grid }
    }

    /// The end of the flow's current interval, once it can be cut.
    fn due(&self, flow: Flow) -> Option<u64> {
        let due_us = *self.due_us.get(&flow)?;
        let counted = self.counted_at(flow);
        let is_past = |place: Place, us: u64| self.told_us.get(&place).is_some_and(|told| *told >= us);
        let is_last = match self.end_us {
            // A pause may reach to the end.
            Some(end_us) => self.first_from(flow, counted, due_us).is_some_and(|at_us| at_us >= end_us),
            // It may be the last one until more than its drain has followed.
            None => !is_past(counted, due_us.saturating_add(self.interval_us / 4)),
        };
        let others = [flow.sender(), flow.receiver()];
        let is_over = is_past(counted, due_us)
            && (others.iter().all(|place| !L::tells(*place) || is_past(*place, due_us))
                || is_past(counted, due_us.saturating_add(self.interval_us)));
        (is_over && !is_last).then_some(due_us)
    }

    /// The end whose samples make a flow's intervals. Where its progress has no stream, as that of a server of iperf3: the sender.
    fn counted_at(&self, flow: Flow) -> Place {
        let counted = L::counted_at(flow);
        let tells = |place: Place| {
            let began = |(key, heard): (&Key, &Vec<L::Sample>)| {
                (key.0, key.2) == (flow, place) && heard.last().is_some_and(|it| it.at_us() > 0)
            };
            self.heard.iter().any(began)
        };
        let speaks = self.told_us.get(&counted).is_some_and(|us| *us > 0);
        if speaks && !tells(counted) && tells(flow.sender()) { flow.sender() } else { counted }
    }

    /// The latest of its streams' first samples from there on.
    fn first_from(&self, flow: Flow, place: Place, us: u64) -> Option<u64> {
        let first = |id: &u32| {
            self.heard.get(&(flow, *id, place))?.iter().map(narrows_model::Sample::at_us).find(|at_us| *at_us >= us)
        };
        self.ids.get(&flow)?.iter().filter_map(first).max()
    }

    fn cut(&mut self, flow: Flow, due_us: u64, views: &mut Vec<L::Interval>) {
        let ids = self.ids.get(&flow).cloned().unwrap_or_default();
        let counted = self.counted_at(flow);
        let mut last_us = due_us;
        let mut ends = BTreeMap::new();
        for key in ids.iter().flat_map(|id| [(flow, *id, flow.sender()), (flow, *id, flow.receiver())]) {
            let Some(heard) = self.heard.get(&key) else { continue };
            // A stream that has ended is at its last sample.
            let ended = Some(heard.len() - 1).filter(|_| key.2 == counted);
            let end = heard.iter().position(|sample| sample.at_us() >= due_us).or(ended);
            if let Some(end) = end.filter(|end| *end > 0) {
                if key.2 == counted {
                    last_us = last_us.max(heard[end].at_us());
                }
                ends.insert(key, end);
            }
        }
        let span = |id: u32, place: Place| {
            let key = (flow, id, place);
            Some((self.heard.get(&key)?.first()?, self.heard.get(&key)?.get(*ends.get(&key)?)?))
        };
        let part =
            |id: u32| Part { sent: span(id, flow.sender()), received: span(id, flow.receiver()), is_last: false };
        let is_counted = |id: &&u32| ends.contains_key(&(flow, **id, counted));
        let parts: Vec<_> = ids.iter().filter(is_counted).map(|id| (*id, part(*id))).collect();
        let of = |stream, parts: &[_]| L::interval(flow, stream, self.omit_us, parts);
        views.extend(parts.iter().filter_map(|(id, part)| of(Some(*id), &[*part])));
        views.extend(of(None, &parts.iter().map(|(_, part)| *part).collect::<Vec<_>>()));
        for (key, end) in ends {
            if let Some(heard) = self.heard.get_mut(&key) {
                heard.drain(..end);
            }
        }
        // After a pause several boundaries have passed, and they make one interval.
        let next_us = self.boundary_after(last_us);
        self.due_us.insert(flow, next_us);
    }
}
