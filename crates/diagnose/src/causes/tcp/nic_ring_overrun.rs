//! # nic-ring-overrun
//!
//! The receiver's NIC has no free receive descriptor for an arriving packet: its ring overruns.
//!
//! **Shows**: `rx_missed_errors`, `rx_fifo_errors` or the driver's equivalent match the TCP retransmissions; the
//! kernel's counters do not change, because it never sees these packets.
//!
//! **Mistaken for**: loss on the path; a softnet backlog (behind the ring); a full core, with which a ring of any
//! length overruns.
//!
//! **Fix**: the maximum ring size (`ethtool -G`); more queues if a core is full.
//!
//! Source: kernel `Documentation/networking/statistics.rst`, `rx_missed_errors`; ethtool(8).

use crate::causes::shared::cpu::full_core;
use crate::causes::shared::device::{ring, ring_fix};
use crate::causes::shared::rule::*;
use crate::causes::shared::tcp_stage::dropped_at;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "nic-ring-overrun",
    about: "the receive ring of the receiver's NIC overruns",
    roles: &[Role::Receiver],
    needs: &[
        keys::NIC_COUNTER_RX_MISSED_ERRORS,
        keys::NIC_COUNTER_RX_FIFO_ERRORS,
        keys::NIC_COUNTER_RX_OVER_ERRORS,
        keys::NIC_STAT,
        keys::NIC_RING_RX,
        keys::NIC_RING_RX_MAX,
        keys::NIC_NAME,
    ],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["softnet-backlog", "random-loss", "path-policer", "link-errors"],
    fix,
    rank: 8,
    stages: &["nic-rx"],
    device: true,
    ..Cause::COMMON
};

fn assess(evidence: &TcpEvidence, role: Role) -> Ruling {
    let short = ring(evidence, role).filter(|[now, max]| now < max);
    let second = short.map(|[now, max]| parameter(format!("the receive ring has {now:.0} of {max:.0} entries")));
    dropped_at(evidence, "nic-rx", second)
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    ring_fix(evidence, role, full_core(evidence, role).map(|(_, witness)| witness.says))
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use super::*;

    /// One of 150 segments is missed by the card: its device did not count it as received.
    fn missed(counts: &[(&'static str, i64)]) -> Scene {
        let facts = with(ordinary_host(), fact("nic.ring.rx", 256_i64, Unit::Number));
        let receiver_facts = with(facts, fact("nic.ring.rx.max", 4096_i64, Unit::Number));
        Scene { receiver_facts, ..lossy(25_330, counts) }
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Receiver, scene, &[])
    }

    #[test]
    fn packets_that_the_card_missed_are_not_the_paths() {
        let scene = missed(&[("nic.counter.rx_missed_errors", 170)]);
        let finding = named(&scene, &[], "nic-ring-overrun", Place::Server);
        assert_eq!(finding.fix.commands[0].run, "ethtool -G eth0 rx 4096");
        assert_rejects(&finding, "random-loss", "170 of them were dropped inside the sender or receiver");
        // Some drivers count them in statistics of their own only.
        let scene = missed(&[("nic.counter.rx_missed_errors", 0), ("nic.stat.rx_out_of_buffer", 170)]);
        named(&scene, &[], "nic-ring-overrun", Place::Server);
    }

    #[test]
    fn a_full_core_needs_other_cores_and_no_longer_ring() {
        let scene = missed(&[("nic.counter.rx_missed_errors", 170)]);
        let verdict = verdict(&Scene { receiver_core: core(0.97, 0.02), ..scene }, &[]);
        let finding = verdict.causes.iter().find(|finding| finding.id == CAUSE.id).expect("it is supported");
        assert!(finding.fix.commands.is_empty() && finding.fix.advice.contains("more cores"), "{:?}", finding.fix);
    }

    #[test]
    fn a_few_misses_are_not_why_tcp_lost_what_it_lost() {
        assert_contradicts(&of(&missed(&[("nic.counter.rx_missed_errors", 17)])), "only 17 of 170");
        assert_contradicts(&of(&missed(&[("nic.counter.rx_missed_errors", 0)])), "nothing was dropped there");
        assert_cannot_tell(&of(&missed(&[])), "no counters");
    }

    #[test]
    fn misses_that_other_traffic_may_have_had_prove_nothing() {
        let scene = lossy(60_000, &[("nic.counter.rx_missed_errors", 170)]);
        assert_cannot_tell(&of(&scene), "other traffic");
    }

    #[test]
    fn a_path_at_capacity_is_not_accused() {
        let scene = full_path(lossy(600_000, &[("nic.counter.rx_missed_errors", 170)]));
        assert_eq!(verdict(&scene, &[]).status, Status::Healthy);
    }
}
