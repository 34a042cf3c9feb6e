//! The latency of a path without and with a load beside each other: what the load adds, round trips a minute, and whether it
//! fills a queue that is too long. Pure: two request/response trials in, a view out.

mod bufferbloat;
mod responsiveness;
mod seen;

use narrows_model::{LatencyUnderLoad, RrTrial};
use narrows_stats::Histogram;
use seen::{TRIMMED, latencies};

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

#[cfg(test)]
mod tests;
