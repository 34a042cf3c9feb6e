//! # path-member
//!
//! One member of a group of equal paths (ECMP, link aggregate) loses packets: only the flows that the group's hash sends over it are hit.
//!
//! **Shows**: loss without a queue; UDP flows that differ in their ports alone, far below what the path carries, fall into two groups, one
//! that loses about alike and one that loses next to nothing. A trace with the same ports names the router that the lossy flows have in
//! common and the others do not.
//!
//! **Mistaken for**: random loss of the whole path (all flows lose alike), a policer of each flow and a queue that overflows (no flow loses
//! far below the rate), one receive queue of a host (its counters grow). A single flow cannot tell.
//!
//! **Fix**: no setting of the hosts: take the member out of the group, or mend its link. Several streams or another source port evade it.
//!
//! It has no ceiling of its own: what a connection over the member gets follows from its loss as for any loss, and the others get all.
//!
//! Source: RFC 2992; IEEE 802.1AX 5.2.4; RFC 7690.

use crate::causes::shared::member::{assess_ports, fix};
use crate::causes::shared::rule::*;
use crate::causes::shared::tcp_stage::{COMMON, felt_loss};
use crate::evidence::tcp::Loss;
use crate::experiments::tcp::AGAIN;
use crate::judge::Within;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "path-member",
    about: "one member of a group of equal paths (ECMP, LAG) loses packets",
    roles: &[Role::Path],
    needs: &[keys::QDISC_DROPS],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["random-loss", "path-policer", "path-capacity", "qdisc-drop", "single-queue"],
    fix: |evidence, _| fix(evidence.paced_udp.get(crate::experiments::ports::MANY_PORTS.id)),
    rank: 7,
    without: |evidence, _| without(evidence),
    detailed_by: |_| Some(&AGAIN),
    ..Cause::COMMON
};

/// A loss-based congestion control gets half of a policer's rate and more.
const POLICED: f64 = 0.5;

/// What a connection gets that no longer meets the member, where the load was made once more and its port fell on another one.
fn without(evidence: &TcpEvidence) -> Option<Within> {
    let (again, lost) = (evidence.made(&AGAIN)?, evidence.base.loss?);
    let loss = again.loss?;
    let clean = loss.sent as f64 * lost.rate() >= 8.0 && loss.rate() < lost.rate() / 10.0;
    let bps = again.goodput_bps;
    clean.then_some((bps, [bps * 0.85, bps * 1.1]))
}

fn assess(evidence: &TcpEvidence, _: Role) -> Ruling {
    let loss = felt_loss(evidence, evidence.base.worst_loss(), |loss| loss.is_few(5) || loss.rate() < COMMON)?;
    let room = evidence.path_has_room();
    if evidence.slowed_by_queue() == Some(true) || (!room && evidence.queue_stood() == Some(true)) {
        return Err(contradicts("the losses came when the load filled the path and waited: its queue dropped them"));
    }
    let policed = evidence.policed();
    if policed && evidence.filled().is_some_and(|part| part > POLICED) {
        return Err(contradicts("a policer drops what exceeds its rate"));
    }
    assess_ports(evidence.paced_udp.get(crate::experiments::ports::MANY_PORTS.id), |member| {
        let rates = evidence.base.losses.iter().filter(|loss| !loss.is_few(3)).map(Loss::rate);
        let met = rates.chain([loss.rate()]).any(|rate| member.explains(rate));
        met.then(|| counter(words(evidence, loss)))
            .ok_or_else(|| format!("TCP lost {}, not as that member does", units::percent(loss.rate())))
    })
}

