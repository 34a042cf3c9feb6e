//! The verdict: of all causes that are supported, the one that binds, by two independent witnesses.

use super::assessment::Assessment;
use super::cause::{Cause, Evidence};
use super::ceilings::{PlacedCeiling, TOLERANCE, ceilings as ceilings_of, every_role, sits_at};
use super::experiment::{Experiment, Planned};
use super::predict::{Gone, Rooflines, SAME, is_gone, predict};
use crate::role::Role;
use narrows_model::{Ceiling, Finding, Method, Prediction, Rejected, Status, Verdict, Witness, words::units};

/// What is said of one baseline and its experiments.
#[derive(Debug, Clone)]
pub struct Judgement {
    /// What limits the flow.
    pub verdict: Verdict,
    /// Every ceiling that could be given a value, lowest first.
    pub ceilings: Vec<Ceiling>,
    /// The trials of experiments that would decide what is left open, most useful first.
    pub next: Vec<Planned>,
}

/// How often a first cause with so many witnesses was right: of 241 drawn cases with two and more of them (`fixtures/calibration.tsv`) 238,
/// as isotonic regression pools them (127 of 127, 106 of 109 and 5 of 5); of 222 older ones 95 %. Fewer than two are suspicions. A test
/// holds the table against the cases.
const RIGHT: [f64; 5] = [0.2, 0.45, 0.98, 0.98, 0.98];

/// Witness kind of a ceiling that is not derived from the goodput.
const CEILING: &str = "ceiling";

/// Independent witnesses that prove a cause.
const PROOF: usize = 2;

/// A cause that is supported, with what speaks for it.
struct Candidate<'c, E: 'static> {
    cause: &'static Cause<E>,
    role: Role,
    placed: Option<&'c PlacedCeiling<E>>,
    share: f64,
    witnesses: Vec<Witness>,
}

impl<E> Candidate<'_, E> {
    const fn proven(&self) -> bool {
        self.witnesses.len() >= PROOF
    }

    /// Whether it would hold the goodput down by itself: its ceiling is no reading of the goodput, and says what lies above.
    fn holds(&self) -> bool {
        let known = self.placed.is_some_and(|placed| placed.ceiling.method != Method::Inferred);
        let independent = || self.witnesses.iter().any(|witness| witness.kind == CEILING);
        self.proven() && !self.cause.healthy && self.cause.predicts && (known || independent())
    }

    /// By witnesses, a little less where it explains a part of the time only. `narrows lab scenarios --draw` prints how often it holds.
    fn confidence(&self) -> f64 {
        RIGHT[self.witnesses.len().min(RIGHT.len() - 1)] * (0.85 + 0.15 * self.share)
    }

    /// Two witnesses go before one; then what explains more; then the more specific cause, where one step of rank is
    /// worth a tenth of the share.
    fn order(&self) -> f64 {
        let proven = if self.proven() { 10.0 } else { 0.0 };
        proven + self.share + 0.1 * f64::from(self.cause.rank)
    }
}

/// Of two limits that lie this close both are named: without the lower one alone less than a quarter is gained.
const CLOSE: f64 = 1.25;

/// Whether the ceiling of `other` is no more than a quarter above that of `first`, and both hold the goodput down by themselves.
fn is_close<E>(first: &Candidate<'_, E>, other: &Candidate<'_, E>) -> bool {
    let (Some(a), Some(b)) = (first.placed, other.placed) else { return false };
    first.holds() && other.holds() && b.ceiling.bps <= CLOSE * a.ceiling.bps
}

/// A cause about which the evidence is not sufficient.
struct Open<E: 'static> {
    cause: &'static Cause<E>,
    role: Role,
    why: String,
    ask: Option<&'static Experiment>,
}

