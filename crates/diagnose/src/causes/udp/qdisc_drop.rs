//! # qdisc-drop
//!
//! The sender's own queueing discipline drops the datagrams: its queue is too short for the bursts, or it shapes below
//! the offered load.
//!
//! **Shows**: `drops` of the discipline grow; `SndbufErrors` of UDP and `OutDiscards` of IP grow with them; the reason is
//! `QDISC_DROP` or a related one. The send call returns an error only with `IP_RECVERR`.
//!
//! **Mistaken for**: loss on the path.
//!
//! **Fix**: offer less than its rate, or raise the rate; a longer queue (`limit`, `txqueuelen`), or smaller bursts.
//!
//! Source: tc(8), kernel `net/sched/sch_generic.c`; `net/ipv4/udp.c`, `udp_send_skb`.

use crate::causes::shared::layers::qdisc_device;
use crate::causes::shared::rule::*;
use crate::causes::shared::udp::{at_stage, rounded, says_the_same};

pub const CAUSE: Cause<UdpEvidence> = Cause {
    id: "qdisc-drop",
    about: "the sender's own queueing discipline drops datagrams",
    roles: &[Role::Sender],
    needs: &[
        keys::QDISC_DROPS,
        keys::QDISC_RATE,
        keys::QDISC_ROOT_KIND,
        keys::QDISC_LIMIT_PACKETS,
        keys::NIC_NAME,
        keys::QDISC_DEVICE,
        keys::SNMP_UDP_SNDBUF_ERRORS,
        keys::SNMP6_UDP6_SNDBUF_ERRORS,
        keys::SNMP_IP_OUT_DISCARDS,
        keys::DROP_REASON_QDISC_DROP,
        keys::DROP_REASON_QDISC_OVERLIMIT,
        keys::DROP_REASON_QDISC_CONGESTED,
        keys::DROP_REASON_FQ_FLOW_LIMIT,
    ],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["udp-send-queue", "random-loss", "path-policer", "shallow-queue"],
    fix,
    stages: &["qdisc"],
    ..Cause::COMMON
};

/// What the kernel calls drops of queueing disciplines.
const REASONS: [&str; 4] = ["QDISC_DROP", "QDISC_OVERLIMIT", "QDISC_CONGESTED", "FQ_FLOW_LIMIT"];

fn assess(evidence: &UdpEvidence, role: Role) -> Ruling {
    let (dropped, share, first) = at_stage(evidence, "qdisc", None)?;
    let key = if evidence.base.accounting.ipv6 { keys::SNMP6_UDP6_SNDBUF_ERRORS } else { keys::SNMP_UDP_SNDBUF_ERRORS };
    let reasons = REASONS.iter().try_fold(0_u64, |sum, name| Some(sum.saturating_add(evidence.reason(role, name)?)));
    let witnesses = [
        Some(first),
        says_the_same(evidence, dropped, reasons, "the drop reasons of queueing disciplines (QDISC_DROP and \
            related)"),
        says_the_same(evidence, dropped, evidence.grew(role, key), "SndbufErrors of the sender's UDP").or_else(
            || {
                says_the_same(
                    evidence,
                    dropped,
                    evidence.grew(role, keys::SNMP_IP_OUT_DISCARDS),
                    "OutDiscards of the sender's IP",
                )
            },
        ),
    ];
    supports(share, witnesses)
}

/// Bytes of IP, UDP and Ethernet that a shaper counts with each datagram.
const HEADERS: f64 = 42.0;

fn fix(evidence: &UdpEvidence, role: Role) -> Fix {
    let device = qdisc_device(evidence, role).to_owned();
    let kind = evidence.text(role, keys::QDISC_ROOT_KIND).unwrap_or("queueing discipline").to_owned();
    let wire_bps = evidence.base.offered_bps + evidence.base.offered_pps() * HEADERS * 8.0;
    if let Some(rate) = evidence.number(role, keys::QDISC_RATE) {
        let setting = Setting::RootQdisc { device: device.clone(), kind: "default".to_owned() };
        let why = if wire_bps > rate { "passes only" } else { "is too short for the bursts and passes" };
        let advice = format!(
                "{kind} of {device} {why} {} of {} offered: remove or raise it, or offer less",
                units::bps(rate),
                units::bps(wire_bps)
            );
        return setting_fix(evidence, role, advice, setting);
    }
    let limit = evidence.number(role, keys::QDISC_LIMIT_PACKETS).unwrap_or(1000.0);
    let burst = evidence.base.loss_burst_max as f64;
    let longer = rounded((limit * 4.0).max(limit + 2.0 * burst), 1 << 20);
    let advice = format!("raise the queue limit of {kind} on {device}, or send smaller bursts");
    let command = if kind == "pfifo_fast" {
        format!("ip link set dev {device} txqueuelen {longer}")
    } else {
        format!("tc qdisc change dev {device} root {kind} limit {longer}")
    };
    command_fix(evidence, role, advice, [command])
}

#[cfg(test)]
mod tests {
    use crate::testing::{fact, with};
    use crate::testing::udp::*;
    use super::*;

    fn truth() -> UdpScene {
        UdpScene { died: Died { qdisc: 30_000, ..Died::default() }, ..UdpScene::default() }
    }

    #[test]
    fn drops_that_the_application_was_or_was_not_told_of_are_named() {
        let finding = named(&truth(), "qdisc-drop", Place::Client);
        rejects(&finding, "random-loss", "nothing was dropped");
        rejects(&finding, "udp-send-queue", "the socket and the interface accepted every datagram");
        assert_eq!(finding.fix.commands[0].run, "ip link set dev eth0 txqueuelen 4096");
        let told = UdpScene { died: Died { qdisc_told: 30_000, ..Died::default() }, ..truth() };
        named(&told, "qdisc-drop", Place::Client);
    }

    #[test]
    fn a_shaper_is_named_with_its_rate() {
        let sender_facts = with(truth().sender_facts, fact("qdisc.rate", 50_000_000_i64, Unit::BitsPerSecond));
        let finding = named(&UdpScene { sender_facts, ..truth() }, "qdisc-drop", Place::Client);
        assert!(finding.fix.advice.contains("passes only 50.0 Mbit/s"), "{}", finding.fix.advice);
        assert_eq!(finding.fix.settings.len(), 1);
    }

    #[test]
    fn drops_elsewhere_and_missing_counters() {
        let of = |scene: &UdpScene| assessment(&CAUSE, Role::Sender, scene);
        assert_contradicts(
            &of(&UdpScene { died: Died { path: 30_000, ..Died::default() }, ..truth() }),
            "nothing was dropped",
        );
        assert_cannot_tell(&of(&UdpScene { hidden: &["qdisc"], ..truth() }), "gave no counters");
        suspected(&UdpScene { watched: false, hidden: &["snmp"], ..truth() }, "qdisc-drop");
    }
}
