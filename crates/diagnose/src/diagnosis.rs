//! The diagnosis of one round of a run, whatever its load.

use crate::Role;
use crate::causes;
use crate::causes::tcp::capacity_changed::full_in_each_phase;
use crate::evidence::profile::PathProfile;
use crate::evidence::tcp::budget::time_budget;
use crate::evidence::tcp::phases;
use crate::evidence::tcp::{AT_CAPACITY, TcpEvidence};
use crate::evidence::udp::UdpEvidence;
use crate::experiments::profile::PATH_PROFILE;
use crate::experiments::tcp::{MORE_STREAMS, UNDERLAY};
use crate::interrupted::Interrupted;
use crate::judge::{Assessment, Cause, Evidence, Judgement, Planned, judge};
use crate::latency::working;
use crate::ledger::tcp_ledger;
use crate::middlebox;
use crate::path;
use crate::underlay;
use narrows_model::run::report::{AccountsView, PhaseView, Weighed};
use narrows_model::run::{DiagnosePlan, Purpose, RunPlan, TrialRecord};
use narrows_model::words::figures::float;
use narrows_model::{Ceiling, Ending, FactKey, Finding, Flow, Method, Run, Status, Verdict, words::units};

#[derive(Debug, Clone)]
pub struct Diagnosis {
    /// The roofline, the time budget and the ledger of each flow, in the order of the plan.
    pub accounts: AccountsView,
    /// What limits the path.
    pub verdict: Verdict,
    /// The trials of experiments that would decide what is left open, most useful first.
    pub next: Vec<Planned>,
}

/// Diagnoses one round of a run by its baseline and its experiments; `None` where its baseline was not measured.
pub fn diagnose(run: &Run, round: u32) -> Option<Diagnosis> {
    let diagnosis = of_tcp(run, round).or_else(|| of_udp(run, round));
    let mut diagnosis = match Interrupted::of(run, round) {
        Some(interrupted) => interrupted.amend(diagnosis),
        None => diagnosis,
    };
    // The trace was made under the settings of the first round.
    if let (Some(diagnosis), Some(path), 0) = (&mut diagnosis, &run.path, round) {
        let loss = TcpEvidence::of(run, 0).and_then(|it| Some(it.base.loss_whole?.rate()));
        let loss = loss.or_else(|| Some(worst_udp(run, 0)?.1.base.loss()));
        path::locate(&mut diagnosis.verdict, run, path, loss);
    }
    diagnosis
}

/// The profile of the path that a round's baseline asks for; `None` where its baseline was not measured.
pub fn path_profile(run: &Run, round: u32) -> Option<Planned> {
    let of_tcp = TcpEvidence::of(run, round).and_then(|evidence| PATH_PROFILE.planned(&evidence.baseline()));
    of_tcp.or_else(|| PATH_PROFILE.planned(&worst_udp(run, round)?.1.baseline()))
}

/// An assessment in a word and in sentences.
fn words(assessment: Assessment) -> (&'static str, Vec<String>) {
    match assessment {
        Assessment::Supports { witnesses, .. } => (
            "speaks for it",
            witnesses.into_iter().map(|witness| format!("{}: {}", witness.kind, witness.says)).collect(),
        ),
        Assessment::Contradicts(why) => ("speaks against it", vec![why]),
        Assessment::CannotTell { why, ask } => {
            let ask = ask.map(|experiment| format!("would tell: {}", experiment.words));
            ("does not tell", std::iter::once(why).chain(ask).collect())
        }
    }
}

