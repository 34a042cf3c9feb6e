//! # duplex-mismatch
//!
//! One end of a cable runs at half duplex and the other end at full duplex: they send at the same time, and frames are
//! lost in collisions.
//!
//! **Shows**: at half duplex *late* collisions (`tx_window_errors`) match the TCP retransmissions; at a side fixed to
//! full duplex, corrupted frames do.
//!
//! **Mistaken for**: a bad cable (then both sides negotiated full duplex); half duplex on both sides, which has no
//! late collisions.
//!
//! **Fix**: autonegotiation on both sides.
//!
//! Source: IEEE 802.3 clause 28 and 4.2.4.2; Shalunov, Carlson, *Detecting Duplex Mismatch on Ethernet*, PAM 2005.

use crate::causes::shared::device::{damaged, statistic};
use crate::causes::shared::rule::*;
use crate::causes::shared::tcp_stage::{binding_loss, counted};

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "duplex-mismatch",
    about: "duplex mismatch between the two ends of a cable",
    roles: &[Role::Sender, Role::Receiver],
    needs: &[
        keys::NIC_DUPLEX,
        keys::NIC_AUTONEG,
        keys::NIC_SPEED,
        keys::NIC_COUNTER_TX_WINDOW_ERRORS,
        keys::NIC_COUNTER_RX_CRC_ERRORS,
        keys::NIC_COUNTER_RX_FRAME_ERRORS,
        keys::NIC_COUNTER_RX_PACKETS,
        keys::NIC_STAT,
        keys::NIC_NAME,
    ],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["link-errors", "random-loss", "path-policer"],
    fix,
    rank: 9,
    device: true,
    ..Cause::COMMON
};

/// Late collisions, as drivers call them: e1000, tg3.
const LATE: [&str; 2] = ["tx_abort_late_coll", "tx_late_collisions"];

/// Faster links have no half duplex.
const FASTEST_BPS: f64 = 100e6;

fn assess(evidence: &TcpEvidence, role: Role) -> Ruling {
    binding_loss(evidence)?;
    let who = who(evidence, role);
    match evidence.text(role, keys::NIC_DUPLEX) {
        Some("half") => {
            let late = evidence.grew(role, keys::NIC_COUNTER_TX_WINDOW_ERRORS);
            let late = late.max(statistic(evidence, role, &LATE).map(|(_, n)| n));
            // What collides on its way to the receiver arrives in pieces.
            let lost = match (role, late) {
                (Role::Receiver, Some(1..)) => damaged(evidence, role).max(late),
                _ => late,
            };
            let half = parameter(format!("{who} runs at half duplex"));
            counted(evidence, lost, &format!("the late collisions at {who}"), Some(half))
        }
        Some("full") => fixed(evidence, role, &who),
        _ => Err(cannot_tell(format!("the duplex of {who} could not be read"))),
    }
}

/// A side that is fixed at full duplex does not negotiate, so the other side takes half duplex.
fn fixed(evidence: &TcpEvidence, role: Role, who: &str) -> Ruling {
    let speed = evidence.number(role, keys::NIC_SPEED);
    if known(evidence.flag(role, keys::NIC_AUTONEG), format!("whether {who} negotiated its duplex could not be read"))? {
        return Err(contradicts(format!("{who} negotiated full duplex")));
    }
    if speed.is_none_or(|bps| bps > FASTEST_BPS) {
        return Err(contradicts(format!("the link of {who} is too fast for half duplex")));
    }
    if role == Role::Sender {
        return Err(cannot_tell("collisions at the other end of the sender's cable are counted only there"));
    }
    let fixed = parameter(format!("{who} is fixed at full duplex, without autonegotiation"));
    counted(evidence, damaged(evidence, role), &format!("the damaged frames of {who}"), Some(fixed))
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    let device = evidence.text(role, keys::NIC_NAME).unwrap_or("DEVICE");
    let advice = "enable autonegotiation on both ends of the cable, or set both to full duplex".to_owned();
    command_fix(evidence, role, advice, [format!("ethtool -s {device} autoneg on")])
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use super::*;

    fn duplex(word: &str, autoneg: bool) -> Vec<Fact> {
        let facts = with(link(100, ordinary_host()), fact("nic.duplex", word, Unit::Text));
        with(facts, fact("nic.autoneg", autoneg, Unit::Flag))
    }

    /// The sender's side is at half duplex and sees late collisions.
    fn half(late: i64) -> Scene {
        let scene = lossy(25_330, &[]);
        let mut sender_counts = scene.sender_counts.clone();
        sender_counts.push(("nic.counter.tx_window_errors", late));
        Scene { sender_counts, sender_facts: duplex("half", true), ..scene }
    }

    /// The receiver's side is fixed at full duplex and gets damaged frames.
    fn full(autoneg: bool) -> Scene {
        Scene { receiver_facts: duplex("full", autoneg), ..lossy(25_330, &[("nic.counter.rx_crc_errors", 170)]) }
    }

    #[test]
    fn late_collisions_at_half_duplex_are_named() {
        let finding = named(&half(170), &[], "duplex-mismatch", Place::Client);
        assert_eq!(finding.fix.commands[0].run, "ethtool -s eth0 autoneg on");
        let of = |scene: &Scene| assessment(&CAUSE, Role::Sender, scene, &[]);
        assert_contradicts(&of(&half(0)), "did not grow");
        assert_contradicts(&of(&half(40)), "grew by only 40");
        assert_contradicts(&of(&Scene { lost: 12, ..half(170) }), "only 12");
    }

    #[test]
    fn damaged_frames_at_a_side_that_is_fixed_are_named_and_not_the_cable() {
        named(&full(false), &[], "duplex-mismatch", Place::Server);
        named(&full(true), &[], "link-errors", Place::Server);
        let of = |facts| assessment(&CAUSE, Role::Receiver, &Scene { receiver_facts: facts, ..full(false) }, &[]);
        assert_contradicts(&of(duplex("full", true)), "negotiated full duplex");
        assert_contradicts(&of(link(10_000, duplex("full", false))), "too fast");
        assert_cannot_tell(&of(ordinary_host()), "could not be read");
    }

    #[test]
    fn a_path_at_capacity_is_not_accused() {
        let scene = Scene { sender_facts: ordinary_host(), ..half(170) };
        let half = with(ordinary_host(), fact("nic.duplex", "half", Unit::Text));
        assert_eq!(verdict(&full_path(Scene { sender_facts: half, ..scene }), &[]).status, Status::Healthy);
    }
}
