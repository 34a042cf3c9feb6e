//! The latency of a path without and with a load beside each other: what the load adds, round trips a minute, and whether it
//! fills a queue that is too long. Pure: two request/response trials in, a view out.

mod bufferbloat;
mod responsiveness;
mod seen;
pub(crate) mod working;

pub use bufferbloat::{is_long_queue, takes_longer};

use narrows_model::words::figures::{self, float};
use narrows_model::{LatencyUnderLoad, RrTrial};
use seen::latencies;

/// Compares the trial of an idle path with that of a loaded one.
/// Errors: why they cannot be compared, in a sentence.
pub fn under_load(idle: RrTrial<'_>, loaded: RrTrial<'_>) -> Result<LatencyUnderLoad, String> {
    if idle.plan.load.is_some() || loaded.plan.load.is_none() {
        return Err("of the two trials the first must be without a load and the second with one".to_owned());
    }
    let of = |trial, which| {
        let all = Some(latencies(trial).distribution()).filter(|all| all.p50 > 0);
        all.ok_or_else(|| format!("no transaction of the {which} path was completed in the counted part"))
    };
    let (idle_all, loaded_all) = (of(idle, "idle")?, of(loaded, "loaded")?);
    let (idle_ns, loaded_ns) = (float(idle_all.p50), float(loaded_all.p50));
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
        Err(why) => (None, why + &faster(idle_ns, loaded_ns).unwrap_or_default()),
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
fn faster(idle_ns: f64, loaded_ns: f64) -> Option<String> {
    (loaded_ns < SAME * idle_ns).then(|| {
        format!(
            "; it is even lower under load ({}), usually because CPUs sleep between the requests of an idle path \
             and a load keeps them awake",
            time(loaded_ns)
        )
    })
}

/// As the table of the latencies has it.
fn time(ns: f64) -> String {
    figures::nanos(ns.round().max(0.0) as u64)
}

#[cfg(test)]
mod tests;
