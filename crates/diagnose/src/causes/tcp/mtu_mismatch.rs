//! # mtu-mismatch
//!
//! The hosts, or a host and the path, have different MTUs, and the smaller one costs goodput.
//!
//! **Shows**: the wire is full, with a large share of headers: the segment size follows the smaller MTU, while the
//! larger one would carry clearly more. Or the packets of a tunnel exceed the MTU below it: the sender creates fragments, and segments
//! that fit carry more.
//!
//! **Mistaken for**: a path at capacity: the wire is, the payload is not.
//!
//! **Fix**: the same MTU on both hosts and all hops between them; a tunnel's MTU smaller by what it adds.
//!
//! Source: RFC 8899, RFC 1191; `IP_MTU`, ip(7); RFC 4459 section 3.

use crate::causes::shared::layers::{fragmented, misfit};
use crate::causes::shared::rule::*;
use crate::causes::shared::words;
use crate::evidence::tcp::{AT_CAPACITY, BEYOND, NO_MORE};
use crate::experiments::tcp::{FITTING_SEGMENTS, MORE_STREAMS, tunnel_mtu};

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "mtu-mismatch",
    about: "the MTUs of the hosts or the path differ, and the smaller one costs goodput",
    roles: &[Role::Sender, Role::Receiver, Role::Path],
    needs: &[
        keys::NIC_MTU,
        keys::PATH_MTU,
        keys::NIC_NAME,
        keys::NIC_KIND,
        keys::NIC_SPEED,
        keys::LAYER_NAME,
        keys::LAYER_KIND,
        keys::LAYER_MTU,
        keys::LAYER_OVERHEAD,
        keys::SNMP_IP_FRAG_CREATES,
        keys::SNMP6_IP6_FRAG_CREATES,
    ],
    ceiling,
    assess,
    look_alikes: &["path-capacity", "link-speed", "random-loss"],
    fix,
    rank: 9,
    explains_link: true,
    removed_by: Some(&FITTING_SEGMENTS),
    ..Cause::COMMON
};

/// A mismatch that costs less of the goodput than this is a hazard, not a cause. An ordinary MTU of 1500 costs 4.9 %
/// against one of 9000 (6.0 % over IPv6), and jumbo frames on one side of the Internet are no fault of the other.
const COST: f64 = 0.07;

/// The smallest MTU in force, the largest of a host's, and the role of the smallest.
fn mtus(evidence: &TcpEvidence) -> Option<(f64, f64, Role)> {
    let (sender, receiver) = (evidence.number(Role::Sender, keys::NIC_MTU)?, evidence.number(Role::Receiver, keys::NIC_MTU)?);
    let largest = sender.max(receiver);
    let segment = evidence.base.mss_bytes.map(|mss| mss + f64::from(evidence.segment_header_bytes()));
    let path = evidence.number(Role::Sender, keys::PATH_MTU).into_iter().chain(segment).reduce(f64::min);
    let smallest_host = sender.min(receiver);
    match path {
        // The segment size may lie a few bytes below the MTU for options; a real difference is larger.
        Some(path) if path < smallest_host - 40.0 && evidence.load.mss_bytes.is_none() => {
            Some((path, smallest_host, Role::Path))
        }
        _ if sender < receiver => Some((sender, largest, Role::Sender)),
        _ => Some((receiver, largest, Role::Receiver)),
    }
}

fn efficiencies(evidence: &TcpEvidence) -> Option<(f64, f64, Role)> {
    let (small, large, role) = mtus(evidence)?;
    let headers = f64::from(evidence.segment_header_bytes());
    Some((evidence.wire_efficiency(small - headers), evidence.wire_efficiency(large - headers), role))
}

/// Whether packets that are smaller than they need be cost goodput: what the path carries of them is not its capacity.
pub(super) fn costs(evidence: &TcpEvidence) -> bool {
    efficiencies(evidence).is_some_and(|(small, large, _)| small <= (1.0 - COST) * large)
}

fn ceiling(evidence: &TcpEvidence, role: Role) -> Option<Ceiling> {
    let (small, _, at) = efficiencies(evidence)?;
    if at != role || !costs(evidence) {
        return None;
    }
    let (mtu, ..) = mtus(evidence)?;
    // The path was profiled with packets of that size.
    if let Some(bps) = evidence.capacity_goodput_bps() {
        let how = format!("capacity for packets of {mtu:.0} bytes (path profile), less headers");
        return ceiling_at(CAUSE.id, evidence, role, bps, [AT_CAPACITY, BEYOND], Method::Measured, how);
    }
    let link = evidence.link_bps()?;
    let how = format!("link of {} x {small:.3} payload at an MTU of {mtu:.0}", units::bps(link));
    ceiling_at(CAUSE.id, evidence, role, link * small, [0.93, 1.02], Method::Computed, how)
}

