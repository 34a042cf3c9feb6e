//! The samples of a running trial, cut into intervals: both ends' progress goes in as it comes, finished intervals come out.

use super::{Part, Viewed};
use narrows_model::{Flow, Place, Progress, Sample as _};
use std::collections::BTreeMap;

/// One stream of one flow, as one end sees it.
type Key = (Flow, u32, Place);

/// Cuts the progress of a running trial into intervals. An interval ends when the receiver has seen every stream of its flow beyond
/// its end; the sender's newest samples are put beside it.
#[derive(Debug)]
pub struct Live<L: Viewed> {
    pub(super) plan: L,
    interval_us: u64,
    pub(super) omit_us: u64,
    /// The numbers of each flow's streams.
    ids: BTreeMap<Flow, Vec<u32>>,
    /// The samples at which the current interval began. Every count begins at zero with the trial.
    pub(super) began: BTreeMap<Key, L::Sample>,
    /// The newest samples.
    newest: BTreeMap<Key, L::Sample>,
    /// The end of each flow's current interval.
    due_us: BTreeMap<Flow, u64>,
}

impl<L: Viewed> Live<L> {
    /// For a trial of this plan.
    #[must_use]
    pub fn new(plan: &L) -> Self {
        let [interval_us, omit_us] = plan.times_ms().map(|ms| ms.saturating_mul(1000));
        let interval_us = interval_us.max(1);
        let mut ids: BTreeMap<Flow, Vec<u32>> = BTreeMap::new();
        for stream in narrows_model::Plan::streams(plan) {
            ids.entry(stream.flow).or_default().push(stream.id);
        }
        let keys = ids.iter().flat_map(|(flow, ids)| ids.iter().map(|id| (*flow, *id)));
        let zero: BTreeMap<Key, L::Sample> = keys
            .flat_map(|(flow, id)| {
                [Place::Client, Place::Server].map(|place| ((flow, id, place), L::Sample::default()))
            })
            .collect();
        let due_us = ids.keys().map(|flow| (*flow, interval_us)).collect();
        Self { plan: plan.clone(), interval_us, omit_us, ids, began: zero.clone(), newest: zero, due_us }
    }

    /// Takes the progress of one end, and gives the intervals that it completes: each stream, then their sum. Streams that the plan
    /// does not have are passed over.
    pub fn take(&mut self, at: Place, progress: &Progress) -> Vec<L::Interval> {
        L::take(self, at, progress)
    }

    /// Intervals that end on a grid.
    pub(super) fn on_grid(&mut self, at: Place, progress: &Progress) -> Vec<L::Interval> {
        let mut views = Vec::new();
        for stream in &progress.streams {
            if let (Some(newest), Some(sample)) =
                (self.newest.get_mut(&(stream.flow, stream.id, at)), stream.sample.get::<L::Sample>())
            {
                *newest = sample.clone();
            }
        }
        for (flow, ids) in &self.ids {
            let seen_us = || ids.iter().filter_map(|id| Some(self.newest.get(&(*flow, *id, flow.receiver()))?.at_us()));
            let (Some(due_us), Some(first_us), Some(last_us)) =
                (self.due_us.get_mut(flow), seen_us().min(), seen_us().max())
            else {
                continue;
            };
            if first_us < *due_us {
                continue;
            }
            let span = |id: u32, place: Place| {
                Some((self.began.get(&(*flow, id, place))?, self.newest.get(&(*flow, id, place))?))
            };
            let part = |id: u32| Part { sent: span(id, flow.sender()), received: span(id, flow.receiver()) };
            let parts: Vec<_> = ids.iter().map(|id| part(*id)).collect();
            let of = |stream, parts: &[_]| L::interval(*flow, stream, self.omit_us, parts);
            views.extend(ids.iter().zip(&parts).filter_map(|(id, part)| of(Some(*id), &[*part])));
            views.extend(of(None, &parts));
            // The next boundary on the grid: after a pause several have passed, and they make one interval.
            *due_us = (last_us / self.interval_us).saturating_add(1).saturating_mul(self.interval_us);
            for (key, newest) in self.newest.iter().filter(|((of, ..), _)| of == flow) {
                self.began.insert(*key, newest.clone());
            }
        }
        views
    }
}
