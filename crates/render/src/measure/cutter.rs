//! The samples of a running trial, cut into intervals.

use narrows_model::load::kind::Member;
use narrows_model::{Flow, LoadSample, Place, Plan, Progress, Sample};
use std::collections::BTreeMap;

/// One stream of one flow, as one end sees it.
type Key = (Flow, u32, Place);

/// From one sample of an end to a later one of the same end.
pub(crate) type Span<'a, S> = (&'a S, &'a S);

/// One stream over an interval.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamSpans<'a, S> {
    pub(crate) id: u32,
    /// As the end that sends saw it.
    pub(crate) sent: Span<'a, S>,
    /// As the end that receives saw it.
    pub(crate) received: Span<'a, S>,
}

/// Cuts the samples of both ends into intervals. An interval ends when the receiver has seen every stream of its flow beyond its
/// end; the sender's newest samples are put beside it.
#[derive(Debug)]
pub(crate) struct Cutter<S> {
    interval_us: u64,
    /// The numbers of each flow's streams.
    ids: BTreeMap<Flow, Vec<u32>>,
    /// The samples at which the current interval began. Every count begins at zero with the trial.
    began: BTreeMap<Key, S>,
    /// The newest samples.
    newest: BTreeMap<Key, S>,
    /// The end of each flow's current interval.
    due_us: BTreeMap<Flow, u64>,
}

impl<S: Sample + Member<LoadSample> + Clone + Default> Cutter<S> {
    pub(crate) fn new(plan: &dyn Plan, interval_ms: u64) -> Self {
        let interval_us = interval_ms.saturating_mul(1000).max(1);
        let mut ids: BTreeMap<Flow, Vec<u32>> = BTreeMap::new();
        for stream in plan.streams() {
            ids.entry(stream.flow).or_default().push(stream.id);
        }
        let keys = ids.iter().flat_map(|(flow, ids)| ids.iter().map(|id| (*flow, *id)));
        let zero: BTreeMap<Key, S> = keys
            .flat_map(|(flow, id)| [Place::Client, Place::Server].map(|place| ((flow, id, place), S::default())))
            .collect();
        let due_us = ids.keys().map(|flow| (*flow, interval_us)).collect();
        Self { interval_us, ids, began: zero.clone(), newest: zero, due_us }
    }

    /// Takes the progress of one end. `interval` is called for each flow whose interval it completes, with the flow's streams.
    /// Streams that the plan does not have are passed over.
    pub(crate) fn push(
        &mut self,
        at: Place,
        progress: &Progress,
        mut interval: impl FnMut(Flow, &[StreamSpans<'_, S>]),
    ) {
        for stream in &progress.streams {
            if let (Some(newest), Some(sample)) =
                (self.newest.get_mut(&(stream.flow, stream.id, at)), stream.sample.get::<S>())
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
            let spans = |id: &u32| {
                Some(StreamSpans { id: *id, sent: span(*id, flow.sender())?, received: span(*id, flow.receiver())? })
            };
            interval(*flow, &ids.iter().filter_map(spans).collect::<Vec<_>>());
            // The next boundary on the grid: after a pause several have passed, and they make one interval.
            *due_us = (last_us / self.interval_us).saturating_add(1).saturating_mul(self.interval_us);
            for (key, newest) in self.newest.iter().filter(|((of, ..), _)| of == flow) {
                self.began.insert(*key, newest.clone());
            }
        }
    }
}
