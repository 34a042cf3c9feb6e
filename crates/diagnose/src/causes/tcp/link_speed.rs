//! # link-speed
//!
//! A host's link runs below its maximum speed, or below the peer's, and limits the goodput.
//!
//! **Shows**: the negotiated speed is below the maximum supported one (or, if that is unknown and below 1 Gbit/s, the
//! peer's), and the goodput is that speed less headers: 94 % with full Ethernet frames.
//!
//! **Mistaken for**: the path's capacity. A link at its maximum speed is not a fault.
//!
//! **Fix**: cable, switch port, autonegotiation on both sides.
//!
//! Source: ethtool(8), `ETHTOOL_GLINKSETTINGS`.

use crate::causes::shared::rule::*;
use crate::judge::ceilings::sits_at;
use narrows_model::Command;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "link-speed",
    about: "a host's link runs below its maximum speed",
    roles: &[Role::Sender, Role::Receiver],
    needs: &[
        keys::NIC_SPEED,
        keys::NIC_SPEED_MAX,
        keys::NIC_KIND,
        keys::NIC_NAME,
    ],
    ceiling,
    assess,
    look_alikes: &["path-capacity", "path-shaper", "pcie-width", "local-shaper"],
    fix,
    rank: 6,
    explains_link: true,
    device: true,
    ..Cause::COMMON
};

fn ceiling(evidence: &TcpEvidence, role: Role) -> Option<Ceiling> {
    let speed = evidence.link_bps_of(role)?;
    let mss = evidence.base.mss_bytes?;
    let efficiency = evidence.wire_efficiency(mss);
    let how = format!("link of {} x {efficiency:.3} payload with {mss:.0} bytes a segment", units::bps(speed));
    ceiling_at(CAUSE.id, evidence, role, speed * efficiency, [0.95, 1.01], Method::Computed, how)
}

/// Whether a card could run faster its driver says, mostly. Where it does not, a card below this speed beside a
/// faster peer is one that negotiated badly; from this speed on it is as likely just another card: 1 against 10
/// Gbit/s is no fault.
const ORDINARY_BPS: f64 = 1e9;

