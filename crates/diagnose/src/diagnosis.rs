//! The diagnosis of one round of a run, whatever its load.

use crate::causes;
use crate::evidence::profile::PathProfile;
use crate::evidence::tcp::TcpEvidence;
use crate::evidence::tcp::budget::time_budget;
use crate::evidence::udp::UdpEvidence;
use crate::experiments::profile::PATH_PROFILE;
use crate::judge::{Evidence as _, Judgement, Planned, judge};
use crate::ledger::tcp_ledger;
use narrows_model::run::report::AccountsView;
use narrows_model::{Flow, Run, TcpPlan, Verdict};

/// What is said of one round.
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
#[must_use]
pub fn diagnose(run: &Run, round: u32) -> Option<Diagnosis> {
    of_tcp(run, round).or_else(|| of_udp(run, round))
}

/// The profile of the path that a round's baseline asks for; `None` where its baseline was not measured.
#[must_use]
pub fn path_profile(run: &Run, round: u32) -> Option<Planned> {
    let of_tcp = TcpEvidence::of(run, round).and_then(|evidence| PATH_PROFILE.planned(&evidence.baseline()));
    of_tcp.or_else(|| PATH_PROFILE.planned(&worst_udp(run, round)?.1.baseline()))
}

fn of_tcp(run: &Run, round: u32) -> Option<Diagnosis> {
    let evidence = TcpEvidence::of(run, round)?;
    let Judgement { verdict, ceilings, next } = judge(&evidence, causes::tcp::TABLE);
    let baseline = run.baseline::<TcpPlan>(round)?;
    let ledger = baseline.plan.flows().iter().filter_map(|flow| tcp_ledger(baseline, *flow)).collect();
    let accounts = AccountsView {
        roofline: ceilings,
        time_budget: time_budget(&evidence),
        path_profile: evidence.profile.as_ref().map(PathProfile::view),
        ledger,
    };
    Some(Diagnosis { accounts, verdict, next })
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
    let Judgement { verdict, ceilings, next } = judge(&judged, causes::udp::TABLE);
    let ledger = flows.iter().map(|flow| flow.base.ledger.clone()).collect();
    let path_profile = judged.profile.as_ref().map(PathProfile::view);
    Some(Diagnosis {
        accounts: AccountsView { roofline: ceilings, time_budget: None, path_profile, ledger },
        verdict,
        next,
    })
}