/// What was weighed for and against a cause in a round; `None` where no cause has that id or the baseline was not measured.
pub fn weigh(run: &Run, round: u32, id: &str) -> Option<Vec<Weighed>> {
    fn of<E: Evidence>(evidence: &E, causes: &'static [&'static Cause<E>], id: &str) -> Option<Vec<Weighed>> {
        let cause = causes.iter().find(|cause| cause.id == id)?;
        let weighed = |role: &Role| {
            let (word, says) = words(cause.weigh(evidence, *role));
            let read = |role: Role, key: FactKey| {
                let grew = || evidence.grew(role, key).map(|by| format!("+{by}"));
                let fact = || Some(evidence.host(role)?.get(key)?.value.to_string());
                grew().or_else(fact)
            };
            // Of the path the hosts tell what they know.
            let ends = |key: FactKey| {
                let of = |role| Some(format!("{} {}", evidence.place(role), read(role, key)?));
                let all: Vec<_> = [Role::Sender, Role::Receiver].into_iter().filter_map(of).collect();
                (!all.is_empty()).then(|| all.join(", "))
            };
            let known = |key: &FactKey| if *role == Role::Path { ends(*key) } else { read(*role, *key) };
            Weighed {
                at: evidence.place(*role),
                word: word.to_owned(),
                says,
                ceiling: (cause.ceiling)(evidence, *role),
                read: cause.needs.iter().map(|key| (key.name.to_owned(), known(key))).collect(),
            }
        };
        Some(cause.roles.iter().map(weighed).collect())
    }
    match TcpEvidence::of(run, round) {
        Some(evidence) => of(&evidence, causes::tcp::TABLE, id),
        None => of(&worst_udp(run, round)?.1, causes::udp::TABLE, id),
    }
}

/// The roofline with the cause that is named, also where its ceiling cannot be computed: what was got is what is under it.
fn with_named(mut ceilings: Vec<Ceiling>, verdict: &Verdict) -> Vec<Ceiling> {
    let named = verdict.causes.first().filter(|_| verdict.status == Status::Limited);
    let lacks = |cause: &&Finding| !ceilings.iter().any(|it| it.id == cause.id && it.at == cause.at);
    let Some(cause) = named.filter(lacks).filter(|_| !ceilings.is_empty() && verdict.goodput_bps > 0.0) else {
        return ceilings;
    };
    let bps = verdict.goodput_bps;
    let ceiling = Ceiling {
        id: cause.id.clone(),
        at: cause.at,
        bps,
        interval_bps: [bps; 2],
        at_least: false,
        method: Method::Measured,
        how: "the goodput that was measured under it".to_owned(),
    };
    ceilings.insert(ceilings.partition_point(|it| it.bps < bps), ceiling);
    ceilings
}

fn of_tcp(run: &Run, round: u32) -> Option<Diagnosis> {
    let evidence = TcpEvidence::of(run, round)?;
    let Judgement { mut verdict, ceilings, mut next } = judge(&evidence, causes::tcp::TABLE);
    if server_limited(&mut verdict, &evidence) {
        next.clear();
    }
    untried(&mut verdict, &next);
    without_profile(&mut verdict, run, evidence.profile.is_some());
    let latency = working::latency(run, round, &evidence);
    verdict.hazards.extend(latency.as_ref().and_then(working::bufferbloat));
    if let Some(stolen) = evidence.replaced {
        let share = units::percent(stolen);
        verdict
            .headline
            .push_str(&format!("; measured again because the hypervisor had taken {share} of the CPU time of a host"));
    }
    let baseline = evidence.judged_trial(run, round)?;
    middlebox::add(&mut verdict, &evidence, baseline);
    let phases: Vec<PhaseView> = evidence.phases.iter().map(|phase| phase.view).collect();
    changed(&mut verdict, &phases, full_in_each_phase(&evidence).is_ok());
    if let Some(expected) = falls_short(&run.plan, verdict.goodput_bps) {
        expect(&mut verdict, expected);
    }
    let ledger = baseline.plan.flows().iter().filter_map(|flow| tcp_ledger(baseline, *flow)).collect();
    let underlay = (round == 0).then(|| underlay::view(run, &evidence, &verdict)).flatten();
    not_measured(&mut verdict, run, underlay.is_some());
    let accounts = AccountsView {
        underlay,
        roofline: with_named(ceilings, &verdict),
        time_budget: time_budget(&evidence),
        path_profile: evidence.profile.as_ref().map(PathProfile::view),
        latency,
        phases,
        ledger,
    };
    Some(Diagnosis { accounts, verdict, next })
}

