//! Where on the path a cause is, by the trace that was made after the load.
//!
//! A trace from the client shows the MTU of the direction to the server only, and loss of the round trip. Its probes are few: a policer
//! does not drop them, and routers that limit ICMP answer fewer than arrive, so its loss counts only where the load lost about as much.
//! Where one member of a group of paths loses, the sender's end traces with the ports of the flows that were measured: what the lossy ones
//! have in common and the others do not is that member's.

use crate::evidence::ports::{Member, PortFlow, Ports, ports};
use crate::evidence::udp::view::UdpView;
use crate::experiments::ports::MANY_PORTS;
use narrows_model::load::udp::UdpPlan;
use narrows_model::trace::report::{TraceFinding, TraceReport};
use narrows_model::words::figures::float;
use narrows_model::{AnswerKind, Direction, Flow, Place, Run, Status, TraceRecord, Verdict, Witness};
use narrows_search::trace::view;
use narrows_stats::more_often;

/// Causes that the MTU findings of a trace locate.
const MTU: [&str; 2] = ["mtu-black-hole", "mtu-mismatch"];
/// The cause that its loss finding locates: it loses the same part of any traffic.
const LOSS: &str = "random-loss";

/// The cause that is located by the routers of single flows.
const MEMBER: &str = "path-member";

/// What a trace must measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// The path MTU.
    Mtu,
    /// Loss at each hop.
    Loss,
    /// The routers of the flows with these source and destination ports; data goes this way.
    Flows(Flow, Vec<[u16; 2]>),
}

/// The findings of a trace that locate a cause.
fn findings_for(cause: &str, direction: Direction) -> &'static [&'static str] {
    if MTU.contains(&cause) && direction != Direction::Down {
        &["black-hole", "mtu-shrinks"]
    } else if cause == LOSS {
        &["loss"]
    } else {
        &[]
    }
}

/// What a trace must measure to locate a cause of this verdict; `None`: it can locate none.
pub fn wanted(run: &Run, verdict: &Verdict) -> Option<Wanted> {
    let mut on_path = verdict.causes.iter().filter(|_| verdict.status != Status::Healthy);
    on_path.find_map(|cause| match cause.id.as_str() {
        _ if cause.at != Place::Path => None,
        MEMBER => {
            let (flow, member) = member(run)?;
            Some(Wanted::Flows(flow, in_turn(&member).into_iter().map(|it| it.ports).collect()))
        }
        id if findings_for(id, verdict.direction).is_empty() => None,
        id => Some(if MTU.contains(&id) { Wanted::Mtu } else { Wanted::Loss }),
    })
}

/// The member that the first round's load of many ports found, and the direction of the data.
fn member(run: &Run) -> Option<(Flow, Member)> {
    let (_, trial) = run.experiments::<UdpPlan>(0).find(|(id, _)| *id == MANY_PORTS.id)?;
    let flow = *trial.plan.flows().first()?;
    match ports(&UdpView::of(trial, flow)?) {
        Ports::TwoGroups(member) => Some((flow, member)),
        _ => None,
    }
}

/// Flows of both groups in turn: routers that limit their answers answer the first ones.
fn in_turn(member: &Member) -> Vec<PortFlow> {
    let longest = member.lossy.len().max(member.clean.len());
    (0..longest).flat_map(|at| [member.lossy.get(at), member.clean.get(at)]).flatten().copied().collect()
}

/// Chance puts the flows of one group so apart from the others at a hop less often than this.
const CHANCE: f64 = 0.01;
/// Maximum share of flows that chance puts into the wrong group.
const WRONG: f64 = 0.1;

