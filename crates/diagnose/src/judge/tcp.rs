//! The verdict: of all causes that testify, the one that binds, by two independent witnesses.

use crate::causes::tcp::{self as causes, Cause};
use crate::evidence::tcp::Evidence;
use crate::evidence::tcp::budget::time_budget;
use crate::experiments::Experiment;
use crate::judge::assessment::Assessment;
use crate::judge::ceilings::{PlacedCeiling, TOLERANCE, roofline, sits_at};
use crate::judge::exclusion::is_open;
use crate::role::Role;
use narrows_model::{Accounts, Ceiling, Finding, Prediction, Run, Status, Verdict, Witness, words::units};

/// What is said of one act.
#[derive(Debug, Clone)]
pub struct TcpDiagnosis {
    /// From 0.
    pub act: u32,
    /// The roofline and the time budget.
    pub accounts: Accounts,
    /// What limits the path.
    pub verdict: Verdict,
    /// The experiments that would decide what is left open, most useful first.
    pub wanted: Vec<Experiment>,
}

/// A cause that testified, with what speaks for it.
struct Candidate<'r> {
    cause: &'static Cause,
    role: Role,
    placed: Option<&'r PlacedCeiling>,
    share: f64,
    witnesses: Vec<Witness>,
}

impl Candidate<'_> {
    fn confidence(&self) -> f64 {
        let witnesses = self.witnesses.len().min(4);
        #[allow(clippy::cast_precision_loss)]
        let base = [0.2, 0.45, 0.8, 0.9, 0.95][witnesses];
        // A cause that explains little of the time explains the goodput only in part.
        (base * (0.75 + 0.25 * self.share)).min(0.99)
    }
}

/// Diagnoses one act of a run; `None` where its baseline was not measured.
#[must_use]
pub fn diagnose_tcp(run: &Run, act: u32) -> Option<TcpDiagnosis> {
    let evidence = Evidence::of(run, act)?;
    let ceilings = roofline(&evidence);
    let (mut candidates, mut open, mut hazards) = (Vec::new(), Vec::new(), Vec::new());
    for (cause, role) in causes::every_role() {
        let placed = ceilings.iter().find(|placed| std::ptr::eq(placed.cause, cause) && placed.role == role);
        match (cause.assess)(&evidence, role) {
            Assessment::Supports { share, witnesses } => {
                let at_work = |but: &str| format!("{} at {} is at work, but {but}", cause.id, evidence.place(role));
                // A ceiling that the goodput exceeds is in no roofline; it speaks against its cause all the same.
                let ceiling = (cause.ceiling)(&evidence, role);
                if let Some(ceiling) = ceiling.filter(|ceiling| !sits_at(ceiling, evidence.goodput_bps())) {
                    let bps = units::bps(ceiling.bps);
                    hazards.push(at_work(&format!("its ceiling of {bps} does not sit at the goodput")));
                } else if spared_by_a_full_link(&evidence, cause) {
                    hazards.push(at_work("the slower link is full: without it no more would pass"));
                } else if let Some(why) = is_open(&evidence, cause, role) {
                    open.push((cause, role, why, None));
                } else {
                    candidates.push(Candidate { cause, role, placed, share: share.clamp(0.0, 1.0), witnesses });
                }
            }
            Assessment::CannotTell { why, ask } => open.push((cause, role, why, ask)),
            Assessment::Contradicts(_) => {}
        }
    }
    for candidate in &mut candidates {
        if let Some(ceiling) = candidate.placed.filter(|ceiling| is_independent(ceiling, &evidence)) {
            let says = format!(
                "its ceiling, {} ({}), sits at the measured {}",
                units::bps(ceiling.ceiling.bps),
                ceiling.ceiling.how,
                units::bps(evidence.goodput_bps())
            );
            candidate.witnesses.insert(0, Witness { kind: "ceiling".into(), says });
        }
    }
    candidates.sort_by(|a, b| order(b).total_cmp(&order(a)));
    if candidates.first().is_some_and(|best| best.cause.healthy && best.witnesses.len() >= 2) {
        // A healthy path has nothing to mend: what else is at work does not bind.
        for other in candidates.extract_if(.., |candidate| !candidate.cause.healthy) {
            let (id, at) = (other.cause.id, evidence.place(other.role));
            hazards.push(format!("{id} at {at} is at work, but the path is at capacity"));
        }
    }
    let decided = candidates.first().is_some_and(|best| best.witnesses.len() >= 2);
    let wanted = wanted(&evidence, &candidates, &open, decided);
    let verdict = judge(&evidence, &ceilings, &candidates, &open, hazards);
    let accounts = Accounts {
        roofline: ceilings.into_iter().map(|ceiling| ceiling.ceiling).collect(),
        time_budget: time_budget(&evidence),
    };
    Some(TcpDiagnosis { act, accounts, verdict, wanted })
}