fn assess(evidence: &TcpEvidence, role: Role) -> Assessment {
    if let Some(assessment) = fragmented(evidence, role) {
        return assessment;
    }
    let (Some((mtu, large_mtu, at)), Some((small, large, _))) = (mtus(evidence), efficiencies(evidence)) else {
        return cannot_tell("the MTUs of both ends are not known");
    };
    if mtu >= large_mtu - 40.0 {
        return contradicts(format!("both ends and the path agree on an MTU of {mtu:.0}"));
    }
    if at != role {
        return contradicts(format!("the smaller MTU is at {}", who(evidence, at)));
    }
    if !costs(evidence) {
        return contradicts(format!(
            "the MTUs differ ({mtu:.0} and {large_mtu:.0}), at a cost of less than {} of the goodput",
            units::percent(COST)
        ));
    }
    let mut witnesses = vec![parameter(format!(
        "the MTU is {mtu:.0} at {} and {large_mtu:.0} elsewhere: {} of the wire carries payload instead of {}",
        who(evidence, role),
        units::percent(small),
        units::percent(large)
    ))];
    if let Some(filled) = evidence.filled().filter(|filled| (AT_CAPACITY..BEYOND).contains(filled)) {
        witnesses.push(experiment(format!(
            "goodput plus headers is {} of the capacity for packets of that size",
            units::percent(filled)
        )));
    }
    if let Some(more) = evidence.made(&MORE_STREAMS).filter(|more| more.goodput_bps < NO_MORE * evidence.goodput_bps()) {
        witnesses.push(experiment(format!(
            "four times the streams carried no more, {}: the path is full of small packets",
            units::bps(more.goodput_bps)
        )));
    }
    if let Some(queue) = evidence.queue_us().filter(|_| evidence.queue_stood() == Some(true)) {
        witnesses.push(counter(format!("the wire is full: queue of {}", units::micros(queue as u64))));
    }
    Assessment::Supports { share: 0.96, witnesses }
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    if fragmented(evidence, role).is_some() {
        return tunnel_fix(evidence, role);
    }
    let large = mtus(evidence).map_or(1500.0, |(_, large, _)| large);
    let advice = format!("set an MTU of {large:.0} on both hosts and all hops between them");
    let (Some(device), true) = (evidence.text(role, keys::NIC_NAME), role != Role::Path) else {
        return words::advice(advice);
    };
    let setting = Setting::Mtu { device: device.to_owned(), mtu: large as u32 };
    setting_fix(evidence, role, advice, setting)
}

/// The MTU of the tunnel with which nothing below it is fragmented.
fn tunnel_fix(evidence: &TcpEvidence, role: Role) -> Fix {
    let device = misfit(evidence, role).map(|found| found.device);
    let device = device.or_else(|| evidence.text(role, keys::NIC_NAME).map(str::to_owned));
    let (Some(device), Some(mtu)) = (device, evidence.host(role).and_then(tunnel_mtu)) else {
        return words::advice("give the tunnel an MTU that is smaller than that below it by what it adds, on both hosts");
    };
    let advice = format!("give {device} an MTU of {mtu}, on both ends of the tunnel: its packets must fit the device below it");
    setting_fix(evidence, role, advice, Setting::Mtu { device, mtu })
}

#[cfg(test)]
mod tests {
    use crate::layers::tests::stack;
    use crate::testing::*;
    use super::*;

    fn mtu(bytes: i64) -> Vec<Fact> {
        with(ordinary_host(), fact("nic.mtu", bytes, Unit::Bytes))
    }

    /// A receiver with an MTU of 400: 348 bytes of payload in 438 on the wire.
    fn truth() -> Scene {
        Scene { goodput_bps: 794e6, early_peak_bps: 794e6, mss: 348, receiver_facts: mtu(400), ..Scene::default() }
    }

    #[test]
    fn a_wire_that_is_full_of_headers_is_named_at_the_smaller_end() {
        let finding = named(&truth(), &[], "mtu-mismatch", Place::Server);
        assert_eq!(finding.fix.commands[0].run, "ip link set dev eth0 mtu 1500");
        assert_rejects(&finding, "random-loss", "only 0");
        assert_contradicts(&assessment(&CAUSE, Role::Sender, &truth(), &[]), "the smaller MTU is at the receiver");
    }