/// Where the lossy flows have a router in common that the others do not have, in a sentence; or that they share all routers.
fn where_member(path: &TraceRecord, member: &Member) -> Option<String> {
    let flow_of = |ports: &[u16; 2]| path.plan.ports.iter().position(|other| other == ports);
    let of = |flows: &[PortFlow]| -> Vec<usize> { flows.iter().filter_map(|it| flow_of(&it.ports)).collect() };
    let (lossy, clean) = (of(&member.lossy), of(&member.clean));
    let answers = |ttl: u8, flows: &[usize]| -> Vec<std::net::IpAddr> {
        let of_flow = |flow: &usize| {
            let probes = path.probes.iter().filter(|it| it.ttl == ttl && usize::from(it.flow) == *flow);
            let mut answers = probes.filter_map(|it| it.answer.as_ref());
            answers.find(|it| it.kind == AnswerKind::TimeExceeded).map(|it| it.from)
        };
        flows.iter().filter_map(of_flow).collect()
    };
    let last = path.probes.iter().map(|it| it.ttl).max()?;
    let mut shared = Vec::new();
    for ttl in 1..=last {
        let (bad, good) = (answers(ttl, &lossy), answers(ttl, &clean));
        let mut routers = bad.clone();
        routers.sort_unstable();
        routers.dedup();
        for router in &routers {
            let at =
                |all: &[std::net::IpAddr]| [all.iter().filter(|it| *it == router).count() as u64, all.len() as u64];
            let ([hits, of], [others, all]) = (at(&bad), at(&good));
            let apart = float(hits) >= (1.0 - WRONG) * float(of) && float(others) <= WRONG * float(all);
            if apart && more_often([hits, of], [others, all]).is_some_and(|p| p < CHANCE) {
                return Some(format!(
                    "router {router} at hop {ttl}, {}: of the {of} lossy flows that were traced there {hits} pass it, of {all} others {others}",
                    member.count()
                ));
            }
        }
        if let ([router], true) = (&routers[..], !good.is_empty() && good.iter().all(|it| Some(it) == routers.first()))
        {
            shared.push(format!("hop {ttl} ({router})"));
        }
    }
    let all = (1..=last).filter(|ttl| !answers(*ttl, &lossy).is_empty()).count();
    (!shared.is_empty() && shared.len() == all).then(|| {
        format!(
            "lossy and other flows share the routers that answer, {}: the member is a link of an aggregate, or beyond them",
            shared.join(", ")
        )
    })
}

/// Adds what the trace shows: the place of a cause to its evidence, that of the first one to the headline; an asymmetric path.
/// `loss`: the part of its packets that the load lost.
pub(crate) fn locate(verdict: &mut Verdict, run: &Run, path: &TraceRecord, loss: Option<f64>) {
    if !path.plan.ports.is_empty() {
        let says = member(run).and_then(|(_, member)| where_member(path, &member));
        for (at, cause) in verdict.causes.iter_mut().enumerate().filter(|(_, cause)| cause.id == MEMBER) {
            let Some(says) = says.clone() else { return };
            if at == 0 {
                verdict.headline.push_str(&format!("; {says}"));
            }
            cause.witnesses.push(Witness { kind: "trace".to_owned(), says });
        }
        return;
    }
    let report = view::report(path);
    // Without a router there is no place to name.
    if report.hops.len() < 2 {
        return;
    }
    let direction = verdict.direction;
    for (at, cause) in verdict.causes.iter_mut().enumerate().filter(|(_, cause)| cause.at == Place::Path) {
        let wanted = findings_for(&cause.id, direction);
        let found: Vec<&TraceFinding> = report
            .findings
            .iter()
            .filter(|it| wanted.contains(&it.id.as_str()) && (it.id != "loss" || agrees(&report, loss)))
            .collect();
        if let Some(first) = found.first().filter(|_| at == 0) {
            verdict.headline.push_str(&format!("; the trace finds: {}", first.says));
        }
        cause.witnesses.extend(found.iter().map(|it| Witness { kind: "trace".to_owned(), says: it.says.clone() }));
    }
    let asymmetry = report.findings.iter().find(|it| it.id == "asymmetry");
    verdict.hazards.extend(asymmetry.map(|it| format!("asymmetric path: {}", it.says)));
}