/// What an open verdict would have tried with more time.
pub(crate) fn untried(verdict: &mut Verdict, next: &[Planned]) {
    if matches!(verdict.status, Status::Unknown | Status::Suspected) {
        let words = |planned: &Planned| {
            let time = planned
                .plan
                .duration_ms()
                .map_or_else(String::new, |ms| format!(" (up to {})", units::micros(ms * 1000)));
            format!("not tried: {}{time}", planned.words)
        };
        verdict.missing.extend(next.iter().map(words));
    }
}

/// That a profile was wanted and is not there.
fn without_profile(verdict: &mut Verdict, run: &Run, is_known: bool) {
    let wanted = matches!(run.plan, RunPlan::Diagnose(DiagnosePlan { profile: true, .. }));
    if wanted && !is_known && run.ending == Ending::Complete {
        let left_out = run.server.absent.iter().find(|absent| absent.what == PATH_PROFILE.id);
        let why = left_out.map_or("its UDP packets were lost or there was no time", |absent| absent.why.as_str());
        let more =
            |trial: &TrialRecord| matches!(&trial.purpose, Purpose::Experiment { id, .. } if id == MORE_STREAMS.id);
        let instead = if run.trials.iter().any(more) { "; a test with more TCP streams was used instead" } else { "" };
        // First: many of the others are missing because of it.
        verdict.missing.insert(0, format!("no path profile: {why}{instead}"));
    }
}

/// That the underlay was wanted and is not there.
fn not_measured(verdict: &mut Verdict, run: &Run, is_known: bool) {
    if is_known || run.ending != Ending::Complete || underlay::address(run).is_none() {
        return;
    }
    let left_out = run.server.absent.iter().find(|absent| absent.what == UNDERLAY.id);
    let why = left_out.map_or("there was no time", |absent| absent.why.as_str());
    verdict.missing.insert(0, format!("the underlay was not measured: {why}"));
}

/// A load at the limit that the server sets for clients without a token says nothing of what lies above it, and no more than the limit
/// is predicted. Whether it is at the limit: then no trial can tell more.
fn server_limited(verdict: &mut Verdict, evidence: &TcpEvidence) -> bool {
    let Some(limit_bps) = evidence.server_limit_bps else { return false };
    for prediction in verdict.causes.iter_mut().filter_map(|cause| cause.prediction.as_mut()).chain(&mut verdict.both) {
        let interval_bps = prediction.interval_bps.unwrap_or([prediction.bps, f64::INFINITY]);
        prediction.bps = prediction.bps.min(limit_bps);
        prediction.interval_bps = Some(interval_bps.map(|bps| bps.min(limit_bps)));
    }
    // A full link is a full link, whatever the limit.
    let full = verdict.status == Status::Healthy && evidence.fills_link();
    let at_limit = evidence.base.goodput_bps >= AT_CAPACITY * limit_bps && !full;
    if at_limit {
        verdict.status = Status::Unknown;
        verdict.headline = format!(
            "{}: this server limits clients without its token to {} (`narrows serve --open-rate`); what the path carries above that is \
             unknown",
            units::bps(evidence.base.goodput_bps),
            units::bps(limit_bps)
        );
        verdict.causes.clear();
        verdict.both = None;
        verdict.hazards.clear();
        verdict.missing = vec![
            "a load above the server's limit: give the server's token (--token-file), or ask for a higher --open-rate there".to_owned(),
        ];
    }
    at_limit
}

