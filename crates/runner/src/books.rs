//! What is derived from a run beyond its verdict: packet ledgers, latency under load.

use narrows_diagnose::latency::under_load;
use narrows_diagnose::ledger::ledger;
use narrows_model::run::RunPlan;
use narrows_model::run::search_report::SearchReport;
use narrows_model::{Ledger, LoadPlan, RrReport, RrTrial, Run, SweepReport, UdpPlan};
use narrows_render::measure::{Live, Measurement, Running, Shown, UdpMeasurement};
use narrows_views::measure::{self, Viewed};
use narrows_views::search::Context;

/// One for each flow of the run's first UDP trial; none where it holds none.
#[must_use]
pub fn ledgers(run: &Run) -> Vec<Ledger> {
    let Some((_, trial)) = run.trials_of::<UdpPlan>().next() else { return Vec::new() };
    trial.plan.flows().iter().map(|flow| ledger(trial, *flow)).collect()
}

/// The plain measurement of a run, in the words of its load; `None` where the run holds none.
#[must_use]
pub fn measurement(run: &Run) -> Option<Box<dyn Measurement>> {
    let RunPlan::Measure(plan) = &run.plan else { return None };
    Some(match plan {
        LoadPlan::Tcp(_) => Box::new(measure::tcp::build(run)?),
        LoadPlan::Udp(_) => Box::new(udp_measurement(run)?),
        LoadPlan::Rr(_) => Box::new(rr_report(run)?),
    })
}

/// How the trial of a plan is shown while it runs.
#[must_use]
pub fn live(plan: &LoadPlan) -> Box<dyn Live> {
    fn of<L: Viewed + Shown<Interval = <L as Viewed>::Interval>>(plan: &L) -> Box<dyn Live> {
        let mut live = measure::live::Live::new(plan);
        Box::new(Running { plan: plan.clone(), intervals: move |at, progress: &_| live.take(at, progress) })
    }
    match plan {
        LoadPlan::Tcp(plan) => of(plan),
        LoadPlan::Udp(plan) => of(plan),
        LoadPlan::Rr(plan) => of(plan),
    }
}

/// With its ledgers, where the counters for them were read.
fn udp_measurement(run: &Run) -> Option<UdpMeasurement> {
    let report = measure::udp::build(run)?;
    let counted = run.trials_of::<UdpPlan>().next().is_some_and(|(_, trial)| !trial.client.before.facts.is_empty());
    Some(UdpMeasurement { report, ledgers: if counted { ledgers(run) } else { Vec::new() } })
}

/// The requests and responses of a run, idle and loaded side by side where both were measured; `None` where there are none.
fn rr_report(run: &Run) -> Option<RrReport> {
    let trials: Vec<RrTrial<'_>> = run.trials_of().map(|(_, trial)| trial).collect();
    let idle = trials.iter().find(|trial| trial.plan.load.is_none());
    let loaded = trials.iter().find(|trial| trial.plan.load.is_some());
    let side_by_side = idle.zip(loaded).and_then(|(idle, loaded)| under_load(*idle, *loaded).ok());
    (!trials.is_empty()).then(|| measure::rr::build(run.into(), &trials, side_by_side))
}

/// The search of a run; `None` where it holds none.
#[must_use]
pub fn search_report(run: &Run) -> Option<SearchReport> {
    let (record, RunPlan::Search(order)) = (run.search.as_ref()?, &run.plan) else { return None };
    let context = Context {
        flow: order.load.flows().first().copied()?,
        unit: order.unit,
        history: crate::search::history(record),
        curve: crate::search::curve(record),
    };
    Some(narrows_views::search::build(record, context, run.into()))
}

/// The sweep of a run, as far as it got; `None` where it holds none.
#[must_use]
pub fn sweep_report(run: &Run) -> Option<SweepReport> {
    let record = run.sweep.as_ref()?;
    Some(narrows_views::sweep::build(record, run.into()))
}