/// Judges a baseline with its experiments by the causes of a table.
pub fn judge<E: Evidence>(evidence: &E, causes: &'static [&'static Cause<E>]) -> Judgement {
    let ceilings = ceilings_of(evidence, causes);
    let (mut candidates, mut next_limits) = (Vec::new(), Vec::new());
    let (mut open, mut hazards) = (Vec::new(), Vec::new());
    for (cause, role) in every_role(causes) {
        match cause.weigh(evidence, role) {
            Assessment::Supports { share, mut witnesses } => {
                let placed = ceilings.iter().find(|placed| std::ptr::eq(placed.cause, cause) && placed.role == role);
                let share = share.clamp(0.0, 1.0);
                if let Some(but) = harmless(evidence, cause, role) {
                    let says =
                        format!("{} was seen on the {} but is not the limit: {but}", cause.id, evidence.place(role));
                    next_limits.push((Candidate { cause, role, placed, share, witnesses }, says));
                } else if let Some(why) = evidence.cannot_exclude(cause.excludes, role) {
                    open.push(Open { cause, role, why, ask: None });
                } else {
                    witnesses.splice(0..0, placed.and_then(|placed| ceiling_witness(evidence, placed)));
                    candidates.push(Candidate { cause, role, placed, share, witnesses });
                }
            }
            Assessment::CannotTell { why, ask } => open.push(Open { cause, role, why, ask }),
            Assessment::Contradicts(_) => {}
        }
    }
    candidates.sort_by(|a, b| b.order().total_cmp(&a.order()));
    // Of two limits that are close, the lower one is what more is gained without.
    if let [first, second, ..] = &mut candidates[..]
        && is_close(first, second)
        && is_close(second, first)
        && second.placed.zip(first.placed).is_some_and(|(b, a)| b.ceiling.bps < a.ceiling.bps)
    {
        std::mem::swap(first, second);
    }
    // What limits next is named with a limit that it is close to; else it is harmless.
    for (mut other, says) in next_limits {
        let proven = other.proven() && evidence.cannot_exclude(other.cause.excludes, other.role).is_none();
        other.witnesses.extend(other.placed.and_then(|placed| ceiling_witness(evidence, placed)));
        let close = proven && candidates.first().is_some_and(|first| is_close(first, &other));
        if close && !evidence.no_more_passes() {
            candidates.insert(1, other);
        } else {
            hazards.push(says);
        }
    }
    put_first_what_binds(evidence, &mut candidates);
    let best = candidates.first().filter(|best| best.proven());
    let (decided, healthy) = (best.is_some(), best.is_some_and(|best| best.cause.healthy));
    let clean = evidence.is_clean() && !decided;
    let next = if clean { Vec::new() } else { next(evidence, &candidates, &open) };
    let doubted = decided && next.iter().any(|planned| planned.decides);
    if clean {
        candidates.clear();
        open.clear();
    } else if healthy {
        // A healthy path has nothing to fix: other causes do not bind.
        for other in candidates.extract_if(.., |candidate| !candidate.cause.healthy) {
            let (id, at) = (other.cause.id, evidence.place(other.role));
            hazards.extend(
                E::TELLS_HARMLESS
                    .then(|| format!("{id} was seen on the {at} but is not the limit: the path is at capacity")),
            );
        }
    }
    let status = match candidates.first() {
        _ if clean || healthy => Status::Healthy,
        Some(best) if best.proven() && !doubted => Status::Limited,
        Some(_) => Status::Suspected,
        None => Status::Unknown,
    };
    let emptied = ceilings_of(&evidence.without_queue(), causes);
    let rooflines = Rooflines { met: &ceilings, emptied: &emptied };
    let mut findings: Vec<Finding> =
        candidates.iter().map(|candidate| finding(evidence, causes, &rooflines, candidate, &candidates)).collect();
    if let Some(first) = findings.first_mut().filter(|_| doubted) {
        first.confidence = first.confidence.min(RIGHT[PROOF - 1]);
    }
    let unnamed = causes.iter().filter(|cause| !findings.iter().any(|finding| finding.id == cause.id));
    hazards.extend(unnamed.filter_map(|cause| (cause.lurks)(evidence)));
    let verdict = Verdict {
        status,
        headline: evidence.headline(status, findings.first()),
        goodput_bps: evidence.goodput_bps(),
        direction: evidence.flow().direction(),
        causes: findings,
        both: both(evidence, &rooflines, &candidates),
        missing: if decided || clean { Vec::new() } else { missing(evidence, &open) },
        hazards,
    };
    Judgement { verdict, ceilings: ceilings.into_iter().map(|placed| placed.ceiling).collect(), next }
}

