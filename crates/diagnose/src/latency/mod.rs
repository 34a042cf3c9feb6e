//! The latency of a path without and with a load beside each other: what the load adds, round trips a minute, and whether it
//! fills a queue that is too long. Pure: two request/response trials in, a view out.

mod bufferbloat;
mod responsiveness;
mod seen;
pub(crate) mod working;

use narrows_model::{LatencyUnderLoad, RrTrial, words::units};
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
    let (idle_all, loaded_all) = (idle_all.distribution(), loaded_all.distribution());
    let (finding, why_none) = match bufferbloat::judge(idle_ns, loaded_ns, loaded) {
        Ok(finding) => (Some(finding), String::new()),
        Err(why) => (None, why + &faster(idle_all.p50, loaded_all.p50).unwrap_or_default()),
    };
    Ok(LatencyUnderLoad {
        idle_ns: idle_all,
        loaded_ns: loaded_all,
        increase_ns: loaded_ns - idle_ns,
        ratio: loaded_ns / idle_ns,
        idle_rpm,
        loaded_rpm,
        missing,
        finding,
        why_none,
    })
}

/// Medians that are closer are the same.
const SAME: f64 = 0.95;

/// Why a load can make requests faster. It takes nothing away from the path: cores that sleep between the requests of an idle path take
/// time to wake up, and a load keeps them awake (`Documentation/admin-guide/pm/cpuidle.rst`: exit latency).
#[allow(clippy::cast_precision_loss)] // a time within a trial
fn faster(idle_ns: u64, loaded_ns: u64) -> Option<String> {
    ((loaded_ns as f64) < SAME * idle_ns as f64).then(|| {
        format!(
            "; the median is even lower under load ({} against {} idle), usually because CPUs sleep between the requests of an idle path \
             and a load keeps them awake",
            units::micros(loaded_ns / 1000),
            units::micros(idle_ns / 1000)
        )
    })
}

#[cfg(test)]
mod tests;
