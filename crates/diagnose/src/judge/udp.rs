//! The verdict on a UDP trial: of all causes that testify, those that hold the loss, by two independent witnesses.

use crate::causes::udp::{self as causes, UdpCause};
use crate::evidence::paced::Part;
use crate::evidence::udp::UdpEvidence;
use crate::judge::assessment::Assessment;
use crate::role::Role;
use narrows_model::diagnosis::ledger::Ledger;
use narrows_model::run::{Purpose, UdpTrialRecord};
use narrows_model::{Finding, Flow, Prediction, Snapshot, Status, Verdict, Witness, words::units};

/// What is said of one UDP trial.
#[derive(Debug, Clone)]
pub struct UdpDiagnosis {
    /// The ledger of each flow, in the order of the plan.
    pub ledgers: Vec<Ledger>,
    /// What the loss of the first flow with any is due to.
    pub verdict: Verdict,
    /// The experiments that would decide what is left open, by the ids that their trials shall have in the run.
    pub wanted: Vec<&'static str>,
}

/// Diagnoses one act of UDP: its baseline (or, for `narrows measure udp`, its measurement) with the experiments of the same act.
///
/// `client` and `server` are the inventories of the hosts, from which the values of fixes are taken. `None` where there is
/// no such baseline, or nothing was sent in it. Of a trial both ways, the flow that lost the larger part is judged.
#[must_use]
pub fn diagnose_udp(trials: &[UdpTrialRecord], act: u32, client: &Snapshot, server: &Snapshot) -> Option<UdpDiagnosis> {
    let base = trials.iter().find(|record| match record.purpose {
        Purpose::Baseline { act: of } => of == act,
        Purpose::Measure => act == 0,
        _ => false,
    })?;
    let experiments: Vec<(&str, _)> = trials
        .iter()
        .filter_map(|record| match &record.purpose {
            Purpose::Experiment { act: of, id } if *of == act => Some((id.as_str(), &record.trial)),
            _ => None,
        })
        .collect();
    let of = |flow: &Flow| UdpEvidence::of(&base.trial, &experiments, *flow, client, server);
    let flows: Vec<UdpEvidence<'_>> = base.trial.plan.flows().iter().filter_map(of).collect();
    let judged =
        flows.iter().reduce(|worst, other| if other.base.loss() > worst.base.loss() { other } else { worst })?;
    let (verdict, wanted) = judge(judged);
    Some(UdpDiagnosis { ledgers: flows.iter().map(|flow| flow.base.ledger.clone()).collect(), verdict, wanted })
}

/// A cause that testified, with what speaks for it.
struct Candidate {
    cause: &'static UdpCause,
    role: Role,
    share: f64,
    witnesses: Vec<Witness>,
}

impl Candidate {
    const fn proven(&self) -> bool {
        self.witnesses.len() >= 2
    }

    fn confidence(&self) -> f64 {
        let base = [0.2, 0.45, 0.8, 0.9, 0.95][self.witnesses.len().min(4)];
        (base * (0.75 + 0.25 * self.share)).min(0.99)
    }
}

/// A sender that is behind its plan by less is on time.
const BEHIND: f64 = 0.02;

fn judge(evidence: &UdpEvidence<'_>) -> (Verdict, Vec<&'static str>) {
    let base = &evidence.base;
    let (mut candidates, mut open) = (Vec::new(), Vec::new());
    for (cause, role) in causes::every_role() {
        match (cause.assess)(evidence, role) {
            Assessment::Supports { share, witnesses } => {
                candidates.push(Candidate { cause, role, share: share.clamp(0.0, 1.0), witnesses });
            }
            Assessment::CannotTell { why, .. } => open.push(format!("{} at {}: {why}", cause.id, evidence.place(role))),
            Assessment::Contradicts(_) => {}
        }
    }
    let order = |candidate: &Candidate| candidate.share + if candidate.proven() { 10.0 } else { 0.0 };
    candidates.sort_by(|a, b| order(b).total_cmp(&order(a)));
    let wanted = wanted(evidence, &candidates);
    let whole = base.missing() == 0 && base.ledger.offered > 0;
    let on_time = base.behind <= BEHIND;
    if whole && on_time && !candidates.first().is_some_and(Candidate::proven) {
        let headline = format!(
            "healthy: {} of UDP, and not one of {} datagrams lost",
            units::bps(base.goodput_bps),
            base.ledger.offered
        );
        return (verdict(evidence, Status::Healthy, headline, Vec::new(), Vec::new()), Vec::new());
    }
    if candidates.first().is_some_and(|best| best.cause.healthy && best.proven()) {
        candidates.truncate(1);
    }
    let lost = if base.missing() > 0 {
        format!("{} of UDP arrived, {} lost", units::bps(base.goodput_bps), units::percent(base.loss()))
    } else {
        format!("{} of UDP, {} below what was asked for", units::bps(base.goodput_bps), units::percent(base.behind))
    };
    let (status, headline) = match candidates.first() {
        Some(best) if best.proven() && best.cause.healthy => (
            Status::Healthy,
            format!("healthy: at capacity, {} of UDP; more was offered", units::bps(base.goodput_bps)),
        ),
        Some(best) if best.proven() => {
            let at = evidence.place(best.role);
            (Status::Limited, format!("{lost}: {} at {at}, {}", best.cause.id, best.cause.about))
        }
        Some(best) => {
            let at = evidence.place(best.role);
            let about = best.cause.about;
            (
                Status::Suspected,
                format!("{lost}; {} at {at} is suspected ({about}), with one witness only", best.cause.id),
            )
        }
        None => (Status::Unknown, format!("{lost}; where is unknown")),
    };
    let missing =
        if matches!(status, Status::Limited | Status::Healthy) { Vec::new() } else { missing(evidence, open) };
    let findings = candidates.iter().map(|candidate| finding(evidence, candidate)).collect();
    (verdict(evidence, status, headline, findings, missing), wanted)
}