    #[test]
    fn a_path_that_carries_less_than_both_hosts_think_is_named_without_a_command() {
        let path = with(ordinary_host(), fact("path.mtu", 576_i64, Unit::Bytes));
        let scene =
            Scene { goodput_bps: 853e6, mss: 524, sender_facts: path, receiver_facts: ordinary_host(), ..truth() };
        let finding = named(&scene, &[], "mtu-mismatch", Place::Path);
        assert!(finding.fix.commands.is_empty());
    }

    #[test]
    fn jumbo_frames_on_one_side_are_no_fault_of_the_other() {
        let scene =
            Scene { goodput_bps: 941e6, mss: 1448, sender_facts: mtu(9000), receiver_facts: mtu(1500), ..truth() };
        assert_contradicts(&assessment(&CAUSE, Role::Receiver, &scene, &[]), "at a cost of less than");
        let agreed = Scene { receiver_facts: mtu(1500), mss: 1448, ..truth() };
        assert_contradicts(&assessment(&CAUSE, Role::Receiver, &agreed, &[]), "agree on an MTU of 1500");
    }

    #[test]
    fn it_must_cost_seven_parts_of_a_hundred() {
        // 648/738 of the wire against 1448/1538 is 6.7 % less; 628/718 is 7.1 %.
        let of = |bytes: i64, mss| {
            assessment(&CAUSE, Role::Receiver, &Scene { receiver_facts: mtu(bytes), mss, ..truth() }, &[])
        };
        assert_contradicts(&of(700, 648), "at a cost of less than");
        assert_supports(&of(680, 628));
    }

    #[test]
    fn a_segment_size_that_the_user_chose_is_not_held_against_the_path() {
        let mut scene = Scene { mss: 500, receiver_facts: ordinary_host(), ..truth() };
        scene.load.mss_bytes = Some(500);
        assert_contradicts(&assessment(&CAUSE, Role::Path, &scene, &[]), "agree");
    }

    /// A tunnel of 1500 bytes over a link of 1500: each segment leaves as two fragments.
    fn tunnel(goodput_bps: f64, fragments: i64) -> Scene {
        let layers = stack(&[("vx0", "vxlan", 1500, 50), ("eth0", "physical", 1500, 0)]);
        let sender_facts = ordinary_host().into_iter().chain(layers).collect();
        let sender_counts = vec![("snmp.Ip.FragCreates", fragments)];
        Scene { goodput_bps, rtt_us: 35_100, sender_facts, sender_counts, ..Scene::default() }
    }

    #[test]
    fn a_tunnel_whose_packets_are_fragmented_below_it_is_named_with_the_mtu_that_fits() {
        let (slow, fast) = (tunnel(300e6, 1_200_000), tunnel(600e6, 0));
        let finding = named(&slow, &[(FITTING_SEGMENTS.id, &fast)], "mtu-mismatch", Place::Client);
        assert_eq!(finding.fix.commands[0].run, "ip link set dev vx0 mtu 1450");
        assert_eq!(finding.prediction.expect("it was measured").bps.round(), 600e6);
        assert!(finding.witnesses.iter().any(|it| it.says.contains("eth0 below it (physical) has an MTU of 1500")));
        assert_asks(&assessment(&CAUSE, Role::Sender, &slow, &[]), &FITTING_SEGMENTS);
    }

    #[test]
    fn fragments_that_cost_nothing_and_a_few_of_other_traffic_are_none() {
        let (slow, same) = (tunnel(300e6, 1_200_000), tunnel(320e6, 0));
        let of = |scene, made: &[_]| assessment(&CAUSE, Role::Sender, scene, made);
        assert_contradicts(&of(&slow, &[(FITTING_SEGMENTS.id, &same)]), "the fragments cost little");
        assert_contradicts(&of(&tunnel(300e6, 1_000), &[]), "agree on an MTU of 1500");
    }

    #[test]
    fn an_unknown_mtu_leaves_it_open() {
        let scene = Scene { receiver_facts: without(ordinary_host(), "nic.mtu"), ..truth() };
        for role in [Role::Sender, Role::Receiver, Role::Path] {
            assert_cannot_tell(&assessment(&CAUSE, role, &scene, &[]), "not known");
        }
    }
}
