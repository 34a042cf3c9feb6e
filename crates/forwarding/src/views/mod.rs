//! What follows from a stored forwarding record: corrected counts, accounts, validity, results, the report. All of it is derived
//! each time, here and nowhere else.

mod ab;
mod accounts;
mod build;
mod dut;
mod listed;
mod missing;
mod modified;
mod procedures;
mod size;
mod verdict;
pub mod words;

pub use ab::{build_pair, derive_pair, mean_intervals, report_pair};
pub use build::build;
pub use listed::{of_forwarding, of_pair};

use crate::data::plan::Row;
use crate::data::procedures::Results;
use crate::data::report::{ForwardingReport, ForwardingRun, NotMeasured};
use crate::data::{Accounting, ForwardingPlan, ForwardingRecord, ForwardingTrial};
use crate::judge::{account, correct, interrupt_notes, judge};
use crate::procedures::throughput;
use size::Of;
use std::collections::BTreeMap;

/// What follows from a record before it becomes a report.
#[derive(Debug, Clone, PartialEq)]
pub struct Derived {
    /// Which run it was; `None` where it is not stored.
    pub run: Option<ForwardingRun>,
    /// The record, its counts corrected.
    pub record: ForwardingRecord,
    /// The reconciled accounts of trials, in any number and order.
    pub accounts: Vec<AccountOfTrial>,
    /// Why each trial of the record is invalid; `None` of those that are valid.
    pub invalid: Vec<Option<String>>,
    /// The results of each row.
    pub results: BTreeMap<Row, Results>,
    /// What was asked for and not measured, where a procedure has a reason. The rest is found with the report.
    pub not_measured: Vec<NotMeasured>,
    /// What else must be known.
    pub remarks: Vec<String>,
}

/// The account of one direction of one trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountOfTrial {
    /// Index into the record's trials.
    pub trial: usize,
    /// Index into the trial's directions.
    pub direction: usize,
    pub account: Accounting,
}

/// The report of a record, whole or in part.
pub fn report(record: &ForwardingRecord) -> ForwardingReport {
    build(derive(record))
}

/// What follows from a record, whole or in part.
pub fn derive(record: &ForwardingRecord) -> Derived {
    let (mut trials, mut accounts, mut invalid) = (Vec::new(), Vec::new(), Vec::new());
    for (at, trial) in record.trials.iter().enumerate() {
        let (trial, of_trial, why) = judged(&record.plan, trial);
        // A procedure that asked for the trial saw this by itself, and may have asked for another.
        let why = why.or_else(|| throughput::doubt(&record.plan, &trial));
        let account = |(direction, account)| AccountOfTrial { trial: at, direction, account };
        accounts.extend(of_trial.into_iter().enumerate().map(account));
        trials.push(trial);
        invalid.push(why);
    }
    conclude(ForwardingRecord { trials, ..record.clone() }, accounts, invalid)
}

/// A trial with its counts corrected, the accounts of its directions, and why it is invalid by its counts, if so: while it is
/// measured and whenever it is read.
pub fn judged(plan: &ForwardingPlan, trial: &ForwardingTrial) -> (ForwardingTrial, Vec<Accounting>, Option<String>) {
    let trial = correct(plan, trial);
    let accounts: Vec<Accounting> = (0..trial.directions.len()).map(|at| account(plan, &trial, at)).collect();
    let invalid = judge(&trial, &accounts);
    (trial, accounts, invalid)
}

/// What follows from a record of corrected trials with their accounts and judgements.
pub fn conclude(record: ForwardingRecord, accounts: Vec<AccountOfTrial>, invalid: Vec<Option<String>>) -> Derived {
    let (mut results, mut not_measured, mut remarks) = (BTreeMap::new(), Vec::new(), Vec::new());
    for row in record.plan.rows() {
        not_measured.extend(missing::reasons(&record, row));
        let of = Of { record: &record, invalid: &invalid, row };
        let mut of_row = Results::default();
        for entry in procedures::ALL {
            (entry.fill)(&of, &mut of_row, &mut remarks);
        }
        results.insert(row, of_row);
    }
    let names = words::names(&record.plan.traffic);
    for note in interrupt_notes(&record) {
        let name = names.get(note.traffic).map_or("", String::as_str);
        remarks.push(format!("{name}, {}: {}", size::word(note.size), note.says));
    }
    Derived { run: None, record, accounts, invalid, results, not_measured, remarks }
}