fn missing(evidence: &UdpEvidence<'_>, mut open: Vec<String>) -> Vec<String> {
    let ledger = &evidence.base.ledger;
    if ledger.unexplained != 0 {
        open.insert(
            0,
            format!(
                "{} datagrams (give or take {}) are in no counter of the two hosts and their path",
                ledger.unexplained, ledger.uncertainty
            ),
        );
    }
    open
}

fn verdict(
    evidence: &UdpEvidence<'_>,
    status: Status,
    headline: String,
    causes: Vec<Finding>,
    missing: Vec<String>,
) -> Verdict {
    Verdict {
        status,
        headline,
        goodput_bps: evidence.base.goodput_bps,
        direction: evidence.base.ledger.flow.direction(),
        causes,
        missing,
        hazards: Vec::new(),
    }
}

/// The paced trials where the path lost, and nothing proven explains more; larger datagrams where small ones are suspected.
fn wanted(evidence: &UdpEvidence<'_>, candidates: &[Candidate]) -> Vec<&'static str> {
    let base = &evidence.base;
    let mut wanted = Vec::new();
    let proven = |candidate: &&Candidate| candidate.proven();
    let explained: f64 = candidates.iter().filter(proven).map(|candidate| candidate.share).sum();
    let (_, on_path) = base.on_the_path();
    if on_path > base.missing() / 4 && explained < 0.75 {
        wanted.extend(evidence.paced.wanted().map(Part::id));
    }
    for (id, cause) in [
        (causes::small_datagrams::LARGER, "small-datagrams"),
        (causes::ip_fragmentation::UNFRAGMENTED, "ip-fragmentation"),
    ] {
        let suspected = candidates.iter().any(|candidate| candidate.cause.id == cause && !candidate.proven());
        if suspected && !evidence.experiments.contains_key(id) {
            wanted.push(id);
        }
    }
    wanted
}

fn finding(evidence: &UdpEvidence<'_>, candidate: &Candidate) -> Finding {
    let cause = candidate.cause;
    let rejected = crate::causes::tcp::rejected(cause.look_alikes, |id| {
        let other = causes::by_id(id)?;
        Some(other.roles.iter().map(|role| (other.assess)(evidence, *role)).collect())
    });
    Finding {
        id: cause.id.to_owned(),
        at: evidence.place(candidate.role),
        confidence: candidate.confidence(),
        summary: cause.about.to_owned(),
        ceiling_bps: None,
        prediction: if cause.healthy { None } else { predict(evidence, cause) },
        witnesses: candidate.witnesses.clone(),
        rejected,
        fix: (cause.fix)(evidence, candidate.role),
    }
}

/// Without the cause its stages drop nothing: all that they dropped arrives, unless a later stage is as narrow.
#[allow(clippy::cast_precision_loss)]
fn predict(evidence: &UdpEvidence<'_>, cause: &UdpCause) -> Option<Prediction> {
    let base = &evidence.base;
    let saved: u64 = cause.stages.iter().map(|id| base.dropped(id)).fold(0, u64::saturating_add);
    // What the path loses for want of capacity it loses after any advice.
    if saved == 0 || base.ledger.delivered == 0 || cause.stages == ["path"] {
        return None;
    }
    let each = base.goodput_bps / base.ledger.delivered as f64;
    let bps = each * base.ledger.delivered.saturating_add(saved) as f64;
    Some(Prediction {
        bps,
        interval_bps: [base.goodput_bps + 0.5 * (bps - base.goodput_bps), bps],
        then: "path-capacity".to_owned(),
        then_at: narrows_model::Place::Path,
    })
}
