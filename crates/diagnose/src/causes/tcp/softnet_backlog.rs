//! # softnet-backlog
//!
//! The receiver's backlog of packets waiting for a CPU overflows.
//!
//! **Shows**: `dropped` of softnet matches the TCP retransmissions: receive packet steering, veth, tunnels.
//!
//! **Mistaken for**: loss on the path.
//!
//! It is a symptom where the core that empties the backlog has no time left: a longer one would overflow as well, and what fills the core
//! is the cause.
//!
//! **Fix**: `net.core.netdev_max_backlog`; more cores if one is full.
//!
//! Source: kernel `net/core/dev.c`, `enqueue_to_backlog`.

use crate::causes::shared::rule::*;
use crate::causes::shared::tcp_stage::dropped_at;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "softnet-backlog",
    about: "the receiver's backlog of packets waiting for a CPU overflows",
    roles: &[Role::Receiver],
    needs: &[keys::SOFTNET_DROPPED, keys::CORE_NETDEV_MAX_BACKLOG],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["filter-drop", "random-loss", "path-policer"],
    fix,
    rank: 8,
    stages: &["softnet"],
    ..Cause::COMMON
};

/// A core with less left has none: sampling ticks leave the rest.
const NO_TIME_LEFT: f64 = 0.93;

fn assess(evidence: &TcpEvidence, _: Role) -> Ruling {
    let softnet = evidence.grew(Role::Receiver, keys::SOFTNET_DROPPED).filter(|n| *n > 0);
    let second = softnet.map(|n| counter(format!("softnet of the receiver dropped {n} packets")));
    let dropped = dropped_at(evidence, "softnet", second)?;
    let full = evidence.softirq_core(Role::Receiver).map(|core| core.softirq).filter(|share| *share >= NO_TIME_LEFT);
    refuted(full.map(|share| {
        let share = units::percent(share);
        format!("a core of the receiver spent {share} in soft interrupts: it could not empty a longer backlog either")
    }))?;
    Ok(dropped)
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    let now = evidence.number(role, keys::CORE_NETDEV_MAX_BACKLOG).unwrap_or(1000.0) as u64;
    let packets = now.saturating_mul(4).clamp(4096, 1 << 20);
    sysctl_fix(evidence, role, "raise the backlog limit", "net.core.netdev_max_backlog", packets.to_string())
}