/// If the rate changed permanently, the mean over the load describes neither phase.
fn changed(verdict: &mut Verdict, phases: &[PhaseView], at_capacity: bool) {
    if phases.len() < 2 {
        return;
    }
    if verdict.status == Status::Healthy && at_capacity {
        let each = if phases.len() == 2 { "both phases" } else { "each phase" };
        verdict.headline = format!("healthy: {}; at capacity in {each}", phases::change(phases));
        return;
    }
    if matches!(verdict.status, Status::Limited | Status::Suspected) {
        verdict.headline.push_str(&costliest(phases).unwrap_or_default());
        return;
    }
    let words: Vec<String> =
        phases.iter().map(|phase| format!("{} until {:.1} s", units::bps(phase.goodput_bps), phase.to_s)).collect();
    verdict.status = Status::Unknown;
    verdict.headline = format!(
        "the rate changed during the load ({}){}; what changed it is unknown",
        words.join(", "),
        costliest(phases).unwrap_or_default()
    );
    verdict.missing.push("run one test per phase to find what changed on the path or the hosts".to_owned());
    verdict.causes.clear();
    verdict.hazards.clear();
}

/// The phase that cost the most, and what was worse in it.
fn costliest(phases: &[PhaseView]) -> Option<String> {
    let (best, worst, bits) = phases::costliest(phases)?;
    let worse = phases::worse(&best, &worst);
    let worse = if worse.is_empty() { String::new() } else { format!(": {}", worse.join(", ")) };
    let (from, to, less) = (worst.from_s, worst.to_s, units::bytes((bits / 8.0) as u64));
    Some(format!("; the phase from {from:.1} to {to:.1} s cost the most, {less} less than at the fastest rate{worse}"))
}

/// Less than this part of what the user was promised is too little.
const AS_EXPECTED: f64 = 0.9;

/// What the user expected, bits a second, where the goodput falls short of it.
pub fn falls_short(plan: &RunPlan, goodput_bps: f64) -> Option<f64> {
    let RunPlan::Diagnose(plan) = plan else { return None };
    plan.expect_bps.map(float).filter(|expected| goodput_bps < AS_EXPECTED * expected)
}

/// A path that is at capacity, but below what the user was promised, is limited by its capacity; of what else it may be the headline says
/// how far below.
fn expect(verdict: &mut Verdict, expected: f64) {
    let got = verdict.goodput_bps;
    let short = format!("{} of the {} that were expected", units::percent(got / expected), units::bps(expected));
    if verdict.status == Status::Healthy {
        verdict.status = Status::Limited;
        verdict.headline = format!("limited to {} by the capacity of the path: {short}", units::bps(got));
    } else {
        verdict.headline.push_str(&format!("; it is {short}"));
    }
}

fn worst_udp(run: &Run, round: u32) -> Option<(Vec<UdpEvidence>, UdpEvidence)> {
    let baseline = run.baseline(round)?;
    let experiments: Vec<_> = run.experiments(round).collect();
    let of = |flow: &Flow| {
        let mut evidence = UdpEvidence::of(baseline, &experiments, *flow, &run.client, &run.server)?;
        evidence.profile = PathProfile::of(run, round, *flow);
        Some(evidence)
    };
    let flows: Vec<UdpEvidence> = baseline.plan.flows().iter().filter_map(of).collect();
    let worst =
        flows.iter().reduce(|worst, other| if other.base.loss() > worst.base.loss() { other } else { worst })?;
    let worst = worst.clone();
    Some((flows, worst))
}

/// Of a trial both ways, the flow that lost the larger part is judged.
fn of_udp(run: &Run, round: u32) -> Option<Diagnosis> {
    let (flows, judged) = worst_udp(run, round)?;
    let Judgement { mut verdict, ceilings, next } = judge(&judged, causes::udp::TABLE);
    if let Some(limit) = run.server_limit_bps(round) {
        verdict.headline.push_str(&format!(
            "; this server limits clients without its token to {} (`narrows serve --open-rate`)",
            units::bps(float(limit))
        ));
    }
    untried(&mut verdict, &next);
    without_profile(&mut verdict, run, judged.profile.is_some());
    let ledger = flows.iter().map(|flow| flow.base.ledger.clone()).collect();
    let path_profile = judged.profile.as_ref().map(PathProfile::view);
    Some(Diagnosis {
        accounts: AccountsView {
            roofline: with_named(ceilings, &verdict),
            underlay: None,
            time_budget: None,
            path_profile,
            latency: None,
            phases: Vec::new(),
            ledger,
        },
        verdict,
        next,
    })
}
