//! # checksum-errors
//!
//! Datagrams arrive corrupted: a hop changes bytes after the link's CRC check, or the sender's offload writes a wrong
//! checksum.
//!
//! **Shows**: `InCsumErrors` of UDP grow; the reason is `UDP_CSUM`; the link's CRC counter does not grow, so the last
//! cable is not the cause.
//!
//! **Mistaken for**: a full receive buffer (both count as `InErrors`).
//!
//! **Fix**: find the hop that corrupts them; test without checksum offload at the sender, then at the receiver.
//!
//! Source: RFC 1122 4.1.3.4; Stone, Partridge, *When the CRC and TCP Checksum Disagree*, SIGCOMM 2000.

use crate::causes::shared::rule::*;
use crate::causes::shared::udp::{at_stage, says_the_same};

pub const CAUSE: Cause<UdpEvidence> = Cause {
    id: "checksum-errors",
    about: "datagrams arrive corrupted and fail their checksum",
    roles: &[Role::Path],
    needs: &[
        keys::SNMP_UDP_IN_CSUM_ERRORS,
        keys::SNMP6_UDP6_IN_CSUM_ERRORS,
        keys::SNMP_UDP_IN_ERRORS,
        keys::SNMP6_UDP6_IN_ERRORS,
        keys::DROP_REASON_UDP_CSUM,
        keys::NIC_COUNTER_RX_CRC_ERRORS,
        keys::NIC_NAME,
    ],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["udp-receive-buffer", "random-loss"],
    fix,
    stages: &["checksum"],
    ..Cause::COMMON
};

fn assess(evidence: &UdpEvidence, _: Role) -> Ruling {
    let (dropped, share, first) = at_stage(evidence, "checksum", None)?;
    let crc = evidence.grew(Role::Receiver, keys::NIC_COUNTER_RX_CRC_ERRORS);
    let key = if evidence.base.accounting.ipv6 { keys::SNMP6_UDP6_IN_ERRORS } else { keys::SNMP_UDP_IN_ERRORS };
    let sockets = evidence.base.accounting.socket_drops;
    let witnesses = [
        Some(first),
        says_the_same(evidence, dropped, evidence.reason(Role::Receiver, "UDP_CSUM"), "the reason UDP_CSUM"),
        sockets
            .filter(|drops| *drops >= dropped)
            .map(|drops| counter(format!("the receiving sockets counted {drops} drops, damaged ones among them"))),
        says_the_same(
            evidence,
            dropped,
            evidence.grew(Role::Receiver, key).filter(|_| sockets.is_none()),
            "InErrors of the receiver's UDP",
        ),
        crc.filter(|crc| *crc > 0).map(|crc| counter(format!("the receiver's link counted {crc} CRC errors"))),
    ];
    supports(share, witnesses)
}

fn fix(evidence: &UdpEvidence, _: Role) -> Fix {
    let device = |role| evidence.text(role, keys::NIC_NAME).unwrap_or("DEVICE");
    let advice =
        "find the hop that corrupts them; test without checksum offload first"
            .to_owned();
    let mut fix = command_fix(evidence, Role::Sender, advice, [format!("ethtool -K {} tx off", device(Role::Sender))]);
    fix.commands.extend(
        command_fix(
            evidence,
            Role::Receiver,
            String::new(),
            [format!("ethtool -K {} rx off", device(Role::Receiver))],
        )
        .commands,
    );
    fix
}

#[cfg(test)]
mod tests {
    use crate::testing::udp::*;
    use super::*;

    fn truth() -> UdpScene {
        UdpScene { died: Died { corrupt: 700, ..Died::default() }, ..UdpScene::default() }
    }

    #[test]
    fn damaged_datagrams_are_named_and_are_no_full_buffer() {
        let finding = named(&truth(), "checksum-errors", Place::Path);
        rejects(&finding, "udp-receive-buffer", "nothing was dropped");
        assert_eq!(finding.fix.commands.len(), 2);
    }

    #[test]
    fn drops_elsewhere_and_missing_counters() {
        let of = |scene: &UdpScene| assessment(&CAUSE, Role::Path, scene);
        assert_contradicts(
            &of(&UdpScene { died: Died { buffer: 700, ..Died::default() }, ..truth() }),
            "nothing was dropped",
        );
        assert_cannot_tell(&of(&UdpScene { hidden: &["snmp.Udp."], ..truth() }), "could not be read");
        let scene = UdpScene { watched: false, socket_tells: false, hidden: &["snmp.Udp.InErrors"], ..truth() };
        suspected(&scene, "checksum-errors");
    }
}
