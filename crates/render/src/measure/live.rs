//! Interval lines while the trial runs: both ends' progress goes in as it comes, finished intervals come out.

use super::cutter::Cutter;
use super::interval::{Part, interval};
use narrows_model::run::measure::IntervalView;
use narrows_model::{Place, Progress, TcpPlan, TcpSample};

/// Cuts the progress of a running trial into intervals.
#[derive(Debug)]
pub struct Live {
    plan: TcpPlan,
    cutter: Cutter<TcpSample>,
}

impl Live {
    /// For a trial of this plan.
    #[must_use]
    pub fn new(plan: &TcpPlan) -> Self {
        Self { plan: plan.clone(), cutter: Cutter::new(plan, plan.interval_ms) }
    }

    pub(super) const fn plan(&self) -> &TcpPlan {
        &self.plan
    }

    /// Takes the progress of one end, and gives the intervals that it completes: each stream, then their sum.
    pub fn take(&mut self, at: Place, progress: &Progress) -> Vec<IntervalView> {
        let omit_us = self.plan.omit_ms.saturating_mul(1000);
        // A stream that has ended goes on with its last sample for as long as the others last.
        let mut progress = progress.clone();
        for stream in &mut progress.streams {
            if let Some(sample) = stream.sample.get_mut::<TcpSample>() {
                sample.at_us = progress.at_us;
            }
        }
        let mut views = Vec::new();
        self.cutter.push(at, &progress, |flow, streams| {
            let parts: Vec<Part<'_>> =
                streams.iter().map(|it| Part { bytes: it.received, sender: Some(it.sent) }).collect();
            let of = |stream, parts: &[Part<'_>]| interval(flow, stream, flow.receiver(), omit_us, parts);
            views.extend(streams.iter().zip(&parts).filter_map(|(stream, part)| of(Some(stream.id), &[*part])));
            views.extend(of(None, &parts));
        });
        views
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::{Direction, Flow, StreamProgress, TcpInfo};

    fn sample(mbytes: u64) -> TcpSample {
        TcpSample { bytes: mbytes * 1_000_000, ..TcpSample::default() }
    }

    /// What an end says at that time of these streams.
    fn says(at_ms: u64, flow: Flow, streams: &[(u32, TcpSample)]) -> Progress {
        let stream = |(id, sample): &(u32, TcpSample)| StreamProgress { id: *id, flow, sample: sample.clone().into() };
        Progress { at_us: at_ms * 1000, streams: streams.iter().map(stream).collect() }
    }

    #[test]
    fn streams_down_are_numbered_after_those_up() {
        let mut live = Live::new(&TcpPlan { streams: 2, direction: Direction::Both, ..TcpPlan::default() });
        let mut views = live.take(Place::Server, &says(1000, Flow::Up, &[(0, sample(100)), (1, sample(100))]));
        views.extend(live.take(Place::Client, &says(1000, Flow::Down, &[(2, sample(100)), (3, sample(100))])));
        let seen: Vec<_> = views.iter().map(|view| (view.flow, view.stream)).collect();
        let (up, down) = (Flow::Up, Flow::Down);
        assert_eq!(seen, [(up, Some(0)), (up, Some(1)), (up, None), (down, Some(2)), (down, Some(3)), (down, None)]);
        let other = says(2000, Flow::Down, &[(0, sample(200)), (9, sample(1))]);
        assert!(live.take(Place::Client, &other).is_empty(), "the plan does not have them");
    }

    #[test]
    fn an_interval_ends_when_every_stream_has_passed_it() {
        let mut live = Live::new(&TcpPlan { streams: 2, ..TcpPlan::default() });
        let mut take = |at, at_ms, streams: &[(u32, TcpSample)]| live.take(at, &says(at_ms, Flow::Up, streams));
        assert!(take(Place::Server, 0, &[(0, sample(0)), (1, sample(0))]).is_empty());
        assert!(take(Place::Server, 1000, &[(0, sample(60))]).is_empty());
        let tcp = TcpInfo { rtt_us: Some(35_000), total_retrans: Some(2), ..TcpInfo::default() };
        assert!(take(Place::Client, 1000, &[(0, TcpSample { tcp, ..sample(70) })]).is_empty());
        let views = take(Place::Server, 1000, &[(1, sample(65))]);
        assert_eq!(views.iter().map(|view| view.stream).collect::<Vec<_>>(), [Some(0), Some(1), None]);
        assert!((views[2].goodput_bps - 1e9).abs() < 1.0, "{:?}", views[2]);
        assert_eq!((views[0].columns.retransmits, views[0].columns.rtt_us), (Some(2), Some(35_000)));
        assert_eq!(views[2].columns.retransmits, None, "one sender is not known");
    }

    #[test]
    fn a_pause_makes_one_longer_interval_and_the_grid_goes_on() {
        let mut live = Live::new(&TcpPlan::default());
        let mut take = |at_ms, mbytes| live.take(Place::Server, &says(at_ms, Flow::Up, &[(0, sample(mbytes))]));
        let views = take(3400, 10);
        assert_eq!((views[0].from_s, views[0].to_s), (0.0, 3.4));
        assert!(take(3900, 20).is_empty());
        assert_eq!(take(4000, 30).len(), 2);
    }
}
