//! # softnet-backlog
//!
//! The receiver's backlog of packets waiting for a CPU overflows: they are dropped before any protocol sees them.
//!
//! **Shows**: the column `dropped` of `softnet_stat` grows, the reason is `CPU_BACKLOG`; tunnels, virtual interfaces,
//! loopback and RPS use it, a plain NIC does not.
//!
//! **Mistaken for**: loss on the path; socket drops (UDP counters do not change here).
//!
//! **Fix**: `net.core.netdev_max_backlog`; more cores (RPS) if one is full.
//!
//! Source: kernel `net/core/dev.c`, `enqueue_to_backlog`.

use crate::causes::shared::rule::*;
use crate::causes::shared::udp::{at_stage, full_core, rounded, says_the_same};

pub const CAUSE: Cause<UdpEvidence> = Cause {
    id: "softnet-backlog",
    about: "the receiver's backlog of packets waiting for a CPU overflows",
    roles: &[Role::Receiver],
    needs: &[
        keys::SOFTNET_DROPPED,
        keys::DROP_REASON_CPU_BACKLOG,
        keys::NIC_COUNTER_RX_DROPPED,
        keys::CORE_NETDEV_MAX_BACKLOG,
    ],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["udp-receive-buffer", "filter-drop", "random-loss"],
    fix,
    stages: &["softnet"],
    ..Cause::COMMON
};

fn assess(evidence: &UdpEvidence, role: Role) -> Ruling {
    let (dropped, share, first) = at_stage(evidence, "softnet", None)?;
    let told = evidence.base.accounting.one_kernel.then_some(evidence.base.accounting.unsent.no_buffers);
    let witnesses = [
        Some(first),
        says_the_same(evidence, dropped, evidence.reason(role, "CPU_BACKLOG"), "the reason CPU_BACKLOG"),
        says_the_same(
            evidence,
            dropped,
            evidence.grew(role, keys::NIC_COUNTER_RX_DROPPED),
            "rx_dropped of the receiver's device",
        ),
        told.filter(|told| *told > 0 && told.saturating_mul(2) >= dropped)
            .map(|told| counter(format!("{told} send calls failed with ENOBUFS: the interfaces are a veth pair"))),
    ];
    supports(share, witnesses)
}

fn fix(evidence: &UdpEvidence, role: Role) -> Fix {
    if let Some(why) = full_core(evidence, role) {
        return advice(format!(
            "{why}: distribute the packets over more cores (RPS, more queues); a longer queue only adds delay"
        ));
    }
    // What arrives in 20 ms at the measured rate, and twice what overflowed.
    let now = evidence.number(role, keys::CORE_NETDEV_MAX_BACKLOG).unwrap_or(0.0);
    let packets = rounded((evidence.base.offered_pps() * 0.02).max(2.0 * now), 1 << 20).max(4096);
    let advice = "raise the backlog limit".to_owned();
    sysctl_fix(evidence, role, advice, "net.core.netdev_max_backlog", packets.to_string())
}

#[cfg(test)]
mod tests {
    use crate::testing::udp::*;
    use narrows_model::load::host::CpuTimes;
    use super::*;

    fn truth() -> UdpScene {
        UdpScene { died: Died { softnet: 8_000, ..Died::default() }, ..UdpScene::default() }
    }

    #[test]
    fn a_backlog_that_overflows_is_named_at_the_receiver_alone() {
        for one_kernel in [false, true] {
            let finding = named(&UdpScene { one_kernel, ..truth() }, "softnet-backlog", Place::Server);
            assert_eq!(finding.fix.commands[0].run, "sysctl -w net.core.netdev_max_backlog=4096");
            rejects(&finding, "udp-receive-buffer", "nothing was dropped");
        }
    }

    #[test]
    fn a_full_core_needs_other_cores_and_no_queue() {
        let full = CpuTimes { softirq_us: 7_900_000, idle_us: 100_000, ..CpuTimes::default() };
        let finding = named(&UdpScene { receiver_core: full, ..truth() }, "softnet-backlog", Place::Server);
        assert!(finding.fix.settings.is_empty() && finding.fix.advice.contains("more cores"), "{:?}", finding.fix);
    }

    #[test]
    fn other_drops_are_other_causes() {
        let of = |scene: &UdpScene| assessment(&CAUSE, Role::Receiver, scene);
        assert_contradicts(
            &of(&UdpScene { died: Died { buffer: 8_000, ..Died::default() }, ..truth() }),
            "nothing was dropped",
        );
        assert_cannot_tell(&of(&UdpScene { hidden: &["softnet"], ..truth() }), "could not be read");
        suspected(&UdpScene { watched: false, hidden: &["nic.counter.rx_dropped"], ..truth() }, "softnet-backlog");
    }
}
