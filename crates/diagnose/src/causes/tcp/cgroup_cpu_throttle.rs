//! # cgroup-cpu-throttle
//!
//! The control group of a host has used up its CPU quota: its threads are throttled until the next period.
//!
//! **Shows**: `nr_throttled` and `throttled_usec` of the group grow during the trial, and the connection waits for its thread, or the group
//! is throttled in nearly every period while the path has room.
//!
//! **Mistaken for**: a slow application, a slow reader, a full core, the path. A group may be throttled for another of its processes, or
//! so briefly that the socket buffers bridge the gap: then the connection does not wait.
//!
//! **Fix**: `cpu.max` of the group.
//!
//! Source: kernel `Documentation/admin-guide/cgroup-v2.rst`, `cpu.stat`; `Documentation/scheduler/sched-bwc.rst`.

use crate::causes::shared::bound::cpu_innocent;
use crate::causes::shared::cpu::peer_waits;
use crate::causes::shared::rule::*;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "cgroup-cpu-throttle",
    about: "the CPU quota of a host's control group throttles its threads",
    roles: &[Role::Sender, Role::Receiver],
    needs: &[
        keys::CGROUP_CPU_QUOTA,
        keys::CGROUP_CPU_PERIODS,
        keys::CGROUP_CPU_THROTTLED,
        keys::CGROUP_CPU_THROTTLED_US,
    ],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["app-core-saturated", "receiver-app-slow", "sender-app-slow", "cpu-contention", "path-capacity"],
    fix: |_, _| advice("raise cpu.max of the control group (CPUQuota of the unit, --cpus of the container, limits.cpu of the pod)"),
    rank: 8,
    without,
    ..Cause::COMMON
};

/// A group that is throttled for less of the time hardly slows a bulk transfer down.
const PART: f64 = 0.1;

/// A group that is throttled in so many of its periods has no CPU time left for more, whatever the connection shows.
const ALWAYS: f64 = 0.9;

/// The part of the time that the group was throttled: the kernel sums it over the CPUs that its threads ran on.
fn throttled(evidence: &TcpEvidence, role: Role) -> Option<f64> {
    let us = evidence.grew(role, keys::CGROUP_CPU_THROTTLED_US)?;
    Some(us as f64 / 1e6 / evidence.base.whole_s.max(1e-3))
}

fn assess(evidence: &TcpEvidence, role: Role) -> Ruling {
    let who = who(evidence, role);
    let quota = found(evidence.number(role, keys::CGROUP_CPU_QUOTA), format!("the control group of {who} has no CPU quota"))?;
    let (Some(part), Some(times)) = (throttled(evidence, role), evidence.grew(role, keys::CGROUP_CPU_THROTTLED)) else {
        return Err(cannot_tell(format!("the statistics of the control group of {who} could not be read")));
    };
    if times == 0 || part < PART {
        return Err(contradicts(format!("the CPU quota throttled {who} {} of the time", units::percent(part))));
    }
    refuted(cpu_innocent(evidence))?;
    let periods = evidence.grew(role, keys::CGROUP_CPU_PERIODS).unwrap_or(times);
    if evidence.base.shares.is_none() {
        return Err(cannot_tell("the sender's kernel does not report what limited it"));
    }
    let (waits, room) = (peer_waits(evidence, role).map(|(_, witness)| witness), path_has_room(evidence));
    let always = times as f64 >= ALWAYS * periods as f64 && room.is_some();
    if waits.is_none() && !always {
        return Err(contradicts(format!("{who} was throttled, but the connection did not wait for its thread")));
    }
    let first = counter(format!(
        "{who} was throttled in {times} of {periods} periods, {} of the time in total; the quota of its control group is {quota:.2} cores",
        units::percent(part.min(1.0))
    ));
    let witnesses = [Some(first), waits, room];
    supports(part.clamp(0.6, 1.0), witnesses)
}

