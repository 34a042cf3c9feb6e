//! The points of a live chart from the progress of a running trial.

use narrows_model::run::live::{HopHistory, LiveKind, LivePoint};
use narrows_model::{Flow, LoadPlan, LoadSample, Place, ProbePurpose, Progress, TraceRecord};
use std::collections::BTreeMap;

/// What the figures of a load are.
pub const fn kind(plan: &LoadPlan) -> LiveKind {
    match plan {
        LoadPlan::Udp(_) => LiveKind::Udp,
        LoadPlan::Rr(_) => LiveKind::Rr,
        _ => LiveKind::Tcp,
    }
}

/// All streams of one direction, as one end counts them so far.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    at_us: u64,
    done: f64,
    /// Sum and number of the delays, milliseconds.
    delay: (f64, f64),
    lost: Option<u64>,
}

impl Sum {
    fn add(&mut self, sample: &LoadSample) {
        let (delay, lost) = match sample {
            LoadSample::Tcp(it) => (it.tcp.rtt_us.map(|us| (us as f64 / 1e3, 1.0)), it.tcp.total_retrans),
            LoadSample::Udp(it) => (Some((it.jitter_ns / 1e6, 1.0)), Some(it.lost)),
            LoadSample::Rr(it) => {
                self.done += it.transactions as f64;
                (Some((it.latency_sum_ns as f64 / 1e6, it.transactions as f64)), Some(it.failures))
            }
            _ => (None, None),
        };
        self.done += sample.bytes() as f64 * 8.0;
        if let Some((sum, count)) = delay {
            self.delay = (self.delay.0 + sum, self.delay.1 + count);
        }
        self.lost = lost.map(|lost| lost + self.lost.unwrap_or(0)).or(self.lost);
    }
}

/// Makes points of progress.
#[derive(Debug, Default)]
pub struct Points(BTreeMap<(Flow, Place), Sum>);

impl Points {
    /// Takes the progress of one end; a point for each direction that went on.
    pub fn take(&mut self, place: Place, progress: &Progress) -> Vec<LivePoint> {
        let mut sums: BTreeMap<Flow, Sum> = BTreeMap::new();
        for stream in &progress.streams {
            let sum = sums.entry(stream.flow).or_default();
            sum.at_us = progress.at_us;
            sum.add(&stream.sample);
        }
        let mut points = Vec::new();
        for (flow, sum) in sums {
            let before = self.0.get(&(flow, place)).copied().unwrap_or_default();
            if sum.at_us <= before.at_us {
                continue;
            }
            let seconds = (sum.at_us - before.at_us) as f64 / 1e6;
            let transactions = progress.streams.iter().any(|it| matches!(it.sample, LoadSample::Rr(_)));
            let (total, count) = if transactions {
                (sum.delay.0 - before.delay.0, sum.delay.1 - before.delay.1)
            } else {
                // Only the sender of TCP has an RTT of the data, and only the receiver of UDP has delay variation.
                let tcp = progress.streams.iter().any(|it| matches!(it.sample, LoadSample::Tcp(_)));
                if place == (if tcp { flow.sender() } else { flow.receiver() }) { sum.delay } else { (0.0, 0.0) }
            };
            let shown = transactions || count > 0.0;
            points.push(LivePoint {
                flow,
                place,
                at_s: sum.at_us as f64 / 1e6,
                rate: (sum.done - before.done).max(0.0) / seconds,
                delay_ms: (count > 0.0).then(|| total / count),
                lost: sum.lost.filter(|_| shown),
            });
            self.0.insert((flow, place), sum);
        }
        points
    }
}

/// The RTTs of each hop's probes. Those that may still be answered are left out.
pub fn hops(record: &TraceRecord) -> HopHistory {
    let now_us = record.probes.iter().map(|probe| probe.sent_us).max().unwrap_or(0);
    let mut hops = HopHistory::new();
    for probe in record.probes.iter().filter(|probe| probe.purpose == ProbePurpose::Sample) {
        let rtt_ms = probe.answer.as_ref().map(|answer| answer.at_us.saturating_sub(probe.sent_us) as f64 / 1e3);
        if rtt_ms.is_some() || probe.sent_us.saturating_add(record.plan.wait_ms * 1000) < now_us {
            hops.entry(probe.ttl).or_default().push(rtt_ms);
        }
    }
    hops
}
