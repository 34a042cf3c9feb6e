//! The report of a run: every round diagnosed, brought into the view that the formats render.

use crate::diagnosis::{Diagnosis, diagnose};
use crate::evidence::tcp::FlowView;
use crate::evidence::udp::view::UdpView;
use crate::experiments;
use crate::judge::lower;
use narrows_model::run::report::{
    CauseView, ExperimentView, FixView, HostView, HostsView, ProofView, RoundView, RunView, SCHEMA, VerdictView,
};
use narrows_model::run::{Attempt, Purpose};
use narrows_model::{Finding, Report, Run, Snapshot, Status, TcpPlan, TcpTrial, UdpTrial, Verdict};

/// The report of a run; `None` where not even the first baseline was measured.
pub fn report(run: &Run) -> Option<Report> {
    let mut rounds: Vec<Diagnosis> = (0..).map_while(|round| diagnose(run, round)).collect();
    for attempt in &run.attempts {
        let round = usize::try_from(attempt.round).ok().and_then(|round| rounds.get_mut(round));
        if let (Some(round), Some(proof)) = (round, proof(run, attempt)) {
            lower(&mut round.verdict, &attempt.cause, &proof);
        }
    }
    let first = rounds.first()?;
    let mut view: RunView = run.into();
    // One idle RTT in a report: the one that the loaded latency is compared with, else that of the profile.
    let compared = first.accounts.latency.as_ref().and_then(|latency| Some(latency.idle_us?.p50));
    let profiled = first.accounts.path_profile.as_ref().and_then(|profile| Some(profile.idle_rtt_us?[1]));
    if let Some(idle) = compared.or(profiled) {
        view.idle_rtt_us = Some(idle.round() as u64);
    }
    Some(Report {
        schema: SCHEMA.to_owned(),
        run: view,
        verdict: verdict_view(&first.verdict),
        accounts: first.accounts.clone(),
        hosts: HostsView { client: host_view(&run.client), server: host_view(&run.server) },
        experiments: experiments(run),
        rounds: if run.attempts.is_empty() {
            Vec::new()
        } else {
            (0..).zip(&rounds).map(|(round, diagnosis)| round_view(run, round, &diagnosis.verdict)).collect()
        },
        proof: whole_proof(run),
        carried_bytes: carried_bytes(run),
        congestion_control: congestion_control(run),
    })
}

/// The congestion control of the first baseline's sender.
fn congestion_control(run: &Run) -> Option<String> {
    let trial = run.baseline::<TcpPlan>(0)?;
    FlowView::of(trial, *trial.plan.flows().first()?)?.congestion_control
}

/// Bytes of load that the trials of a run put on the path, as the client counted them; those of the loopback were never on it.
pub fn carried_bytes(run: &Run) -> u64 {
    let on_path = |purpose: &Purpose| match purpose {
        Purpose::Experiment { id, .. } => {
            !experiments::by_id(id).is_some_and(|it| matches!(it.plan, crate::judge::Plan::Loopback(_)))
        }
        _ => true,
    };
    let streams = run.trials.iter().filter(|record| on_path(&record.purpose));
    streams
        .flat_map(|record| record.trial.client.end().samples())
        .filter_map(|samples| samples.last().map(|last| last.bytes()))
        .fold(0, u64::saturating_add)
}

fn verdict_view(verdict: &Verdict) -> VerdictView {
    VerdictView {
        both_bps: verdict.both.as_ref().map(|both| both.bps),
        both_interval_bps: verdict.both.as_ref().and_then(|both| both.interval_bps),
        status: verdict.status,
        headline: verdict.headline.clone(),
        goodput_bps: verdict.goodput_bps,
        direction: verdict.direction,
        causes: verdict
            .causes
            .iter()
            .map(|finding| CauseView {
                id: finding.id.clone(),
                at: finding.at,
                confidence: finding.confidence,
                summary: finding.summary.clone(),
                ceiling_bps: finding.ceiling_bps,
                predicted_bps: finding.prediction.as_ref().map(|prediction| prediction.bps),
                predicted_interval_bps: finding.prediction.as_ref().and_then(|prediction| prediction.interval_bps),
                then: finding.prediction.as_ref().map(|it| it.then.clone()).filter(|then| !then.is_empty()),
                witnesses: finding.witnesses.clone(),
                rejected: finding.rejected.clone(),
                fix: FixView { advice: finding.fix.advice.clone(), commands: finding.fix.commands.clone() },
            })
            .collect(),
        missing: verdict.missing.clone(),
        hazards: verdict.hazards.clone(),
    }
}

fn host_view(snapshot: &Snapshot) -> HostView {
    HostView { name: snapshot.host.clone(), facts: snapshot.facts.clone(), absent: snapshot.absent.clone() }
}

fn experiments(run: &Run) -> Vec<ExperimentView> {
    let view = |id: &str, goodput_bps| ExperimentView {
        id: id.to_owned(),
        what: experiments::by_id(id).map_or_else(String::new, |experiment| experiment.words.to_owned()),
        goodput_bps,
    };
    let tcp = run.experiments::<TcpPlan>(0).filter_map(|(id, trial)| {
        let flow = *trial.plan.flows().first()?;
        Some(view(id, FlowView::of(trial, flow)?.goodput_bps))
    });
    let udp = run.experiments(0).filter_map(|(id, trial)| Some(view(id, udp_goodput(trial)?)));
    tcp.chain(udp).collect()
}