/// Whether a full link makes a cause that testifies harmless. What says why the link itself carries no more stays.
fn spared_by_a_full_link(evidence: &Evidence<'_>, cause: &Cause) -> bool {
    !cause.healthy && !matches!(cause.id, "link-speed" | "mtu-mismatch") && causes::fills_link(evidence)
}

/// Whether a ceiling says something that the goodput does not: one that is read off the goodput (the application
/// wrote this much; this part of a core was used for it) sits at it by arithmetic, and is no witness against anyone.
/// It is found by asking the rule again with a slightly higher goodput: does the ceiling follow in step? Capacity
/// accuses no one, and what a path carries while a queue stands on it *is* its ceiling.
fn is_independent(placed: &PlacedCeiling, evidence: &Evidence<'_>) -> bool {
    const STEP: f64 = 1.001;
    let mut other = evidence.clone();
    other.base.goodput_bps *= STEP;
    let follows = |ceiling: Ceiling| (ceiling.bps / placed.ceiling.bps - STEP).abs() < 1e-6;
    placed.cause.healthy || !(placed.cause.ceiling)(&other, placed.role).is_some_and(follows)
}

/// Two witnesses go before one; then what explains more of the time; then the more specific cause.
fn order(candidate: &Candidate<'_>) -> f64 {
    let proven = if candidate.witnesses.len() >= 2 { 10.0 } else { 0.0 };
    // A specific cause wins against a general one unless it explains clearly less: one step of rank is worth a tenth.
    proven + candidate.share + 0.1 * f64::from(candidate.cause.rank)
}