/// Puts before a path at capacity what binds beside it: what is proven, and a suspicion that explains more than the path does. Another
/// cause of the same stage explains the same loss, and one without a stage none.
fn put_first_what_binds<E: Evidence>(evidence: &E, candidates: &mut [Candidate<'_, E>]) {
    let Some(best) = candidates.first().filter(|best| best.proven() && best.cause.healthy) else { return };
    let (stages, share) = (best.cause.stages, best.share);
    let binds = |other: &Candidate<'_, E>| {
        let lost_at = other.cause.stages;
        let elsewhere = !lost_at.is_empty() && lost_at.iter().all(|stage| !stages.contains(stage));
        let counts = evidence.binds_beside_capacity(other.share) && (other.proven() || other.share > share);
        !other.cause.healthy && elsewhere && counts
    };
    candidates.sort_by_key(|other| !binds(other));
}

/// Why a cause that is supported costs nothing, where that is so.
fn harmless<E: Evidence>(evidence: &E, cause: &Cause<E>, role: Role) -> Option<String> {
    // A ceiling that the goodput exceeds is in no roofline; it speaks against its cause all the same.
    let ceiling = (cause.ceiling)(evidence, role);
    if let Some(ceiling) = ceiling.filter(|ceiling| !sits_at(ceiling, evidence.goodput_bps())) {
        return Some(format!("it would allow {}, which is not what was measured", units::bps(ceiling.bps)));
    }
    (!cause.healthy && !cause.explains_link && evidence.no_more_passes())
        .then(|| "the slower link is full, so no more would pass without it".to_owned())
}

/// The ceiling as a witness, where it says something that the goodput does not: one that is read off the goodput (the
/// application wrote this much; this part of a core was used for it) sits at it by arithmetic.
/// It is found by asking the rule again with a slightly higher goodput: does the ceiling follow in step? Capacity
/// accuses no one, and what a path carries while a queue stands on it *is* its ceiling.
fn ceiling_witness<E: Evidence>(evidence: &E, placed: &PlacedCeiling<E>) -> Option<Witness> {
    const STEP: f64 = 1.001;
    let PlacedCeiling { cause, role, ceiling } = placed;
    let follows = |other: Ceiling| (other.bps / ceiling.bps - STEP).abs() < 1e-6;
    let independent = cause.healthy || !(cause.ceiling)(&evidence.scaled(STEP), *role).is_some_and(follows);
    independent.then(|| {
        let (bps, goodput) = (units::bps(ceiling.bps), units::bps(evidence.goodput_bps()));
        let off = evidence.goodput_bps() / ceiling.bps - 1.0;
        let [low, high] = ceiling.interval_bps.map(units::bps);
        let [by, accuracy] = [off.abs(), TOLERANCE].map(|part| format!("{:.0} %", 100.0 * part));
        let meets = match off {
            off if off.abs() > TOLERANCE => format!("predicts {low} to {high}; {goodput} was measured"),
            off if off.abs() < 0.005 => format!("equals the measured {goodput}"),
            off if off > 0.0 => format!("is {by} below the measured {goodput}: both are accurate to {accuracy}"),
            _ => format!("is {by} above the measured {goodput}"),
        };
        let says = format!("its ceiling, {bps} ({}), {meets}", ceiling.how);
        Witness { kind: CEILING.to_owned(), says }
    })
}