/// Goodput of the first flow of a UDP trial.
fn udp_goodput(trial: UdpTrial<'_>) -> Option<f64> {
    Some(UdpView::of(trial, *trial.plan.flows().first()?)?.goodput_bps)
}

fn round_view(run: &Run, round: u32, verdict: &Verdict) -> RoundView {
    let attempt = run.attempts.iter().find(|attempt| attempt.round == round);
    let best = verdict.causes.first().filter(|_| verdict.status != Status::Unknown);
    RoundView {
        round,
        cause: best.map(|finding| finding.id.clone()),
        at: best.map(|finding| finding.at),
        status: verdict.status,
        headline: verdict.headline.clone(),
        goodput_bps: verdict.goodput_bps,
        changes: attempt.map_or_else(Vec::new, |attempt| attempt.changes.clone()),
        proof: attempt.and_then(|attempt| proof(run, attempt)),
    }
}

/// One trial of a proof.
struct Proved {
    bps: f64,
    /// Part of what was offered that did not arrive; of UDP.
    loss: Option<f64>,
}

/// What the first flow of the proof trials of a round came to, with or without the fix, in the order of pairs.
fn proof_trials(run: &Run, round: u32, with_fix: bool) -> Vec<Proved> {
    let is_of = |purpose: &Purpose| matches!(*purpose, Purpose::Proof { round: of, fixed, .. } if of == round && fixed == with_fix);
    let tcp = run.trials_of().filter(|(purpose, _)| is_of(purpose));
    let udp = run.trials_of().filter(|(purpose, _)| is_of(purpose));
    let of_tcp = |trial: TcpTrial<'_>| {
        let bps = FlowView::of(trial, *trial.plan.flows().first()?)?.goodput_bps;
        Some(Proved { bps, loss: None })
    };
    let of_udp = |trial: UdpTrial<'_>| {
        let view = UdpView::of(trial, *trial.plan.flows().first()?)?;
        let lost = (view.ledger.offered.saturating_sub(view.ledger.delivered)) as f64;
        Some(Proved { bps: view.goodput_bps, loss: Some(lost / view.ledger.offered.max(1) as f64) })
    };
    tcp.filter_map(|(_, trial)| of_tcp(trial)).chain(udp.filter_map(|(_, trial)| of_udp(trial))).collect()
}

/// The proof of one fix.
pub fn proof(run: &Run, attempt: &Attempt) -> Option<ProofView> {
    view(&proof_trials(run, attempt.round, false), &proof_trials(run, attempt.round, true), predicted(attempt))
}

/// A prediction and its interval, bit/s.
type Predicted = (f64, Option<[f64; 2]>);

fn predicted(attempt: &Attempt) -> Predicted {
    (attempt.predicted_bps as f64, attempt.predicted_interval_bps.map(|ends| ends.map(|bps| bps as f64)))
}

/// Before the first fix against after the last one that stayed.
fn whole_proof(run: &Run) -> Option<ProofView> {
    let first = run.attempts.first()?;
    let last = run.attempts.iter().rev().find(|attempt| attempt.kept_for_next_round).unwrap_or(first);
    view(&proof_trials(run, first.round, false), &proof_trials(run, last.round, true), predicted(last))
}

/// The proof of a fix by rates of TCP without and with it, for a cause that predicts its own.
pub fn proof_of_rates(rates_bps: [&[f64]; 2], finding: &Finding) -> Option<ProofView> {
    let [before, after] =
        rates_bps.map(|rates| rates.iter().map(|bps| Proved { bps: *bps, loss: None }).collect::<Vec<_>>());
    view(&before, &after, finding.prediction.as_ref().map_or((0.0, None), |it| (it.bps, it.interval_bps)))
}

/// Trials that are steady to the last bit give an interval of no width; a path differs by this from one minute to the next.
const LEAST_GAIN: f64 = 1.01;

fn view(before: &[Proved], after: &[Proved], (predicted_bps, predicted_interval_bps): Predicted) -> Option<ProofView> {
    let bps = |trials: &[Proved]| trials.iter().map(|trial| trial.bps).collect::<Vec<_>>();
    let loss = |trials: &[Proved]| trials.iter().filter_map(|trial| trial.loss).collect::<Vec<_>>();
    let (before_bps, after_bps, before_loss, after_loss) = (bps(before), bps(after), loss(before), loss(after));
    let more = narrows_stats::difference(&before_bps, &after_bps, 0.95)?;
    // Nothing has no multiple: the difference tells.
    let gain = narrows_stats::gain(&before_bps, &after_bps);
    let gains = gain.map_or(more.interval[0] > 0.0, |gain| gain.interval[0] > 1.0 && gain.ratio >= LEAST_GAIN);
    let falls = gain.map_or(more.interval[1] < 0.0, |gain| gain.interval[1] < 1.0);
    let less = narrows_stats::difference(&before_loss, &after_loss, 0.95);
    let loses_less = less.is_some_and(|less| less.interval[1] < 0.0) && !falls;
    Some(ProofView {
        gain: gain.map(|gain| gain.ratio),
        gain_interval: gain.map(|gain| gain.interval),
        helped: gains || loses_less,
        before_bps,
        after_bps,
        before_loss,
        after_loss,
        predicted_bps,
        predicted_interval_bps,
    })
}
