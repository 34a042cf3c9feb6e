//! # nic-ring-overrun
//!
//! The receiver's NIC has no free receive descriptor for an arriving packet: its ring overruns.
//!
//! **Shows**: `rx_missed_errors`, `rx_fifo_errors` or the driver's equivalent match the loss between the two
//! interfaces; the kernel's counters do not change, because it never sees these packets.
//!
//! **Mistaken for**: loss on the path; a softnet backlog (behind the ring); a full core, with which a ring of any
//! length overruns.
//!
//! **Fix**: the maximum ring size (`ethtool -G`); more queues if a core is full.
//!
//! Source: kernel `Documentation/networking/statistics.rst`, `rx_missed_errors`; ethtool(8).

use crate::causes::shared::device::{ring, ring_fix};
use crate::causes::shared::rule::*;
use crate::causes::shared::udp::{at_stage, full_core};

pub const CAUSE: Cause<UdpEvidence> = Cause {
    id: "nic-ring-overrun",
    about: "the receive ring of the receiver's NIC overruns",
    roles: &[Role::Receiver],
    needs: &[
        keys::NIC_COUNTER_RX_MISSED_ERRORS,
        keys::NIC_COUNTER_RX_FIFO_ERRORS,
        keys::NIC_COUNTER_TX_PACKETS,
        keys::NIC_COUNTER_RX_PACKETS,
        keys::NIC_STAT,
        keys::NIC_RING_RX,
        keys::NIC_RING_RX_MAX,
        keys::NIC_NAME,
    ],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["softnet-backlog", "random-loss", "udp-receive-buffer"],
    fix,
    stages: &["nic-rx"],
    ..Cause::COMMON
};

fn assess(evidence: &UdpEvidence, role: Role) -> Ruling {
    let (dropped, share, first) = at_stage(evidence, "nic-rx", None)?;
    let sent = evidence.grew(Role::Sender, keys::NIC_COUNTER_TX_PACKETS);
    let apart = sent.zip(evidence.grew(role, keys::NIC_COUNTER_RX_PACKETS)).map(|(sent, got)| sent.saturating_sub(got));
    let apart = apart
        .filter(|apart| apart.saturating_mul(2) >= dropped)
        .map(|apart| counter(format!("{apart} packets left the sender's interface and were not received by the \
            receiver's")));
    let short = ring(evidence, role).filter(|[now, max]| now < max);
    let short = short.map(|[now, max]| parameter(format!("the receive ring has {now:.0} of {max:.0} entries")));
    supports(share, [Some(first), apart, short])
}

fn fix(evidence: &UdpEvidence, role: Role) -> Fix {
    ring_fix(evidence, role, full_core(evidence, role))
}

#[cfg(test)]
mod tests {
    use crate::testing::udp::*;
    use super::*;

    fn truth() -> UdpScene {
        UdpScene { died: Died { ring: 8_000, ..Died::default() }, ..UdpScene::default() }
    }

    #[test]
    fn what_the_card_missed_is_named_and_is_not_the_paths() {
        let finding = named(&truth(), "nic-ring-overrun", Place::Server);
        rejects(&finding, "softnet-backlog", "nothing was dropped");
    }

    #[test]
    fn other_drops_are_other_causes() {
        let of = |scene: &UdpScene| assessment(&CAUSE, Role::Receiver, scene);
        let path = Died { path: 8_000, ring: 80, ..Died::default() };
        assert_contradicts(&of(&UdpScene { died: path, ..truth() }), "only 80 of 8080");
        assert_contradicts(&of(&UdpScene { died: Died { buffer: 900, ..Died::default() }, ..truth() }), "nothing was dropped");
        assert_cannot_tell(&of(&UdpScene { hidden: &["nic"], ..truth() }), "no counters");
        suspected(&UdpScene { hidden: &["nic.counter.tx_packets"], ..truth() }, "nic-ring-overrun");
    }
}