fn words(evidence: &TcpEvidence, loss: Loss) -> String {
    let lost = format!("{} of the segments ({} of {})", units::percent(loss.rate()), loss.lost(), loss.sent);
    match evidence.base.streams {
        0 | 1 => format!("TCP lost {lost} without a queue on the path"),
        all => {
            let least = evidence.base.losses.iter().map(Loss::rate).fold(f64::INFINITY, f64::min);
            format!("of {all} streams of TCP one lost {lost}, another {}", units::percent(least))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::diagnose;
    use crate::experiments::ports::MANY_PORTS;
    use crate::testing::*;
    use crate::testing::profile::{Excess, ProfiledPath};
    use crate::testing::udp::with_ports;
    use narrows_model::Run;
    use super::*;

    /// 1 % at 35 ms on a path of 1 Gbit/s: the profile's own port was lucky.
    fn lossy() -> Scene {
        let profile = Some(ProfiledPath::default());
        Scene { goodput_bps: 4.4e6, segments: 3_000, lost: 30, cwnd: 13, profile, ..slow() }
    }

    /// So many flows that lost ten of 1,000, and others that lost none.
    fn two_groups(run: Run, lossy: usize, clean: usize) -> Run {
        let lost: Vec<u64> = (0..lossy + clean).map(|at| if at < lossy { 9 + at as u64 % 3 } else { 0 }).collect();
        with_ports(run, 1_000, &lost)
    }

    fn of(run: &Run) -> Assessment {
        answer(assess(&TcpEvidence::of(run, 0).expect("a baseline"), Role::Path))
    }

    #[test]
    fn loss_that_is_not_felt_is_none_of_either_rule_in_the_same_words() {
        let both = |scene: &Scene, says: &str| {
            assert_contradicts(&of(&scene.run(&[])), says);
            assert_contradicts(&assessment(&crate::causes::tcp::random_loss::CAUSE, Role::Path, scene, &[]), says);
        };
        both(&Scene { lost: 2, ..lossy() }, "only 2 of 3000 segments were lost");
        both(&Scene { congestion_control: "bbr", ..lossy() }, "BBR does not reduce its rate at a loss of 1.0 %");
        both(&Scene { rwnd: 0.9, ..lossy() }, "the congestion window, which loss acts on, limited the sender only");
        both(&Scene { sender_counts: vec![("qdisc.drops", 30)], ..lossy() }, "dropped");
    }

    #[test]
    fn flows_in_two_groups_name_it_and_clear_the_rest_of_the_path() {
        let run = lossy().run(&[]);
        assert_asks(&of(&run), &MANY_PORTS);
        let next = diagnose(&run, 0).expect("a baseline").next;
        assert!(next.iter().any(|planned| planned.id == MANY_PORTS.id), "{next:?}");
        let verdict = diagnose(&two_groups(run, 8, 24), 0).expect("a baseline").verdict;
        assert_eq!((verdict.status, &*verdict.causes[0].id), (Status::Limited, "path-member"), "{verdict:#?}");
        let says = &verdict.causes[0].witnesses;
        assert!(says.iter().any(|it| it.says.contains("which takes 25 % of the flows (95 %: 13")), "{says:#?}");
        assert!(verdict.causes[0].rejected.iter().any(|it| it.id == "random-loss"), "{verdict:#?}");
    }

    #[test]
    fn a_profile_that_met_the_member_too_is_no_loss_of_the_whole_path() {
        let path = ProfiledPath { one_lost_of: Some(100), ..ProfiledPath::default() };
        let scene = Scene { profile: Some(path), ..lossy() };
        let before = diagnose(&scene.run(&[]), 0).expect("a baseline");
        assert_eq!((before.verdict.status, &*before.verdict.causes[0].id), (Status::Suspected, "random-loss"));
        assert!(before.next.iter().any(|it| it.id == MANY_PORTS.id && it.decides), "{:?}", before.next);
        let verdict = diagnose(&two_groups(scene.run(&[]), 10, 20), 0).expect("a baseline").verdict;
        assert_eq!(verdict.causes[0].id, "path-member", "{verdict:#?}");
        // The same loss of all flows is of the path.
        let alike = with_ports(scene.run(&[]), 1_000, &[12, 9, 10, 8, 13, 11, 7, 10, 9, 12, 10, 11]);
        assert_contradicts(&of(&alike), "all flows about the same part");
        assert_eq!(diagnose(&alike, 0).expect("a baseline").verdict.causes[0].id, "random-loss");
    }

    #[test]
    fn look_alikes_are_told_from_it() {
        // A policer of each flow drops nothing far below its rate.
        assert_contradicts(&of(&with_ports(lossy().run(&[]), 1_000, &[0; 24])), "at most 14 % of such flows are lossy");
        let policer = ProfiledPath { rate_bps: 5e6, excess: Excess::DroppedAfter(40), ..ProfiledPath::default() };
        assert_contradicts(&of(&Scene { profile: Some(policer), ..lossy() }.run(&[])), "policer");
        // A queue that overflows.
        let queued = Scene { rtt_us: 60_000, profile: None, ..lossy() };
        assert_contradicts(&of(&queued.run(&[])), "its queue dropped them");
        // Losses of one flow alone may be of a queue of its own; of one flow nothing can be said.
        let mut one = vec![0; 24];
        one[7] = 60;
        assert_cannot_tell(&of(&with_ports(lossy().run(&[]), 1_000, &one)), "too few flows to make a group");
        assert_cannot_tell(&of(&with_ports(lossy().run(&[]), 1_000, &[60])), "a single flow");
        // Each flow loses a part of its own, as behind policers of different rates.
        let spread: Vec<u64> = (0..24).map(|at| if at < 12 { 0 } else { 2 + (at - 12) * (at - 12) * 3 }).collect();
        assert_cannot_tell(&of(&with_ports(lossy().run(&[]), 1_000, &spread)), "");
        // Too few losses, and a member that TCP did not meet.
        let mut few = vec![0; 24];
        few[..10].fill(1);
        assert_cannot_tell(&of(&with_ports(lossy().run(&[]), 1_000, &few)), "too few");
        let other: Vec<u64> = (0..24).map(|at| if at < 8 { 200 } else { 0 }).collect();
        assert_contradicts(&of(&with_ports(lossy().run(&[]), 1_000, &other)), "not as that member does");
    }

    #[test]
    fn loss_that_slows_nothing_down_asks_for_nothing() {
        for scene in [Scene { lost: 0, ..lossy() }, Scene { rwnd: 0.8, ..lossy() }] {
            assert!(matches!(assessment(&CAUSE, Role::Path, &scene, &[]), Assessment::Contradicts(_)));
        }
        let bbr = Scene { congestion_control: "bbr", ..lossy() };
        assert_contradicts(&assessment(&CAUSE, Role::Path, &bbr, &[]), "BBR does not");
    }

    #[test]
    fn another_port_that_fell_on_a_clean_member_is_the_prediction() {
        let again = Scene { goodput_bps: 600e6, segments: 150_000, lost: 0, ..lossy() };
        let predicted = |again: &Scene| {
            let run = two_groups(lossy().run(&[("again", again)]), 8, 24);
            assert_supports(&of(&run));
            let prediction = diagnose(&run, 0).expect("a baseline").verdict.causes[0].prediction.clone();
            prediction.map(|it| (it.bps / 1e6).round())
        };
        assert_eq!(predicted(&again), Some(600.0));
        // One that met it again says nothing of the others.
        assert_ne!(predicted(&lossy()), Some(4.0));
    }
}
