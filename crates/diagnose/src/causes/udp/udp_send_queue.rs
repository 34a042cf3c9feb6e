//! # udp-send-queue
//!
//! The sending socket or its interface rejects datagrams: they never leave the host and are not network loss.
//!
//! **Shows**: `EAGAIN` or `ENOBUFS` at the send call, `SndbufErrors` of UDP, drops of the interface; the loss equals
//! these datagrams.
//!
//! **Mistaken for**: loss on the path; drops of the queueing discipline (it counts them itself: `qdisc-drop`).
//!
//! **Fix**: `net.core.wmem_max` and a larger `SO_SNDBUF` if the buffer is full; a longer interface queue, or a lower
//! pace.
//!
//! Source: udp(7), kernel `net/ipv4/udp.c`, `udp_send_skb`.

use crate::causes::shared::rule::*;
use crate::causes::shared::udp::{PART, rounded, says_the_same};

pub const CAUSE: Cause<UdpEvidence> = Cause {
    id: "udp-send-queue",
    about: "the sending socket or its interface rejects datagrams",
    roles: &[Role::Sender],
    needs: &[
        keys::SNMP_UDP_SNDBUF_ERRORS,
        keys::SNMP6_UDP6_SNDBUF_ERRORS,
        keys::SNMP_IP_OUT_DISCARDS,
        keys::CORE_WMEM_MAX,
        keys::NIC_NAME,
        keys::NIC_TXQUEUELEN,
    ],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["qdisc-drop", "random-loss", "filter-drop"],
    fix,
    stages: &["unsent", "send-buffer", "nic-tx"],
    ..Cause::COMMON
};

/// What the socket refused for want of room, and what the device dropped: with the datagrams that are too large or filtered
/// left out, which are other causes.
fn refused(evidence: &UdpEvidence) -> (u64, u64, u64) {
    let unsent = evidence.base.accounting.unsent;
    let buffers = unsent.no_buffers.min(evidence.base.dropped("unsent"));
    (unsent.would_block, buffers, evidence.base.dropped("nic-tx"))
}

fn assess(evidence: &UdpEvidence, role: Role) -> Ruling {
    let (would_block, buffers, device) = refused(evidence);
    let missing = evidence.base.missing();
    let dropped = would_block.saturating_add(buffers).saturating_add(device);
    if dropped == 0 {
        return Err(contradicts("the socket and the interface accepted every datagram"));
    }
    let share = (dropped as f64 / missing.max(1) as f64).min(1.0);
    if share < PART {
        return Err(contradicts(format!("only {dropped} of {missing} datagrams were rejected at the sender")));
    }
    let first = counter(format!(
        "packet ledger: {dropped} of {missing} missing datagrams were not sent ({would_block} EAGAIN, {buffers} \
        ENOBUFS, {device} dropped by the interface)"
    ));
    let key = if evidence.base.accounting.ipv6 { keys::SNMP6_UDP6_SNDBUF_ERRORS } else { keys::SNMP_UDP_SNDBUF_ERRORS };
    let same = |key, what| says_the_same(evidence, dropped, evidence.grew(role, key), what);
    let gaps = would_block > 0 && evidence.base.dropped("path") == 0;
    let witnesses = [
        Some(first),
        same(key, "SndbufErrors of the sender's UDP")
            .or_else(|| same(keys::SNMP_IP_OUT_DISCARDS, "OutDiscards of the sender's IP")),
        gaps.then(|| counter("the loss equals these datagrams: the path lost nothing")),
    ];
    supports(share, witnesses)
}

fn fix(evidence: &UdpEvidence, role: Role) -> Fix {
    let (would_block, buffers, device) = refused(evidence);
    if would_block > buffers.saturating_add(device) {
        // Room for a pause of the device of 20 ms, in kernel memory; what is asked for is half of it.
        let bytes = rounded(evidence.base.offered_bps / 8.0 * 0.02, 1 << 30).max(1 << 20);
        let advice = format!("give the sending socket a buffer of {} (SO_SNDBUF)", units::bytes(bytes));
        return sysctl_fix(evidence, role, advice, "net.core.wmem_max", bytes.to_string());
    }
    let device = evidence.text(role, keys::NIC_NAME).unwrap_or("DEVICE");
    let longer = evidence.number(role, keys::NIC_TXQUEUELEN).map_or(10_000.0, |length| (length * 4.0).max(10_000.0));
    let advice = format!(
        "pace the sender (smaller bursts), or give {device} a longer queue: it rejected {} datagrams",
        buffers.saturating_add(evidence.base.dropped("nic-tx"))
    );
    command_fix(evidence, role, advice, [format!("ip link set dev {device} txqueuelen {longer:.0}")])
}

#[cfg(test)]
mod tests {
    use crate::testing::udp::*;
    use narrows_model::load::udp::record::Unsent;
    use super::*;

    fn truth() -> UdpScene {
        let refused = Unsent { would_block: 6_000, ..Unsent::default() };
        UdpScene {
            died: Died { refused, ..Died::default() },
            sender_counts: vec![("snmp.Udp.SndbufErrors", 6_000)],
            ..UdpScene::default()
        }
    }

    #[test]
    fn a_full_send_buffer_is_named() {
        let finding = named(&truth(), "udp-send-queue", Place::Client);
        assert!(finding.fix.commands[0].run.starts_with("sysctl -w net.core.wmem_max="), "{:?}", finding.fix);
        rejects(&finding, "qdisc-drop", "nothing was dropped");
        rejects(&finding, "random-loss", "nothing was dropped");
    }

    #[test]
    fn a_device_that_drops_is_named_and_gets_a_longer_queue() {
        let scene = UdpScene { died: Died { device: 5_000, ..Died::default() }, ..UdpScene::default() };
        let finding = named(&scene, "udp-send-queue", Place::Client);
        assert_eq!(finding.fix.commands[0].run, "ip link set dev eth0 txqueuelen 10000");
    }

    #[test]
    fn drops_of_the_queueing_discipline_and_of_the_filter_are_other_causes() {
        let of = |scene: &UdpScene| assessment(&CAUSE, Role::Sender, scene);
        let died = Died { qdisc_told: 6_000, ..Died::default() };
        assert_contradicts(&of(&UdpScene { died, ..UdpScene::default() }), "the socket and the interface accepted every datagram");
        let refused = Unsent { not_permitted: 6_000, ..Unsent::default() };
        assert_contradicts(
            &of(&UdpScene { died: Died { refused, ..Died::default() }, ..UdpScene::default() }),
            "the socket and the interface accepted every datagram",
        );
        let died = Died { path: 90_000 / 2, device: 100, ..Died::default() };
        assert_contradicts(&of(&UdpScene { died, ..UdpScene::default() }), "only 100 of 45100");
    }

    #[test]
    fn errors_of_the_device_without_another_counter_are_a_suspicion() {
        let scene =
            UdpScene { died: Died { device: 5_000, ..Died::default() }, hidden: &["snmp"], ..UdpScene::default() };
        suspected(&scene, "udp-send-queue");
    }
}
