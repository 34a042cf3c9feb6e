//! # device-drop
//!
//! A device of the sender drops packets after its queueing discipline: the one on the route, or a bridge port, veth or NIC below it.
//!
//! **Shows**: `tx_dropped` or `tx_errors` of the device match the TCP retransmissions. The path has no fault.
//!
//! **Mistaken for**: loss on the path; drops of the queueing discipline (`qdisc-drop`), which a device above counts as its own, too;
//! the receiver's backlog, where a virtual pair hands packets over itself (`softnet-backlog`).
//!
//! **Fix**: for a TUN device a faster program or a longer queue, for a bridge port or veth the MTU of both ends, for a NIC its driver.
//!
//! Source: kernel `drivers/net/{tun,veth}.c`; `include/net/ip_tunnels.h`, `iptunnel_xmit_stats`.

use crate::causes::shared::layers::drops_below;
use crate::causes::shared::rule::*;
use crate::causes::shared::tcp_stage::counted;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "device-drop",
    about: "a device of the sender drops packets",
    roles: &[Role::Sender],
    needs: &[
        keys::NIC_NAME,
        keys::NIC_KIND,
        keys::NIC_TXQUEUELEN,
        keys::NIC_COUNTER_TX_DROPPED,
        keys::NIC_COUNTER_TX_ERRORS,
        keys::LAYER_NAME,
        keys::LAYER_TX_DROPPED,
        keys::LAYER_QDISC_DROPS,
        keys::SOFTNET_DROPPED,
        keys::HOST_BOOT,
    ],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["qdisc-drop", "softnet-backlog", "random-loss", "path-policer"],
    fix,
    rank: 8,
    stages: &["nic-tx"],
    device: true,
    ..Cause::COMMON
};

/// What the device on the route dropped, or one below it. A tunnel counts what was refused below it as dropped, too, so the largest
/// count stands for all, less what other causes are about: the queueing discipline of a device below, and, where a virtual pair leads
/// to the other host of the same machine, its backlog.
fn dropped(evidence: &TcpEvidence, role: Role) -> Option<u64> {
    let count = |role, key| evidence.grew(role, key).unwrap_or(0);
    let own = evidence.grew(role, keys::NIC_COUNTER_TX_DROPPED)? + count(role, keys::NIC_COUNTER_TX_ERRORS);
    let below = |family| drops_below(evidence, role, family);
    let one_machine = evidence.text(role, keys::HOST_BOOT).is_some()
        && evidence.text(role, keys::HOST_BOOT) == evidence.text(Role::Receiver, keys::HOST_BOOT);
    let backlog = if one_machine { count(Role::Receiver, keys::SOFTNET_DROPPED) } else { 0 };
    let counted_elsewhere = below(keys::LAYER_QDISC_DROPS).iter().map(|(_, n)| n).sum::<u64>() + backlog;
    let below = below(keys::LAYER_TX_DROPPED).iter().map(|(_, n)| *n).max().unwrap_or(0);
    Some(own.max(below).saturating_sub(counted_elsewhere))
}

/// The device that dropped: the lowest one that counts any.
fn at(evidence: &TcpEvidence, role: Role) -> String {
    let lowest = drops_below(evidence, role, keys::LAYER_TX_DROPPED).into_iter().rfind(|(_, n)| *n > 0);
    lowest.map_or_else(|| evidence.text(role, keys::NIC_NAME).unwrap_or("DEVICE").to_owned(), |(name, _)| name)
}

fn assess(evidence: &TcpEvidence, role: Role) -> Ruling {
    counted(evidence, dropped(evidence, role), &format!("tx_dropped of {}", at(evidence, role)), None)
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    let device = at(evidence, role);
    if evidence.text(role, keys::NIC_KIND) != Some("tun") {
        let words = format!("see what {device} counts (ip -s -s link, ethtool -S); a port or veth must carry the MTU of what is above it");
        return advice(words);
    }
    let longer = evidence.number(role, keys::NIC_TXQUEUELEN).map_or(2_000.0, |length| (length * 4.0).max(2_000.0));
    let words = format!("the program that reads {device} is too slow: give it a core of its own, or {device} a longer queue");
    command_fix(evidence, role, words, [format!("ip link set dev {device} txqueuelen {longer:.0}")])
}

#[cfg(test)]
mod tests {
    use crate::layers::tests::stack;
    use crate::testing::*;
    use super::*;

    /// A TUN device whose program does not keep up: 500 packets dropped, 520 segments sent again.
    fn truth() -> Scene {
        dropping(500, 0, 0)
    }

    fn dropping(tx_dropped: i64, below: i64, qdisc_below: i64) -> Scene {
        let layers = stack(&[("tun0", "tun", 1500, 0), ("v1", "veth", 1500, 0)]);
        let tun = with(ordinary_host(), fact("nic.kind", "tun", Unit::Text));
        Scene {
            goodput_bps: 200e6,
            rtt_us: 35_100,
            cwnd: 600,
            lost: 520,
            segments: 140_000,
            sender_facts: tun.into_iter().chain(layers).collect(),
            sender_counts: vec![
                ("nic.counter.tx_dropped", tx_dropped),
                ("layer.tx_dropped.1", below),
                ("layer.qdisc_drops.1", qdisc_below),
                ("qdisc.drops", qdisc_below),
            ],
            ..Scene::default()
        }
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Sender, scene, &[])
    }

    #[test]
    fn drops_of_the_device_that_account_for_the_loss_are_named() {
        let finding = named(&truth(), &[], "device-drop", Place::Client);
        assert_eq!(finding.fix.commands[0].run, "ip link set dev eth0 txqueuelen 2000");
    }

    #[test]
    fn drops_of_a_device_below_are_charged_to_it() {
        let finding = named(&dropping(500, 500, 0), &[], "device-drop", Place::Client);
        assert!(finding.witnesses.iter().any(|it| it.says == "tx_dropped of v1 grew by 500"), "{finding:#?}");
    }

    #[test]
    fn what_the_queue_below_a_tunnel_dropped_is_the_queues() {
        assert_contradicts(&of(&dropping(500, 0, 500)), "did not grow");
        named(&dropping(500, 0, 500), &[], "qdisc-drop", Place::Client);
    }

    #[test]
    fn what_the_backlog_of_the_other_host_of_one_machine_dropped_is_not_the_devices() {
        let boot = |facts| with(facts, fact("host.boot", "x", Unit::Text));
        let scene = Scene {
            sender_facts: boot(truth().sender_facts),
            receiver_facts: boot(ordinary_host()),
            receiver_counts: vec![("softnet.dropped", 500)],
            ..truth()
        };
        assert_contradicts(&of(&scene), "did not grow");
    }

    #[test]
    fn few_drops_are_not_the_cause() {
        assert_contradicts(&of(&dropping(100, 0, 0)), "grew by only 100");
        assert_contradicts(&of(&dropping(0, 0, 0)), "did not grow");
        assert_contradicts(&of(&Scene { rwnd: 0.7, ..truth() }), "congestion window");
        assert_cannot_tell(&of(&Scene { sender_counts: Vec::new(), ..truth() }), "could not be read");
    }
}
