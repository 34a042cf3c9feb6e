//! Interval lines while the trial runs: both ends' progress goes in as it comes, finished intervals come out.

use super::part::{Part, interval};
use crate::measure::cutter::Cutter;
use narrows_model::run::measure_udp::UdpInterval;
use narrows_model::{Place, Progress, UdpPlan, UdpSample};

/// Cuts the progress of a running trial into intervals.
#[derive(Debug)]
pub struct Live {
    plan: UdpPlan,
    cutter: Cutter<UdpSample>,
}

impl Live {
    /// For a trial of this plan.
    #[must_use]
    pub fn new(plan: &UdpPlan) -> Self {
        Self { plan: plan.clone(), cutter: Cutter::new(plan, plan.interval_ms) }
    }

    pub(super) const fn plan(&self) -> &UdpPlan {
        &self.plan
    }

    /// Takes the progress of one end, and gives the intervals that it completes: each stream, then their sum.
    pub fn take(&mut self, at: Place, progress: &Progress) -> Vec<UdpInterval> {
        let omit_us = self.plan.omit_ms.saturating_mul(1000);
        let mut views = Vec::new();
        self.cutter.push(at, progress, |flow, streams| {
            let parts: Vec<Part<'_>> =
                streams.iter().map(|it| Part { sent: Some(it.sent), received: Some(it.received) }).collect();
            let of = |stream, parts: &[Part<'_>]| interval(flow, stream, omit_us, parts);
            views.extend(streams.iter().zip(&parts).filter_map(|(stream, part)| of(Some(stream.id), &[*part])));
            views.extend(of(None, &parts));
        });
        views
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::{Flow, StreamProgress};

    fn says(flow: Flow, streams: &[(u32, u64, u64)]) -> Progress {
        let stream = |(id, at_ms, datagrams): &(u32, u64, u64)| StreamProgress {
            id: *id,
            flow,
            sample: UdpSample {
                at_us: at_ms * 1000,
                datagrams: *datagrams,
                bytes: datagrams * 1000,
                ..UdpSample::default()
            }
            .into(),
        };
        Progress { at_us: 0, streams: streams.iter().map(stream).collect() }
    }

    #[test]
    fn an_interval_ends_when_every_stream_has_passed_it() {
        let mut live = Live::new(&UdpPlan { streams: 2, ..UdpPlan::default() });
        assert!(live.take(Place::Client, &says(Flow::Up, &[(0, 990, 99), (1, 990, 99)])).is_empty());
        assert!(live.take(Place::Server, &says(Flow::Up, &[(0, 1000, 90), (1, 900, 90)])).is_empty());
        let views = live.take(Place::Server, &says(Flow::Up, &[(1, 1000, 100)]));
        assert_eq!(views.iter().map(|view| view.stream).collect::<Vec<_>>(), [Some(0), Some(1), None]);
        let all = &views[2];
        assert_eq!(all.received.expect("both receivers").datagrams, 190);
        assert!((all.sent.expect("both senders").pps - 200.0).abs() < 1e-6, "by the sender's own time");
        // The next interval begins where this one ended.
        let views = live.take(Place::Server, &says(Flow::Up, &[(0, 2000, 190), (1, 2000, 200)]));
        assert_eq!(views[2].received.expect("both receivers").datagrams, 200);
        assert_eq!(views[2].sent, None, "the sender said nothing new");
    }

    #[test]
    fn what_the_plan_does_not_have_is_passed_over() {
        let mut live = Live::new(&UdpPlan::default());
        assert!(live.take(Place::Server, &says(Flow::Down, &[(0, 5000, 1)])).is_empty());
        assert_eq!(live.take(Place::Server, &says(Flow::Up, &[(0, 5000, 1), (9, 5000, 1)])).len(), 2);
    }
}
