//! Where on the path a cause is, by the trace that was made after the load.
//!
//! A trace from the client shows the MTU of the direction to the server only, and loss of the round trip. Its probes are few: a policer
//! does not drop them, and routers that limit ICMP answer fewer than arrive, so its loss counts only where the load lost about as much.

use narrows_model::trace::report::{TraceFinding, TraceReport};
use narrows_model::{Direction, Place, Status, TraceRecord, Verdict, Witness};
use narrows_search::trace::view;

/// Causes that the MTU findings of a trace locate.
const MTU: [&str; 2] = ["mtu-black-hole", "mtu-mismatch"];
/// The cause that its loss finding locates: it loses the same part of any traffic.
const LOSS: &str = "random-loss";

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

/// What a trace must measure to locate a cause of this verdict: the path MTU (true) or loss; `None`: it can locate none.
pub fn wanted(verdict: &Verdict) -> Option<bool> {
    let located = |id: &str| !findings_for(id, verdict.direction).is_empty();
    let mut on_path = verdict.causes.iter().filter(|_| verdict.status != Status::Healthy);
    on_path.find(|cause| cause.at == Place::Path && located(&cause.id)).map(|cause| MTU.contains(&cause.id.as_str()))
}

/// Adds what the trace shows: the place of a cause to its evidence, that of the first one to the headline; an asymmetric path.
/// `loss`: the part of its packets that the load lost.
pub(crate) fn locate(verdict: &mut Verdict, path: &TraceRecord, loss: Option<f64>) {
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
    use crate::testing::Scene;
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
        assert_eq!(wanted(&before), Some(true), "{before:?}");
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
        let healthy = diagnose(&Scene::default().run(&[]), 0).expect("a baseline").verdict;
        assert_eq!(wanted(&healthy), None, "{healthy:?}");
    }
}
