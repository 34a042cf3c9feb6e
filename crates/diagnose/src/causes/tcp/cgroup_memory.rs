//! # cgroup-memory
//!
//! The memory limit of an end's control group keeps its sockets small: the kernel lets no buffer grow and shrinks windows.
//!
//! **Shows**: the group reached its limit during the trial (`memory.events`), while the sender waits for a window or buffer below its own
//! maximum.
//!
//! **Mistaken for**: a maximum of `tcp_rmem` or `tcp_wmem` that is too small (then the buffer stands at it), `tcp_mem` (then all sockets of
//! the host shrink), a slow reader; a group that the cache of its files keeps at its limit: the kernel takes back what it needs, and leaves
//! the sockets alone.
//!
//! **Fix**: `memory.max` or `memory.high` of the group; of version 1, `memory.kmem.tcp.limit_in_bytes`.
//!
//! Source: kernel `Documentation/admin-guide/cgroup-v2.rst`, `memory.events`; `include/linux/memcontrol.h`,
//! `mem_cgroup_under_socket_pressure`; `mm/vmpressure.c`, `vmpressure_level_med`; for version 1 `mm/memcontrol.c`, `mem_cgroup_charge_skmem`.

use crate::causes::shared::rule::*;
use super::tcp_memory_pressure::held_below_maximum;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "cgroup-memory",
    about: "the memory limit of an end's control group keeps its sockets small",
    roles: &[Role::Sender, Role::Receiver],
    needs: &[
        keys::CGROUP_MEMORY_LIMIT,
        keys::CGROUP_MEMORY_SOCK,
        keys::CGROUP_MEMORY_EVENTS,
        keys::CGROUP_MEMORY_SCANNED,
        keys::CGROUP_MEMORY_RECLAIMED,
        keys::NETSTAT_TCP_EXT_TCP_MEMORY_PRESSURES_CHRONO,
        keys::TCP_RMEM_MAX,
        keys::TCP_WMEM_MAX,
    ],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["tcp-memory-pressure", "tcp-receive-window", "tcp-send-buffer", "receiver-app-slow", "path-capacity"],
    fix: |_, _| {
        advice("raise memory.max or memory.high of the control group (MemoryMax of the unit, --memory of the container, limits.memory of the pod; \
             memory.kmem.tcp.limit_in_bytes of version 1)")
    },
    rank: 8,
    ..Cause::COMMON
};

/// The kernel holds the sockets back for a second after each event: so many a second do it all the time.
const EACH_S: f64 = 1.0;

/// It does so where it could reclaim less than this part of the pages that it looked at (`vmpressure_level_med`, 60 % without success).
const RECLAIMED: f64 = 0.4;

fn assess(evidence: &TcpEvidence, role: Role) -> Ruling {
    let who = who(evidence, role);
    let (held, what) = held_below_maximum(evidence, role)?;
    let limit = found(evidence.number(role, keys::CGROUP_MEMORY_LIMIT), format!("no memory limit of a control group of {who} is known"))?;
    let Some(events) = evidence.grew(role, keys::CGROUP_MEMORY_EVENTS) else {
        return Err(cannot_tell(format!("memory.events of the control group of {who} could not be read")));
    };
    if (events as f64) < EACH_S * evidence.base.counted_s {
        return Err(contradicts(format!("the control group of {who} reached its memory limit {events} times")));
    }
    if evidence.grew(role, keys::NETSTAT_TCP_EXT_TCP_MEMORY_PRESSURES_CHRONO).is_some_and(|ms| ms > 0) {
        return Err(contradicts(format!("all TCP sockets of {who} are short of memory (tcp_mem)")));
    }
    let pages = evidence.grew(role, keys::CGROUP_MEMORY_SCANNED).zip(evidence.grew(role, keys::CGROUP_MEMORY_RECLAIMED));
    if let Some((scanned, reclaimed)) = pages
        && scanned > 0
        && reclaimed as f64 >= RECLAIMED * scanned as f64
    {
        return Err(contradicts(format!(
            "the kernel reclaimed {reclaimed} of {scanned} pages that it looked at: it holds sockets back below {}",
            units::percent(RECLAIMED)
        )));
    }
    let sock = evidence.number(role, keys::CGROUP_MEMORY_SOCK);
    let sock = sock.map_or_else(String::new, |bytes| format!("; its sockets hold {}", units::bytes(bytes as u64)));
    let witnesses = [
        Some(counter(format!("the {what} limited the sender {} of the time, below its own maximum", units::percent(held)))),
        Some(counter(format!(
            "the control group of {who} reached its memory limit of {} {events} times{sock}",
            units::bytes(limit as u64)
        ))),
        sock_share(evidence, role, limit),
        path_has_room(evidence),
    ];
    supports(held, witnesses)
}

/// That the sockets themselves are much of what fills the group.
fn sock_share(evidence: &TcpEvidence, role: Role, limit: f64) -> Option<narrows_model::Witness> {
    let part = evidence.number(role, keys::CGROUP_MEMORY_SOCK)? / limit.max(1.0);
    (part >= 0.1).then(|| parameter(format!("sockets take {} of the memory that the group may have", units::percent(part))))
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use super::*;

    /// A container of 64 MiB whose windows stay at 160 kB.
    fn truth(events: i64) -> Scene {
        let facts = with(ordinary_host(), fact("cgroup.memory.limit", 64_i64 << 20, Unit::Bytes));
        Scene {
            rwnd: 0.9,
            snd_wnd: 162_000,
            rcvbuf: 262_144,
            receiver_facts: with(facts, fact("cgroup.memory.sock", 2_i64 << 20, Unit::Bytes)),
            receiver_counts: vec![("cgroup.memory.events", events)],
            ..slow()
        }
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Receiver, scene, &[])
    }

    #[test]
    fn windows_that_a_group_without_memory_keeps_small_are_named() {
        let finding = named(&truth(900), &[], "cgroup-memory", Place::Server);
        assert!(finding.witnesses.iter().any(|it| it.says.contains("64 MiB 900 times")), "{finding:#?}");
    }

    #[test]
    fn a_limit_that_was_hardly_reached_and_other_shortages_are_not_it() {
        assert_contradicts(&of(&truth(2)), "2 times");
        assert_contradicts(&of(&Scene { rcvbuf: 33_554_432, ..truth(900) }), "is at its maximum");
        assert_contradicts(&of(&Scene { rcvbuf_filled: 0.9, ..truth(900) }), "unread data");
        assert_eq!(verdict(&full_path(Scene { rwnd: 0.0, snd_wnd: 12_000_000, ..truth(900) }), &[]).status, Status::Healthy);
        // A cache of files fills the group: what the kernel looks at, it takes back.
        let mut cache = truth(900);
        cache.receiver_counts.extend([("cgroup.memory.scanned", 50_000), ("cgroup.memory.reclaimed", 48_000)]);
        assert_contradicts(&of(&cache), "reclaimed 48000 of 50000 pages");
        let mut tight = truth(900);
        tight.receiver_counts.extend([("cgroup.memory.scanned", 50_000), ("cgroup.memory.reclaimed", 9_000)]);
        named(&tight, &[], "cgroup-memory", Place::Server);
        let mut short = truth(900);
        short.receiver_counts.push(("netstat.TcpExt.TCPMemoryPressuresChrono", 3_000));
        assert_contradicts(&of(&short), "tcp_mem");
        assert_contradicts(&of(&Scene { receiver_facts: ordinary_host(), ..truth(900) }), "is known");
        assert_cannot_tell(&of(&Scene { receiver_counts: Vec::new(), ..truth(900) }), "could not be read");
    }
}
