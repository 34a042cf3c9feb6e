//! What a trial of requests and responses saw: latencies, and the RTT of the load beside it.

use narrows_model::{Flow, RrTrial, TcpEndRecord};
use narrows_stats::Histogram;

/// The part of the latencies that a figure is the mean of: its fastest 95 %, as in draft-ietf-ippm-responsiveness (`TMP`).
pub(super) const TRIMMED: f64 = 0.95;

/// The latencies of all streams together.
pub(super) fn latencies(trial: RrTrial<'_>) -> Histogram {
    let mut all = Histogram::new();
    for stream in &trial.client.streams {
        all.merge(&Histogram::from_distribution(&stream.latency_ns));
    }
    all
}

/// What the kernels of the load's senders saw: of each flow its counted samples' smoothed RTTs, and the smallest RTT.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LoadRtt {
    /// Trimmed mean of the smoothed RTTs, ns.
    pub(super) mean_ns: f64,
    /// The smallest that any sender saw, ns.
    pub(super) min_ns: f64,
}

/// `None` where no sender's kernel told.
pub(super) fn load_rtt(trial: RrTrial<'_>) -> Option<LoadRtt> {
    let plan = trial.plan.load.as_ref()?;
    let sender = |flow: &Flow| -> Option<(&TcpEndRecord, Flow)> {
        let end = match flow {
            Flow::Up => &trial.client.load,
            Flow::Down => &trial.server.load,
        };
        Some((end.as_ref()?, *flow))
    };
    let omit_us = trial.plan.omit_ms.saturating_mul(1000);
    let mut all = Histogram::new();
    let mut min_us = None;
    for (end, flow) in plan.flows().iter().filter_map(sender) {
        for stream in end.streams.iter().filter(|stream| stream.flow == flow) {
            let from_us = omit_us.max(1).saturating_add(1);
            stream.load_rtts_us(from_us).for_each(|rtt| all.record(rtt.saturating_mul(1000)));
            for sample in stream.samples.iter().filter(|sample| sample.at_us >= from_us) {
                if let Some(min) = sample.tcp.min_rtt_us.filter(|min| (1..u64::from(u32::MAX)).contains(min)) {
                    min_us = Some(min_us.map_or(min, |known: u64| known.min(min)));
                }
            }
        }
    }
    Some(LoadRtt { mean_ns: all.trimmed_mean(TRIMMED)?, min_ns: min_us? as f64 * 1000.0 })
}
