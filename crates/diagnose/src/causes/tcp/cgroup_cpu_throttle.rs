//! # cgroup-cpu-throttle
//!
//! The control group of a host has used up its CPU quota: its threads are throttled until the next period.
//!
//! **Shows**: `nr_throttled` and `throttled_usec` of the group grow during the trial, while the machine is partly idle.
//!
//! **Mistaken for**: a slow application, a slow reader, the path.
//!
//! **Fix**: `cpu.max` of the group.
//!
//! Source: kernel `Documentation/admin-guide/cgroup-v2.rst`, `cpu.stat`; `Documentation/scheduler/sched-bwc.rst`.

use crate::causes::shared::tcp::{path_has_room, who};
use crate::causes::shared::words::{advice, cannot_tell, contradicts, counter, parameter};
use crate::evidence::tcp::TcpEvidence;
use crate::judge::{Assessment, Cause, Evidence as _};
use crate::role::Role;
use narrows_model::{Fix, keys, words::units};

/// See the file's head.
pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "cgroup-cpu-throttle",
    about: "the CPU quota of a host's control group throttles its threads",
    roles: &[Role::Sender, Role::Receiver],
    needs: &[keys::CGROUP_CPU_QUOTA, keys::CGROUP_CPU_PERIODS, keys::CGROUP_CPU_THROTTLED, keys::CGROUP_CPU_THROTTLED_US],
    assess,
    look_alikes: &["app-core-saturated", "receiver-app-slow", "sender-app-slow", "path-capacity"],
    fix,
    rank: 8,
    ..Cause::COMMON
};

/// A group that is throttled for less of the time hardly slows a bulk transfer down.
const PART: f64 = 0.1;

fn assess(evidence: &TcpEvidence, role: Role) -> Assessment {
    let who = who(evidence, role);
    let Some(quota) = evidence.number(role, keys::CGROUP_CPU_QUOTA) else {
        return contradicts(format!("the control group of {who} has no CPU quota"));
    };
    let (Some(throttled_us), Some(times)) =
        (evidence.grew(role, keys::CGROUP_CPU_THROTTLED_US), evidence.grew(role, keys::CGROUP_CPU_THROTTLED))
    else {
        return cannot_tell(format!("the statistics of the control group of {who} could not be read"));
    };
    #[allow(clippy::cast_precision_loss)] // microseconds of one trial
    let part = throttled_us as f64 / 1e6 / evidence.base.whole_s.max(1e-3);
    if times == 0 || part < PART {
        return contradicts(format!("the CPU quota throttled {who} {} of the time", units::percent(part)));
    }
    let periods = evidence.grew(role, keys::CGROUP_CPU_PERIODS).unwrap_or(times);
    let witnesses = [
        Some(counter(format!("{who} was throttled in {times} of {periods} periods, {} of the time in \
            total", units::percent(part.min(1.0))))),
        Some(parameter(format!("the quota of its control group is {quota:.2} cores"))),
        path_has_room(evidence),
    ];
    Assessment::Supports { share: part.clamp(0.6, 1.0), witnesses: witnesses.into_iter().flatten().collect() }
}

fn fix(_: &TcpEvidence, _: Role) -> Fix {
    advice("raise cpu.max of the control group (CPUQuota of the unit, --cpus of the container, limits.cpu of the pod)")
}
