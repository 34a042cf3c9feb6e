//! What is derived from a run beyond its verdict: packet ledgers, latency under load.

use narrows_diagnose::latency::under_load;
use narrows_diagnose::ledger::ledger;
use narrows_model::run::RunPlan;
use narrows_model::run::search_report::SearchReport;
use narrows_model::{Ledger, RrReport, RrTrial, Run, SweepReport};
use narrows_render::search::build::Around;

/// One for each flow of the run's first UDP trial; none where it holds none.
#[must_use]
pub fn ledgers(run: &Run) -> Vec<Ledger> {
    let Some(record) = run.udp.first() else { return Vec::new() };
    record.trial.plan.flows().iter().map(|flow| ledger(&record.trial, *flow)).collect()
}

/// The requests and responses of a run, idle and loaded side by side where both were measured; `None` where there are none.
#[must_use]
pub fn rr_report(run: &Run) -> Option<RrReport> {
    let trials: Vec<RrTrial> = run.rr.iter().map(|record| record.trial.clone()).collect();
    let idle = trials.iter().find(|trial| trial.plan.load.is_none());
    let loaded = trials.iter().find(|trial| trial.plan.load.is_some());
    let side_by_side = idle.zip(loaded).and_then(|(idle, loaded)| under_load(idle, loaded).ok());
    (!trials.is_empty()).then(|| narrows_render::rr::build(run.into(), &trials, side_by_side))
}

/// The search of a run; `None` where it holds none.
#[must_use]
pub fn search_report(run: &Run) -> Option<SearchReport> {
    let (record, RunPlan::Search(order)) = (run.search.as_ref()?, &run.plan) else { return None };
    let around = Around {
        flow: order.load.flows().first().copied()?,
        unit: order.unit,
        history: crate::search::history(record),
        curve: crate::search::curve(record),
    };
    Some(narrows_render::search::build(record, around, run.into()))
}

/// The sweep of a run, as far as it got; `None` where it holds none.
#[must_use]
pub fn sweep_report(run: &Run) -> Option<SweepReport> {
    let record = run.sweep.as_ref()?;
    Some(narrows_render::sweep::build(record, run.into()))
}