/// Without the quota the threads run all the time, as they do now until they are throttled, each on a core of its own at most. A group that
/// is throttled on several CPUs at once shows more throttled time than there is.
fn without(evidence: &TcpEvidence, role: Role) -> Option<(f64, [f64; 2])> {
    let part = throttled(evidence, role).filter(|part| (PART..0.95).contains(part))?;
    let goodput = evidence.goodput_bps();
    let most = evidence.capacity_goodput_bps().map_or(f64::INFINITY, |bps| bps.max(goodput));
    let used = evidence.end(role).and_then(|end| end.threads_share).filter(|cores| *cores > 0.0);
    let threads = used.map_or(f64::INFINITY, |cores| (goodput * evidence.base.streams as f64 / cores).max(goodput));
    let bps = (goodput / (1.0 - part)).min(most).min(threads);
    Some((bps, [goodput, bps]))
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use super::*;

    /// A reader whose group may use half a core, and is throttled for this part of eight seconds.
    fn truth(part: f64) -> Scene {
        let counts = [
            ("cgroup.cpu.periods", 80),
            ("cgroup.cpu.throttled", 78),
            ("cgroup.cpu.throttled_us", (part * 8e6) as i64),
        ];
        Scene {
            rwnd: 0.5,
            receiver_thread: 0.45,
            receiver_core: core(0.05, 0.45),
            receiver_facts: with(ordinary_host(), fact("cgroup.cpu_quota", 0.5, Unit::Fraction)),
            receiver_counts: counts.to_vec(),
            ..slow()
        }
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Receiver, scene, &[])
    }

    #[test]
    fn a_reader_that_its_quota_throttles_is_named_with_the_gain() {
        let finding = named(&truth(0.5), &[], "cgroup-cpu-throttle", Place::Server);
        assert!(
            finding.witnesses.iter().any(|it| it.says.contains("78 of 80 periods, 50 % of the time")),
            "{finding:#?}"
        );
        assert_eq!(finding.prediction.expect("half of the time is gone").bps, 74e6);
    }

    #[test]
    fn a_writer_that_its_quota_throttles_is_named() {
        let at = truth(0.5);
        let scene = Scene {
            rwnd: 0.0,
            busy: 0.5,
            sender_thread: 0.45,
            sender_facts: at.receiver_facts,
            sender_counts: at.receiver_counts,
            ..slow()
        };
        named(&scene, &[], "cgroup-cpu-throttle", Place::Client);
    }

    #[test]
    fn a_group_for_which_the_connection_does_not_wait_is_not_why() {
        assert_contradicts(&of(&truth(0.05)), "5.0 % of the time");
        // Another process of the group used up the quota, or the buffers carry the connection on.
        let mut at_times = Scene { rwnd: 0.0, ..truth(0.3) };
        at_times.receiver_counts[1].1 = 40;
        assert_contradicts(&of(&at_times), "did not wait for its thread");
        assert_contradicts(&of(&Scene { receiver_facts: ordinary_host(), ..truth(0.5) }), "no CPU quota");
        assert_contradicts(&of(&full_path(truth(0.5))), "capacity of the slower link");
        assert_eq!(verdict(&full_path(truth(0.5)), &[]).status, Status::Healthy);
        // A window that allows no more, whatever the quota.
        let window = Scene {
            rwnd: 0.97,
            snd_wnd: 162_000,
            rcvbuf: 262_144,
            receiver_facts: with(truth(0.5).receiver_facts, fact("tcp.rmem.max", 262_144_i64, Unit::Bytes)),
            ..truth(0.5)
        };
        assert_contradicts(&of(&window), "tcp-receive-window limited the sender");
    }

    #[test]
    fn what_cannot_be_read_leaves_it_open() {
        assert_cannot_tell(
            &of(&Scene { receiver_counts: Vec::new(), ..truth(0.5) }),
            "statistics of the control group",
        );
        assert_cannot_tell(
            &of(&Scene { hidden: &[Hidden::LimitedTimes], ..truth(0.5) }),
            "does not report what limited it",
        );
    }
}