/// Whether the last hop that answers lost no more probes than the load's own loss makes of them: three standard deviations above it.
fn agrees(report: &TraceReport, loss: Option<f64>) -> bool {
    let last = report.hops.iter().rev().find(|hop| hop.answered > 0 && !hop.limits_answers);
    let (Some(last), Some(loss)) = (last, loss) else { return false };
    let (sent, lost) = (f64::from(last.sent), f64::from(last.sent.saturating_sub(last.answered)));
    lost <= sent * loss + 3.0 * (sent * loss * (1.0 - loss)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose;
    use crate::experiments::tcp::SMALL_SEGMENTS;
    use crate::testing::udp::with_ports;
    use crate::testing::{Scene, slow};
    use narrows_model::{AnswerKind, Ending, ProbePurpose, TraceAnswer, TracePlan, TraceProbe, TraceProtocol};
    use std::collections::BTreeMap;
    use std::net::IpAddr;

    /// Three routers; behind the second packets above 1400 bytes vanish.
    fn trace() -> TraceRecord {
        let answer = |hop: u8, kind| TraceAnswer {
            at_us: 1_000,
            from: IpAddr::from([10, 0, hop, 2]),
            kind,
            reply_ttl: Some(60 - hop),
            mtu: None,
            mpls: Vec::new(),
            refused: false,
        };
        let probe = |purpose, ttl: u8, bytes, answered: bool| {
            let kind = if ttl == 4 { AnswerKind::Reached } else { AnswerKind::TimeExceeded };
            TraceProbe { purpose, flow: 0, ttl, bytes, sent_us: 0, answer: answered.then(|| answer(ttl, kind)) }
        };
        let mut probes: Vec<TraceProbe> = (1..=4).map(|ttl| probe(ProbePurpose::Sample, ttl, 64, true)).collect();
        probes.extend(
            [(4, 1500, false), (2, 1500, true), (3, 1500, false), (4, 1400, true)]
                .map(|(ttl, bytes, came)| probe(ProbePurpose::Mtu, ttl, bytes, came)),
        );
        let target = IpAddr::from([10, 0, 4, 2]);
        let plan = TracePlan {
            asked: target.to_string(),
            target,
            protocol: TraceProtocol::Udp,
            port: 33_434,
            first_ttl: 1,
            max_ttl: 30,
            gap: 5,
            rounds: 1,
            continuous: false,
            flows: 1,
            interval_ms: 50,
            wait_ms: 500,
            probe_bytes: 64,
            ports: Vec::new(),
            mtu: true,
            names: false,
        };
        TraceRecord {
            plan,
            started_unix_us: 0,
            probes,
            forgotten: 0,
            unmatched: 0,
            other_ports: BTreeMap::new(),
            first_link_mtu: Some(1500),
            mtu_done: true,
            names: BTreeMap::new(),
            ending: Ending::Complete,
            back: None,
        }
    }

    /// A load of 24 flows, of which those of `lossy` lose, with the trace of them; `at`: their router at hop 2.
    fn traced(lossy: &[usize], at: fn(usize) -> Option<u8>) -> Verdict {
        let scene = Scene { goodput_bps: 4.4e6, segments: 3_000, lost: 30, cwnd: 13, ..slow() };
        let lost: Vec<u64> = (0..24).map(|flow| if lossy.contains(&flow) { 10 } else { 0 }).collect();
        let mut run = with_ports(scene.run(&[]), 1_000, &lost);
        let found = diagnose(&run, 0).expect("a baseline").verdict;
        let Some(Wanted::Flows(Flow::Up, ports)) = wanted(&run, &found) else { panic!("{found:#?}") };
        // Both groups in turn.
        let flow_of = |port: &[u16; 2]| usize::from(port[0] - 50_000);
        assert!(lossy.contains(&flow_of(&ports[0])) && !lossy.contains(&flow_of(&ports[1])) && ports.len() == 24);
        let probe = |ttl: u8, flow: u16, router: Option<u8>| TraceProbe {
            purpose: ProbePurpose::Paths,
            flow,
            ttl,
            bytes: 64,
            sent_us: 0,
            answer: router.map(|router| TraceAnswer {
                at_us: 1_000,
                from: IpAddr::from([10, 0, ttl, router]),
                kind: AnswerKind::TimeExceeded,
                reply_ttl: None,
                mtu: None,
                mpls: Vec::new(),
                refused: false,
            }),
        };
        let mut path = trace();
        path.probes = (0_u16..)
            .zip(&ports)
            .flat_map(|(flow, port)| [probe(1, flow, Some(1)), probe(2, flow, at(flow_of(port)))])
            .collect();
        path.plan.ports = ports;
        run.path = Some(Box::new(path));
        diagnose(&run, 0).expect("a baseline").verdict
    }

    #[test]
    fn the_router_that_lossy_flows_have_in_common_is_named() {
        const LOSSY: [usize; 6] = [1, 4, 9, 13, 16, 22];
        let named = traced(&LOSSY, |flow| Some(if LOSSY.contains(&flow) { 7 } else { 1 + u8::from(flow % 2 == 0) }));
        let says = "router 10.0.2.7 at hop 2, 6 of 24 flows";
        assert!(named.headline.contains(says), "{}", named.headline);
        assert!(named.causes[0].witnesses.iter().any(|it| it.kind == "trace" && it.says.starts_with(says)));
        // One of its flows lost nothing by chance.
        let chance = traced(&LOSSY, |flow| Some(if LOSSY.contains(&flow) || flow == 0 { 7 } else { 1 }));
        assert!(chance.headline.contains("of 18 others 1"), "{}", chance.headline);
        // Links of an aggregate have one router in front of them; routers that do not answer tell nothing.
        let aggregate = traced(&LOSSY, |_| Some(1));
        assert!(
            aggregate.headline.contains("share the routers that answer, hop 1 (10.0.1.1), hop 2"),
            "{}",
            aggregate.headline
        );
        let crossed = traced(&LOSSY, |flow| Some(1 + u8::from(flow % 2 == 0)));
        assert!(!crossed.headline.contains("10.0."), "{}", crossed.headline);
        let few = traced(&LOSSY, |flow| (flow < 5).then_some(1 + u8::from(LOSSY.contains(&flow))));
        assert!(!few.headline.contains("router 10.0.2"), "{}", few.headline);
    }

    #[test]
    fn routers_that_limit_icmp_locate_no_loss() {
        let mut path = trace();
        let sample =
            path.probes.iter().rfind(|it| it.ttl == 4 && it.bytes == 64).expect("a sample of the target").clone();
        let lost = TraceProbe { answer: None, ..sample.clone() };
        path.probes.extend((0..9).map(|n| if n < 2 { sample.clone() } else { lost.clone() }));
        let report = view::report(&path);
        // Seven of ten without an answer: what half of the load's packets lost may be, and not what one of a thousand did.
        let last = report.hops.last().expect("hops");
        assert_eq!((last.sent, last.answered), (10, 3), "{report:#?}");
        assert!(agrees(&report, Some(0.5)) && !agrees(&report, Some(0.001)) && !agrees(&report, None));
    }

    #[test]
    fn a_black_hole_has_its_hop_in_headline_and_evidence() {
        let stuck = Scene { goodput_bps: 0.0, lost: 6, segments: 16, ..Scene::default() };
        let mut run = stuck.run(&[(SMALL_SEGMENTS.id, &Scene { goodput_bps: 200e6, ..Scene::default() })]);
        let before = diagnose(&run, 0).expect("a baseline").verdict;
        assert_eq!(wanted(&run, &before), Some(Wanted::Mtu), "{before:?}");
        run.path = Some(Box::new(trace()));
        let verdict = diagnose(&run, 0).expect("a baseline").verdict;
        let says = "between hop 2 (10.0.2.2) and hop 3 (10.0.3.2), packets above 1400 bytes vanish";
        assert!(
            verdict.headline.starts_with(&before.headline) && verdict.headline.contains(says),
            "{}",
            verdict.headline
        );
        let witness = verdict.causes[0].witnesses.last().expect("witnesses");
        assert!(witness.kind == "trace" && witness.says.starts_with(says), "{witness:?}");
        assert!(
            verdict.hazards.iter().any(|it| it.starts_with("asymmetric path: 4 hops to hop 4")),
            "{:?}",
            verdict.hazards
        );
        let run = Scene::default().run(&[]);
        let healthy = diagnose(&run, 0).expect("a baseline").verdict;
        assert_eq!(wanted(&run, &healthy), None, "{healthy:?}");
    }
}
