//! # link-errors
//!
//! Frames arrive at the receiver's NIC corrupted: a cable, optic, connector or port is faulty.
//!
//! **Shows**: `rx_crc_errors` (or the driver's equivalent) matches the TCP retransmissions, at any rate.
//!
//! **Mistaken for**: loss on another hop (then the NIC counts no corrupted frames); a duplex mismatch (half duplex at
//! the other end of the cable).
//!
//! **Fix**: clean or replace the cable, optic or port; check the optical levels (`ethtool -m`).
//!
//! Source: IEEE 802.3 clause 4.2.9, FrameCheckSequenceErrors; kernel `Documentation/networking/statistics.rst`.

use crate::causes::shared::device::damaged;
use crate::causes::shared::rule::*;
use crate::causes::shared::tcp_stage::counted;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "link-errors",
    about: "frames arrive corrupted on the receiver's link",
    roles: &[Role::Receiver],
    needs: &[
        keys::NIC_COUNTER_RX_CRC_ERRORS,
        keys::NIC_COUNTER_RX_FRAME_ERRORS,
        keys::NIC_COUNTER_RX_PACKETS,
        keys::NIC_STAT,
        keys::NIC_NAME,
    ],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["random-loss", "checksum-errors", "nic-ring-overrun", "duplex-mismatch"],
    fix,
    rank: 8,
    device: true,
    ..Cause::COMMON
};

fn assess(evidence: &TcpEvidence, role: Role) -> Ruling {
    counted(evidence, damaged(evidence, role), "CRC errors of the receiver's link", None)
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    let device = evidence.text(role, keys::NIC_NAME).unwrap_or("DEVICE");
    let advice = "clean or replace cable, optic or port of the receiver's link".to_owned();
    command_fix(evidence, role, advice, [format!("ethtool -m {device}"), format!("ethtool -S {device} | grep -i -e crc -e fcs -e fec")])
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use super::*;

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Receiver, scene, &[])
    }

    #[test]
    fn frames_that_arrive_damaged_are_named_at_their_link() {
        let finding = named(&lossy(25_330, &[("nic.counter.rx_crc_errors", 170)]), &[], "link-errors", Place::Server);
        assert_rejects(&finding, "random-loss", "far less than TCP");
        let counts = [("nic.counter.rx_crc_errors", 0), ("nic.stat.rx_crc_errors_phy", 160)];
        named(&lossy(25_330, &counts), &[], "link-errors", Place::Server);
    }

    #[test]
    fn a_few_of_them_or_those_of_other_traffic_are_not_why() {
        assert_contradicts(&of(&lossy(25_330, &[("nic.counter.rx_crc_errors", 60)])), "grew by only 60");
        // A tenth of what arrived was ours.
        assert_contradicts(&of(&lossy(255_000, &[("nic.counter.rx_crc_errors", 170)])), "grew by only 17");
        assert_contradicts(&of(&lossy(25_330, &[("nic.counter.rx_crc_errors", 0)])), "did not grow");
        assert_contradicts(&of(&Scene { lost: 9, ..lossy(25_330, &[("nic.counter.rx_crc_errors", 170)]) }), "only 9");
        assert_cannot_tell(&of(&lossy(25_330, &[])), "could not be read");
    }

    #[test]
    fn a_path_at_capacity_is_not_accused() {
        let scene = full_path(lossy(600_000, &[("nic.counter.rx_crc_errors", 170)]));
        assert_eq!(verdict(&scene, &[]).status, Status::Healthy);
        assert_contradicts(&of(&Scene { profile: None, ..scene }), "the RTT rose as behind a full queue, so the loss is ordinary overflow");
    }
}