/// The experiments that open causes ask for. Where a proven cause with a strong share stands already, only those of
/// more specific causes are worth their time.
fn wanted(
    evidence: &Evidence<'_>,
    candidates: &[Candidate<'_>],
    open: &[(&'static Cause, Role, String, Option<Experiment>)],
    decided: bool,
) -> Vec<Experiment> {
    if causes::fills_link(evidence) {
        return Vec::new();
    }
    let best = candidates.first().filter(|_| decided);
    let mut wanted: Vec<Experiment> = open
        .iter()
        .filter(|(cause, ..)| best.is_none_or(|best| cause.rank >= best.cause.rank))
        .filter_map(|(_, _, _, ask)| *ask)
        .filter(|ask| !evidence.experiments.contains_key(ask.id()))
        .filter(|ask| *ask != Experiment::PacedUdp || !ask.udp_plans(evidence).is_empty())
        .collect();
    wanted.sort();
    wanted.dedup();
    wanted
}

fn judge(
    evidence: &Evidence<'_>,
    ceilings: &[PlacedCeiling],
    candidates: &[Candidate<'_>],
    open: &[(&'static Cause, Role, String, Option<Experiment>)],
    hazards: Vec<String>,
) -> Verdict {
    let causes: Vec<Finding> = candidates.iter().map(|candidate| finding(evidence, ceilings, candidate)).collect();
    let (status, headline) = match (candidates.first(), causes.first()) {
        (Some(best), Some(first)) if best.witnesses.len() >= 2 && best.cause.healthy => (
            Status::Healthy,
            format!("healthy: at capacity, {}", units::bps(evidence.goodput_bps())).to_owned()
                + if first.at == narrows_model::Place::Path { "" } else { " of the link" },
        ),
        (Some(best), Some(first)) if best.witnesses.len() >= 2 => (
            Status::Limited,
            format!(
                "limited to {} by {} at {}: {}",
                units::bps(evidence.goodput_bps()),
                first.id,
                first.at,
                best.cause.about
            ),
        ),
        (Some(best), Some(first)) => (
            Status::Suspected,
            format!(
                "{}; {} at {} is suspected ({}), with one witness only",
                units::bps(evidence.goodput_bps()),
                first.id,
                first.at,
                best.cause.about
            ),
        ),
        _ => (Status::Unknown, format!("{}; what limits it is unknown", units::bps(evidence.goodput_bps()))),
    };
    let missing = if status == Status::Limited || status == Status::Healthy {
        Vec::new()
    } else {
        open.iter().map(|(cause, role, why, _)| format!("{} at {}: {why}", cause.id, evidence.place(*role))).collect()
    };
    Verdict {
        status,
        headline,
        goodput_bps: evidence.goodput_bps(),
        direction: evidence.flow.direction(),
        causes,
        missing,
        hazards,
    }
}

fn finding(evidence: &Evidence<'_>, ceilings: &[PlacedCeiling], candidate: &Candidate<'_>) -> Finding {
    let cause = candidate.cause;
    let rejected = causes::rejected(cause.look_alikes, |id| {
        let other = causes::by_id(id)?;
        Some(other.roles.iter().map(|role| (other.assess)(evidence, *role)).collect())
    });
    Finding {
        id: cause.id.to_owned(),
        at: evidence.place(candidate.role),
        confidence: candidate.confidence(),
        summary: cause.about.to_owned(),
        ceiling_bps: candidate.placed.map(|ceiling| ceiling.ceiling.bps),
        prediction: if cause.healthy { None } else { predict(evidence, ceilings, candidate) },
        witnesses: candidate.witnesses.clone(),
        rejected,
        fix: (cause.fix)(evidence, candidate.role),
    }
}

/// Costs per byte that were read off a load hold for loads up to so many times as large: with larger bursts a byte
/// gets cheaper, so a limited load says nothing of the core at ten times its rate.
const EXTRAPOLATION: f64 = 2.5;

/// What to expect once the cause is gone: the lowest of the other ceilings that lies above the goodput. Ceilings that
/// were read off the limited load itself (a congestion window that was never needed, a core that was hardly used) are
/// left out.
fn predict(evidence: &Evidence<'_>, ceilings: &[PlacedCeiling], candidate: &Candidate<'_>) -> Option<Prediction> {
    // An experiment that already removed the cause is the best prediction there is.
    let measured = match candidate.cause.id {
        "congestion-control" => evidence.experiments.get(Experiment::OtherCongestionControl.id()),
        "tcp-receive-buffer-fixed" | "tcp-send-buffer-fixed" => evidence.experiments.get(Experiment::LargerBuffer.id()),
        _ => None,
    };
    if let Some(trial) = measured {
        return Some(Prediction {
            bps: trial.goodput_bps,
            interval_bps: [trial.goodput_bps * 0.85, trial.goodput_bps * 1.1],
            then: "path-capacity".to_owned(),
            then_at: narrows_model::Place::Path,
        });
    }
    let goodput = evidence.goodput_bps();
    let next = ceilings
        .iter()
        .filter(|ceiling| !(std::ptr::eq(ceiling.cause, candidate.cause) && ceiling.role == candidate.role))
        .filter(|ceiling| ceiling.ceiling.bps > goodput * (1.0 + TOLERANCE))
        .filter(|ceiling| ceiling.cause.id != "congestion-control" && ceiling.cause.id != "random-loss")
        .filter(|ceiling| {
            ceiling.ceiling.method != narrows_model::Method::Inferred || ceiling.ceiling.bps < EXTRAPOLATION * goodput
        })
        .min_by(|a, b| a.ceiling.bps.total_cmp(&b.ceiling.bps))?;
    Some(Prediction {
        bps: next.ceiling.bps,
        interval_bps: next.ceiling.interval_bps,
        then: next.ceiling.id.clone(),
        then_at: next.ceiling.at,
    })
}