/// The trials that open and suspected causes ask for, those first that most causes ask for per second. Where a cause is proven, only
/// those of causes that are as specific are worth their time.
fn next<E: Evidence>(evidence: &E, candidates: &[Candidate<'_, E>], open: &[Open<E>]) -> Vec<Planned> {
    let best = candidates.first().filter(|best| best.proven());
    let explained = candidates.iter().filter(|candidate| candidate.proven()).map(|candidate| candidate.share).sum();
    let decisive = |open: &&Open<E>| best.is_none_or(|best| open.cause.rank >= best.cause.rank);
    let settled = evidence.settled(explained);
    let asked = open.iter().filter(|_| !settled).filter(decisive).filter_map(|open| open.ask);
    let unproven = candidates.iter().filter(|candidate| !candidate.proven());
    let asked = asked.chain(unproven.filter_map(|candidate| candidate.cause.confirmed_by));
    let refuting = best.filter(|best| best.cause.per_connection).and_then(|_| evidence.more_connections());
    let detailed = best.and_then(|best| (best.cause.detailed_by)(evidence));
    let decides = best.and_then(|best| best.cause.stands_after);
    let asked: Vec<&'static Experiment> = asked.chain(refuting).chain(detailed).chain(decides).collect();
    let mut wanted: Vec<(f64, Vec<Planned>)> =
        E::EXPERIMENTS.iter().filter_map(|experiment| priced(evidence, experiment, &asked)).collect();
    for planned in wanted.iter_mut().flat_map(|(_, trials)| trials) {
        planned.decides = decides.is_some_and(|experiment| experiment.id == planned.id);
    }
    wanted.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let first = evidence.repeat().and_then(|experiment| experiment.planned(&evidence.baseline()));
    let others = wanted
        .into_iter()
        .flat_map(|(_, trials)| trials)
        .filter(|it| first.as_ref().is_none_or(|first| first.id != it.id));
    first.iter().cloned().chain(others).collect()
}

/// The trials of an experiment that are still to be made, and how many causes ask for them per millisecond.
fn priced<E: Evidence>(
    evidence: &E,
    experiment: &'static Experiment,
    asked: &[&'static Experiment],
) -> Option<(f64, Vec<Planned>)> {
    let asks = asked.iter().filter(|other| **other == experiment).count();
    let open = experiment.trials().iter().filter(|trial| evidence.experiment_bps(trial.id).is_none());
    let trials: Vec<Planned> = open.filter_map(|trial| trial.planned(&evidence.baseline())).collect();
    let cost_ms: u64 = trials.iter().filter_map(|trial| trial.plan.duration_ms()).sum();
    (asks > 0 && !trials.is_empty()).then(|| (asks as f64 / cost_ms.max(1) as f64, trials))
}

fn missing<E: Evidence>(evidence: &E, open: &[Open<E>]) -> Vec<String> {
    let open = open.iter().map(|open| format!("{} at {}: {}", open.cause.id, evidence.place(open.role), open.why));
    evidence.unexplained().into_iter().chain(open).collect()
}

fn finding<E: Evidence>(
    evidence: &E,
    causes: &'static [&'static Cause<E>],
    rooflines: &Rooflines<'_, E>,
    candidate: &Candidate<'_, E>,
    candidates: &[Candidate<'_, E>],
) -> Finding {
    let cause = candidate.cause;
    let gone = [(cause, candidate.role)];
    let prediction = || predict(evidence, rooflines, &gone, holding(candidates, &gone));
    let prediction = if cause.healthy { None } else { prediction() };
    // Less than what was measured is no gain, at least as much no prediction: nothing was learnt of the path.
    let goodput = evidence.goodput_bps();
    let more = |it: &Prediction| {
        it.interval_bps.map_or(it.bps > goodput * (1.0 + TOLERANCE), |[_, high]| high >= goodput * (1.0 + SAME))
    };
    let prediction = prediction.filter(|it| it.bps > 0.0 && more(it));
    Finding {
        id: cause.id.to_owned(),
        at: evidence.place(candidate.role),
        confidence: candidate.confidence(),
        summary: cause.about.to_owned(),
        ceiling_bps: candidate.placed.map(|placed| placed.ceiling.bps),
        prediction,
        witnesses: candidate.witnesses.clone(),
        rejected: cause.look_alikes.iter().filter_map(|id| rejected(evidence, causes, id)).collect(),
        fix: (cause.fix)(evidence, candidate.role),
    }
}

/// A look-alike that the evidence contradicts at each of its roles, with its own words.
fn rejected<E: Evidence>(evidence: &E, causes: &'static [&'static Cause<E>], id: &str) -> Option<Rejected> {
    let other = causes.iter().find(|cause| cause.id == id)?;
    let mut reasons = Vec::new();
    for role in other.roles {
        let Assessment::Contradicts(why) = other.weigh(evidence, *role) else { return None };
        reasons.push(why);
    }
    Some(Rejected { id: id.to_owned(), why: reasons.into_iter().next().unwrap_or_default() })
}

/// What to expect once the first two causes are gone, where both are proven and the second would go on to bind.
fn both<E: Evidence>(
    evidence: &E,
    rooflines: &Rooflines<'_, E>,
    candidates: &[Candidate<'_, E>],
) -> Option<Prediction> {
    let [first, second, ..] = candidates else { return None };
    (first.proven() && second.holds() && !first.cause.healthy).then_some(())?;
    let gone = [(first.cause, first.role), (second.cause, second.role)];
    predict(evidence, rooflines, &gone, holding(candidates, &gone))
}

/// Of the other causes the first that holds the goodput down by itself.
fn holding<E>(candidates: &[Candidate<'_, E>], gone: &[Gone<E>]) -> Option<Gone<E>> {
    let others = candidates.iter().filter(|it| it.holds()).map(|other| (other.cause, other.role));
    others.into_iter().find(|(cause, role)| !is_gone(gone, cause, *role))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::tcp::TcpEvidence;
    use crate::experiments::paced::PACED_UDP;
    use crate::experiments::tcp::{MORE_STREAMS, PACED_HALF};
    use crate::testing::Scene;

    #[test]
    fn the_confidence_is_how_often_it_was_right_on_cases_drawn_since() {
        let lines = include_str!("../../../../fixtures/calibration.tsv").lines().filter(|line| !line.starts_with('#'));
        let cases: Vec<(usize, f64, bool)> = lines
            .map(|line| {
                let cells: Vec<&str> = line.split('\t').collect();
                let number = |at: usize| cells[at].parse::<f64>().expect("a number");
                (number(2) as usize, number(3), cells[4] == "1")
            })
            .collect();
        for (witnesses, said) in RIGHT.iter().enumerate() {
            let of: Vec<bool> =
                cases.iter().filter(|case| case.0.min(RIGHT.len() - 1) == witnesses).map(|it| it.2).collect();
            let right = of.iter().filter(|right| **right).count() as u64;
            // A few cases say nothing of a part.
            if of.len() >= 30 {
                let [low, high] = narrows_stats::wilson(right, of.len() as u64, 0.95).expect("cases");
                assert!(
                    (low..=high).contains(said),
                    "{witnesses} witnesses: {right} of {} right, {said} said",
                    of.len()
                );
            }
        }
        let said: Vec<(f64, bool)> = cases.iter().map(|case| (case.1, case.2)).collect();
        let error = narrows_stats::expected_calibration_error(&said).expect("cases");
        assert!(said.len() >= 80 && error <= 0.05, "{error} of {}", said.len());
    }

    #[test]
    fn an_experiment_is_worth_the_causes_that_ask_for_it_per_millisecond() {
        let (scene, more) = (Scene::default(), Scene::default());
        let evidence = TcpEvidence::of(&scene.run(&[]), 0).expect("a baseline");
        let asked = [&MORE_STREAMS, &PACED_HALF, &MORE_STREAMS, &PACED_UDP];
        let price = |experiment| priced(&evidence, experiment, &asked).map(|(price, _)| price * 1e3);
        assert_eq!((price(&MORE_STREAMS), price(&PACED_HALF)), (Some(2.0 / 3.0), Some(1.0 / 3.0)));
        assert!(price(&PACED_UDP) < price(&PACED_HALF), "six seconds for one answer: {:?}", price(&PACED_UDP));
        // Nobody asks for it, or it was made.
        assert!(priced(&evidence, &MORE_STREAMS, &[]).is_none());
        let made = TcpEvidence::of(&scene.run(&[(MORE_STREAMS.id, &more)]), 0).expect("a baseline");
        assert!(priced(&made, &MORE_STREAMS, &asked).is_none());
    }
}
