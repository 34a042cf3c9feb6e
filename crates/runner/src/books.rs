//! The packet ledgers of a run.

use narrows_diagnose::ledger::ledger;
use narrows_model::{Ledger, Run};

/// One for each flow of the run's first UDP trial; none where it holds none.
#[must_use]
pub fn ledgers(run: &Run) -> Vec<Ledger> {
    let Some(record) = run.udp.first() else { return Vec::new() };
    record.trial.plan.flows().iter().map(|flow| ledger(&record.trial, *flow)).collect()
}
