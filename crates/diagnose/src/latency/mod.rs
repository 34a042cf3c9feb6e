//! The latency of a path without and with a load beside each other: what the load adds, round trips a minute, and whether it
//! fills a queue that is too long. Pure: two request/response trials in, a view out.

mod bufferbloat;
mod responsiveness;

use narrows_model::{Flow, LatencyUnderLoad, RrTrial, TcpEndRecord};
use narrows_stats::Histogram;

/// The part of the latencies that a figure is the mean of: its fastest 95 %, as in draft-ietf-ippm-responsiveness (`TMP`).
const TRIMMED: f64 = 0.95;

/// Compares the trial of an idle path with that of a loaded one.
///
/// # Errors
/// Why they cannot be compared, in a sentence.
pub fn under_load(idle: RrTrial<'_>, loaded: RrTrial<'_>) -> Result<LatencyUnderLoad, String> {
    if idle.plan.load.is_some() || loaded.plan.load.is_none() {
        return Err("of the two trials the first must be without a load and the second with one".to_owned());
    }
    let (idle_all, loaded_all) = (latencies(idle), latencies(loaded));
    let mean = |all: &Histogram, which| {
        let mean = all.trimmed_mean(TRIMMED).filter(|mean| *mean > 0.0);
        mean.ok_or_else(|| format!("no transaction of the {which} path was completed in the counted part"))
    };
    let (idle_ns, loaded_ns) = (mean(&idle_all, "idle")?, mean(&loaded_all, "loaded")?);
    let mut missing = Vec::new();
    let mut rpm = |trial, which| match responsiveness::of(trial) {
        Ok(figure) => Some(figure),
        Err(why) => {
            missing.push(format!("round trips a minute of the {which} path: {why}"));
            None
        }
    };
    let (idle_rpm, loaded_rpm) = (rpm(idle, "idle"), rpm(loaded, "loaded"));
    let (finding, why_none) = match bufferbloat::judge(idle_ns, loaded_ns, loaded) {
        Ok(finding) => (Some(finding), String::new()),
        Err(why) => (None, why),
    };
    Ok(LatencyUnderLoad {
        idle_ns: idle_all.distribution(),
        loaded_ns: loaded_all.distribution(),
        increase_ns: loaded_ns - idle_ns,
        ratio: loaded_ns / idle_ns,
        idle_rpm,
        loaded_rpm,
        missing,
        finding,
        why_none,
    })
}

/// The latencies of all streams together.
fn latencies(trial: RrTrial<'_>) -> Histogram {
    let mut all = Histogram::new();
    for stream in &trial.client.streams {
        all.merge(&Histogram::from_distribution(&stream.latency_ns));
    }
    all
}

/// What the kernels of the load's senders saw: of each flow its counted samples' smoothed RTTs, and the smallest RTT.
#[derive(Debug, Clone, PartialEq)]
struct LoadRtt {
    /// Trimmed mean of the smoothed RTTs, ns.
    mean_ns: f64,
    /// The smallest that any sender saw, ns.
    min_ns: f64,
}

/// `None` where no sender's kernel told.
#[allow(clippy::cast_precision_loss)]
fn load_rtt(trial: RrTrial<'_>) -> Option<LoadRtt> {
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
            for sample in stream.samples.iter().filter(|sample| sample.at_us > omit_us.max(1)) {
                if let Some(rtt) = sample.tcp.rtt_us.filter(|rtt| *rtt > 0) {
                    all.record(rtt.saturating_mul(1000));
                }
                if let Some(min) = sample.tcp.min_rtt_us.filter(|min| (1..u64::from(u32::MAX)).contains(min)) {
                    min_us = Some(min_us.map_or(min, |known: u64| known.min(min)));
                }
            }
        }
    }
    Some(LoadRtt { mean_ns: all.trimmed_mean(TRIMMED)?, min_ns: min_us? as f64 * 1000.0 })
}

#[cfg(test)]
mod tests;
