//! # pcie-width
//!
//! The NIC is in a slot, or behind a bridge, with fewer or slower PCIe lanes than it supports.
//!
//! **Shows**: the current width or speed of the NIC or a parent is below the NIC's maximum, and the goodput in both
//! directions is near the capacity of these lanes.
//!
//! **Mistaken for**: the link's speed, a full core.
//!
//! **Fix**: another slot.
//!
//! Source: `/sys/bus/pci/devices/*/{current,max}_link_{speed,width}`.

use crate::causes::shared::rule::*;
use crate::experiments::tcp::OTHER_DIRECTION;
use crate::judge::ceilings::sits_at;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "pcie-width",
    about: "the NIC has fewer or slower PCIe lanes than it needs",
    roles: &[Role::Sender, Role::Receiver],
    needs: &[
        keys::PCIE_BANDWIDTH,
        keys::PCIE_BANDWIDTH_MAX,
        keys::PCIE_WIDTH,
        keys::PCIE_WIDTH_MAX,
        keys::NIC_KIND,
        keys::NIC_SPEED,
    ],
    ceiling,
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["link-speed", "app-core-saturated", "path-capacity"],
    fix: |_, _| advice("move the NIC to a slot with all lanes that it supports; check slot wiring and BIOS setting"),
    rank: 7,
    device: true,
    ..Cause::COMMON
};

/// Payload that a PCIe link carries of its bit rate after line coding: headers of transactions, flow control and
/// descriptors take the rest; old chipsets with payloads of 128 bytes and one read in flight were seen to reach less
/// than half.
const EFFICIENCY: [f64; 3] = [0.45, 0.8, 0.93];

fn ceiling(evidence: &TcpEvidence, role: Role) -> Option<Ceiling> {
    let bandwidth = evidence.number(role, keys::PCIE_BANDWIDTH)?;
    let [low, likely, high] = EFFICIENCY;
    let how = format!("PCIe carries {} after line coding x {likely} for its protocol", units::bps(bandwidth));
    ceiling_at(CAUSE.id, evidence, role, bandwidth * likely, [low / likely, high / likely], Method::Computed, how)
}

fn assess(evidence: &TcpEvidence, role: Role) -> Ruling {
    let (Some(bandwidth), Some(max)) =
        (evidence.number(role, keys::PCIE_BANDWIDTH), evidence.number(role, keys::PCIE_BANDWIDTH_MAX))
    else {
        return Err(cannot_tell(format!(
            "the NIC of {} is not a PCIe device, or its lanes could not be read",
            who(evidence, role)
        )));
    };
    if bandwidth >= 0.99 * max {
        return Err(contradicts(format!("the NIC of {} has all its lanes at full speed", who(evidence, role))));
    }
    if evidence.link_bps().is_some_and(|link| link < 0.5 * bandwidth) {
        return Err(contradicts("the link is much slower than the lanes"));
    }
    let slot = parameter(format!(
        "the slot of {} carries {}{}; the NIC supports {}",
        who(evidence, role),
        units::bps(bandwidth),
        lanes(evidence, role),
        units::bps(max)
    ));
    let other = made(evidence, &OTHER_DIRECTION, "a PCIe limit affects both directions; the other one was not measured")?;
    let ratio = other.goodput_bps / evidence.goodput_bps();
    if !(0.8..=1.25).contains(&ratio) {
        return Err(contradicts(format!("the other direction carries {}, a different plateau", units::bps(other.goodput_bps))));
    }
    let witnesses = [
        slot,
        experiment(format!("both directions end at the same plateau ({})", units::bps(other.goodput_bps))),
    ];
    supports(0.8, witnesses)
}

/// The open question, where the slot of a role may be what a queue stands in front of: its ceiling sits at the goodput, and the
/// trial that would tell was not made.
pub(super) fn may_hold_a_queue(evidence: &TcpEvidence, role: Role) -> Option<Assessment> {
    ceiling(evidence, role).filter(|ceiling| sits_at(ceiling, evidence.goodput_bps()))?;
    match assess(evidence, role) {
        Err(open @ Assessment::CannotTell { ask: Some(_), .. }) => Some(open),
        _ => None,
    }
}