fn assess(evidence: &TcpEvidence, role: Role) -> Assessment {
    let Some(speed) = evidence.link_bps_of(role) else {
        return cannot_tell(format!("the device of {} has no link speed of its own, or reports none", who(evidence, role)));
    };
    let other = if role == Role::Sender { Role::Receiver } else { Role::Sender };
    let slower_than = match (evidence.number(role, keys::NIC_SPEED_MAX), evidence.link_bps_of(other)) {
        // Autonegotiation takes the best mode that both ends of a cable have (IEEE 802.3 clause 28): a faster card may be as fast as its switch,
        // and where the other host's link is no faster, nothing would be gained.
        (Some(max), Some(peer)) if speed < 0.99 * max && peer <= 1.01 * speed => {
            return contradicts(format!("the link of {} is not slower than the peer's", who(evidence, role)));
        }
        (Some(max), _) if speed < 0.99 * max => format!("its link supports {}", units::bps(max)),
        (Some(_), _) => return contradicts(format!("the link of {} runs at its maximum speed", who(evidence, role))),
        (None, Some(peer)) if speed < ORDINARY_BPS && speed < 0.99 * peer => {
            format!("the peer's link runs at {}", units::bps(peer))
        }
        (None, Some(peer)) if speed < 0.99 * peer => {
            return cannot_tell("the maximum supported speed is unknown, and the NICs can differ");
        }
        (None, Some(_)) => {
            return contradicts(format!("the link of {} is not slower than the peer's", who(evidence, role)));
        }
        (None, None) => return cannot_tell("neither the maximum supported speed nor the peer's speed is known"),
    };
    let Some(ceiling) = ceiling(evidence, role) else { return cannot_tell("the segment size could not be read") };
    if !sits_at(&ceiling, evidence.goodput_bps()) {
        return contradicts(format!("the link would carry {}", units::bps(ceiling.bps)));
    }
    let mut witnesses = vec![parameter(format!(
        "the link of {} runs at {}, but {slower_than}",
        who(evidence, role),
        units::bps(speed)
    ))];
    if let Some(queue) = evidence.queue_us().filter(|_| evidence.queue_stood() == Some(true)) {
        witnesses.push(counter(format!("a queue of {} before it", units::micros(queue as u64))));
    }
    Assessment::Supports { share: 0.95, witnesses }
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    let device = evidence.text(role, keys::NIC_NAME).unwrap_or("DEVICE");
    Fix {
        commands: vec![Command { at: evidence.place(role), run: format!("ethtool -s {device} autoneg on") }],
        ..advice("check cable and switch port, and enable autonegotiation on both sides")
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use super::*;

    fn fastest(mbps: i64, facts: Vec<Fact>) -> Vec<Fact> {
        with(facts, fact("nic.speed.max", mbps * 1_000_000, Unit::BitsPerSecond))
    }

    /// A card of 1 Gbit/s that came up with 100 Mbit/s.
    fn truth() -> Scene {
        Scene {
            goodput_bps: 94.1e6,
            early_peak_bps: 94e6,
            sender_facts: fastest(1_000, link(100, ordinary_host())),
            receiver_facts: fastest(1_000, ordinary_host()),
            ..Scene::default()
        }
    }

    #[test]
    fn a_gigabit_card_at_100_mbit_is_named() {
        let finding = named(&truth(), &[], "link-speed", Place::Client);
        assert_rejects(&finding, "path-shaper", "close to what the slower link carries");
        assert_rejects(&finding, "local-shaper", "has no rate");
        assert_eq!(finding.fix.commands[0].run, "ethtool -s eth0 autoneg on");
        assert_contradicts(&assessment(&CAUSE, Role::Receiver, &truth(), &[]), "runs at its maximum speed");
    }

    #[test]
    fn a_fast_card_on_a_switch_as_fast_as_the_peer_is_capacity() {
        let facts = || fastest(2_500, link(1_000, ordinary_host()));
        let scene = Scene {
            goodput_bps: 941e6,
            early_peak_bps: 941e6,
            sender_facts: facts(),
            receiver_facts: fastest(1_000, link(1_000, ordinary_host())),
            ..Scene::default()
        };
        assert_contradicts(&assessment(&CAUSE, Role::Sender, &scene, &[]), "is not slower than the peer's");
        assert_eq!(crate::testing::verdict(&scene, &[]).causes[0].id, "path-capacity");
        // A peer that is faster shows what the slower link costs.
        let peer = fastest(10_000, link(10_000, ordinary_host()));
        assert_supports(&assessment(&CAUSE, Role::Sender, &Scene { receiver_facts: peer, ..scene }, &[]));
    }

    #[test]
    fn a_link_at_its_best_speed_is_capacity() {
        let scene = Scene { sender_facts: fastest(100, link(100, ordinary_host())), ..truth() };
        assert_contradicts(&assessment(&CAUSE, Role::Sender, &scene, &[]), "runs at its maximum speed");
        assert_eq!(crate::testing::verdict(&scene, &[]).causes[0].id, "path-capacity");
    }

    #[test]
    fn the_peer_is_the_measure_below_1_gbit_only_and_where_modes_are_not_known() {
        let unknown = |own, peer, goodput_bps| Scene {
            goodput_bps,
            sender_facts: link(own, ordinary_host()),
            receiver_facts: link(peer, ordinary_host()),
            ..truth()
        };
        named(&unknown(100, 1_000, 94.1e6), &[], "link-speed", Place::Client);
        let of = |scene| assessment(&CAUSE, Role::Sender, &scene, &[]);
        assert_cannot_tell(&of(unknown(1_000, 10_000, 941e6)), "the maximum supported speed is unknown, and the NICs can differ");
        assert_contradicts(&of(unknown(100, 100, 94.1e6)), "is not slower than the peer's");
    }

    #[test]
    fn a_goodput_below_the_link_is_something_else() {
        let of = |goodput_bps| assessment(&CAUSE, Role::Sender, &Scene { goodput_bps, ..truth() }, &[]);
        assert_contradicts(&of(83e6), "would carry 94.1 Mbit/s");
        assert_supports(&of(90e6));
    }

    #[test]
    fn a_speed_that_no_one_reports_or_enforces_accuses_no_one() {
        let scene = virtual_hosts(Scene { rtt_us: 35_100, ..truth() });
        assert_cannot_tell(&assessment(&CAUSE, Role::Sender, &scene, &[]), "no link speed");
        none_proven(&scene, &[]);
        let scene = Scene { sender_facts: without(truth().sender_facts, "nic.speed"), rtt_us: 35_100, ..truth() };
        none_proven(&scene, &[]);
    }
}
