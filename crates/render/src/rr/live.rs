//! Interval lines while the trial runs: the client's samples go in as each interval ends, its views come out.

use super::build::interval;
use narrows_model::run::measure_rr::RrIntervalView;
use narrows_model::{RrPlan, RrSample};
use std::collections::BTreeMap;

/// Cuts the samples of a running trial into intervals.
#[derive(Debug)]
pub struct Live {
    plan: RrPlan,
    /// Of each stream: the sample at which its interval began.
    began: BTreeMap<u32, RrSample>,
}

impl Live {
    /// For a trial of this plan.
    #[must_use]
    pub fn new(plan: &RrPlan) -> Self {
        Self { plan: plan.clone(), began: BTreeMap::new() }
    }

    pub(super) const fn plan(&self) -> &RrPlan {
        &self.plan
    }

    /// Takes the samples of all streams at the end of an interval and gives that interval: each stream, then their sum. Streams
    /// that the plan does not have, and those that have not moved on, are passed over.
    pub fn take(&mut self, samples: impl IntoIterator<Item = (u32, RrSample)>) -> Vec<RrIntervalView> {
        let omit_us = self.plan.omit_ms.saturating_mul(1000);
        let mut views = Vec::new();
        let mut spans = Vec::new();
        for (id, sample) in samples.into_iter().filter(|(id, _)| *id < self.plan.streams) {
            let began = self.began.insert(id, sample).unwrap_or_default();
            if sample.at_us > began.at_us {
                views.extend(interval(Some(id), omit_us, &[(began, sample)]));
                spans.push((began, sample));
            }
        }
        views.extend(interval(None, omit_us, &spans));
        views
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_ms: u64, transactions: u64) -> RrSample {
        RrSample { at_us: at_ms * 1000, transactions, latency_sum_ns: transactions * 50_000, ..RrSample::default() }
    }

    #[test]
    fn each_push_is_an_interval_and_a_stream_that_ended_has_none() {
        let mut live = Live::new(&RrPlan { streams: 2, omit_ms: 500, ..RrPlan::default() });
        let first = live.take([(0, sample(1000, 100)), (1, sample(1000, 300)), (7, sample(1000, 9))]);
        assert_eq!(first.iter().map(|view| view.transactions).collect::<Vec<_>>(), [100, 300, 400]);
        assert!(first.iter().all(|view| view.omitted && view.mean_latency_ns == Some(50_000.0)));
        let second = live.take([(0, sample(3000, 150)), (1, sample(1000, 300))]);
        assert_eq!(
            second.iter().map(|view| (view.stream, view.per_s)).collect::<Vec<_>>(),
            [(Some(0), 25.0), (None, 25.0)]
        );
        assert!(live.take([(1, sample(1000, 300))]).is_empty());
    }
}