/// The card's lanes, where some of them are missing; a bridge on the way may be what is narrow.
fn lanes(evidence: &TcpEvidence, role: Role) -> String {
    match (evidence.number(role, keys::PCIE_WIDTH), evidence.number(role, keys::PCIE_WIDTH_MAX)) {
        (Some(now), Some(max)) if now < max => format!(" on {now} of {max} lanes"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{*, no_more};
    use super::*;

    /// A 10 Gbit/s card for eight lanes of 2.5 GT/s; 8b/10b leaves 2 Gbit/s a lane.
    fn card(lanes: i64) -> Vec<Fact> {
        let facts = with(link(10_000, ordinary_host()), fact("nic.mtu", 9000_i64, Unit::Bytes));
        let facts = with(facts, fact("path.mtu", 9000_i64, Unit::Bytes));
        let facts = with(facts, fact("pcie.bandwidth", lanes * 2_000_000_000, Unit::BitsPerSecond));
        with(facts, fact("pcie.bandwidth.max", 16_000_000_000_i64, Unit::BitsPerSecond))
    }

    /// The two hosts of 2010: the client's card sits in a slot of four lanes, and 3.83 Gbit/s is all that passes,
    /// both ways.
    fn truth() -> Scene {
        Scene {
            goodput_bps: 3.83e9,
            min_rtt_us: 100,
            rtt_us: 300,
            mss: 8948,
            sender_facts: card(4),
            receiver_facts: card(8),
            ..Scene::default()
        }
    }

    fn other(goodput_bps: f64) -> Scene {
        Scene { goodput_bps, ..truth() }
    }

    #[test]
    fn four_lanes_for_a_card_of_eight_are_named_by_the_plateau_of_both_ways() {
        let finding = named(&truth(), &[("other-direction", &other(3.83e9))], "pcie-width", Place::Client);
        assert!(finding.witnesses.iter().any(|witness| witness.says.contains("carries 8.00 Gbit/s")), "{finding:#?}");
        assert_rejects(&finding, "link-speed", "is not slower than the peer's");
        assert_rejects(&finding, "app-core-saturated", "of a core");
        assert_contradicts(&assessment(&CAUSE, Role::Receiver, &truth(), &[]), "all its lanes");
    }

    #[test]
    fn it_is_not_guessed_from_one_direction() {
        assert_asks(&assessment(&CAUSE, Role::Sender, &truth(), &[]), &OTHER_DIRECTION);
        none_proven(&truth(), &[]);
    }

    #[test]
    fn a_queue_in_front_of_the_slot_is_no_capacity_until_the_other_direction_says_so() {
        let queued = Scene { rtt_us: 1_200, early_peak_bps: 3.83e9, ..truth() };
        let open = crate::diagnose(&queued.run(&[]), 0).expect("a baseline");
        assert_eq!(open.verdict.status, Status::Unknown, "{:#?}", open.verdict);
        assert!(open.next.iter().any(|planned| planned.id == OTHER_DIRECTION.id), "{:?}", open.next);
        let told = [("other-direction", &other(9.4e9)), ("more-streams", &queued)];
        assert_eq!(crate::testing::verdict(&queued, &told).status, Status::Healthy);
        let wide = Scene { sender_facts: card(8), ..queued.clone() };
        assert_eq!(crate::testing::verdict(&wide, &no_more(&wide)).status, Status::Healthy);
    }

    #[test]
    fn a_direction_that_carries_a_quarter_more_has_another_limit() {
        let with = |bps| assessment(&CAUSE, Role::Sender, &truth(), &[("other-direction", &other(bps))]);
        assert_supports(&with(4.7e9));
        assert_contradicts(&with(4.9e9), "a different plateau");
        assert_contradicts(&with(3.0e9), "a different plateau");
    }

    #[test]
    fn a_plateau_far_below_the_lanes_is_a_hazard_at_most() {
        let slow = Scene { goodput_bps: 2e9, ..truth() };
        let verdict = crate::testing::verdict(&slow, &[("other-direction", &slow)]);
        assert_eq!(verdict.status, Status::Unknown, "{verdict:#?}");
        assert!(verdict.hazards.iter().any(|hazard| hazard.starts_with("pcie-width")), "{:?}", verdict.hazards);
    }

    #[test]
    fn a_slow_link_does_not_need_the_lanes_and_unknown_lanes_leave_it_open() {
        let gigabit = Scene { sender_facts: link(1_000, card(4)), ..truth() };
        assert_contradicts(&assessment(&CAUSE, Role::Sender, &gigabit, &[]), "much slower than the lanes");
        let scene = Scene { sender_facts: without(card(4), "pcie.bandwidth"), ..truth() };
        assert_cannot_tell(&assessment(&CAUSE, Role::Sender, &scene, &[]), "is not a PCIe device, or its lanes could not be read");
        none_proven(&scene, &[("other-direction", &other(3.83e9))]);
    }
}
