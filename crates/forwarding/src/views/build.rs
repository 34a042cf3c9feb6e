//! The report of a forwarding benchmark from what was derived of its record.

use super::{Derived, accounts, dut, missing, modified, verdict, words};
use crate::data::plan::Row;
use crate::data::report::{
    ForwardingReport, HopView, InvalidTrial, PlanSummary, SCHEMA, SizeView, TesterView, TrafficView, TrialName,
};
use crate::data::{ForwardingPlan, ForwardingRecord};
use narrows_model::load::frames_report::FrameRate;

/// The report of a benchmark, complete or not.
pub fn build(derived: Derived) -> ForwardingReport {
    let plan = &derived.record.plan;
    let names = words::names(&plan.traffic);
    let view = |(at, name): (usize, &String)| TrafficView {
        name: name.clone(),
        what: words::traffic(&plan.traffic[at]),
        traffic: plan.traffic[at].clone(),
        sizes: plan.rows().into_iter().filter(|row| row.traffic == at).map(|row| size(&derived, row)).collect(),
    };
    let traffic = modified::compared(plan, names.iter().enumerate().map(view).collect());
    let invalid: Vec<InvalidTrial> =
        (0..derived.record.trials.len()).filter_map(|at| invalid(&derived, &names, at)).collect();
    let losses = accounts::losses(&derived);
    let reconciliation = accounts::reconciliation(&derived);
    ForwardingReport {
        schema: SCHEMA.to_owned(),
        name: plan.name.clone(),
        verdict: verdict::verdict(&traffic, &losses, &reconciliation, &invalid),
        plan: summary(plan),
        losses,
        reconciliation,
        books: accounts::telling(&derived, &names),
        invalid,
        not_measured: missing::all(&derived, &traffic),
        ended: derived.record.ended.clone(),
        traffic,
        remarks: derived.remarks,
        run: derived.run,
    }
}

fn size(derived: &Derived, row: Row) -> SizeView {
    let record = &derived.record;
    let frame_bytes = record.plan.frame_bytes(row).unwrap_or(0.0);
    let link_bps = record.plan.link_bps;
    let own = || record.trials.iter().filter(|it| it.is_of(row));
    let tester = record.tester.iter().find(|it| (it.traffic, it.size) == (row.traffic, row.size));
    SizeView {
        size: row.size,
        frame_bytes,
        line: FrameRate::line(frame_bytes, link_bps),
        tester: tester.map(|it| TesterView {
            rate: FrameRate::new(it.pps, frame_bytes, Some(link_bps)),
            method: it.method.clone(),
        }),
        results: derived.results.get(&row).cloned().unwrap_or_default(),
        modified: record.plan.traffic[row.traffic].modifier.as_ref().map(|_| modified::seen(own())),
        devices: dut::views(own()),
    }
}

fn summary(plan: &ForwardingPlan) -> PlanSummary {
    let mut tests = plan.tests.clone();
    if let Some(reset) = &mut tests.reset {
        // Its further words may hold the password of a power switch, and a report is passed on.
        reset.command.truncate(1);
    }
    PlanSummary {
        generator: plan.generator.clone(),
        receiver: plan.receiver.clone(),
        link_bps: plan.link_bps,
        max_load_pps: plan.max_load_pps,
        hops: plan
            .hops
            .iter()
            .map(|hop| HopView {
                name: hop.name.clone(),
                under_test: hop.under_test,
                input: hop.input.clone(),
                output: hop.output.clone(),
                counters: words::counters(&hop.source),
            })
            .collect(),
        tests,
        conditions: plan.conditions.clone(),
    }
}

/// The trial's name; `None` where the record has no such trial.
pub(super) fn trial_name(record: &ForwardingRecord, names: &[String], index: usize) -> Option<TrialName> {
    let it = record.trials.get(index)?;
    let traffic = names.get(it.traffic).map_or_else(|| format!("traffic {}", it.traffic), Clone::clone);
    let name =
        format!("{} {}, {traffic}, {}", it.test.title(), it.repetition.saturating_add(1), super::size::word(it.size));
    Some(TrialName { index, test: it.test, traffic: it.traffic, size: it.size, repetition: it.repetition, name })
}

/// The trial, if it is invalid.
fn invalid(derived: &Derived, names: &[String], index: usize) -> Option<InvalidTrial> {
    let why = derived.invalid.get(index).cloned().flatten()?;
    let disagreement = derived.accounts.iter().filter(|it| it.trial == index);
    let disagreement = disagreement.filter_map(|it| it.account.disagreement.clone()).next();
    Some(InvalidTrial { trial: trial_name(&derived.record, names, index)?, why, disagreement })
}

impl Derived {
    /// Whether a trial is invalid.
    pub(super) fn is_invalid(&self, trial: usize) -> bool {
        self.invalid.get(trial).is_none_or(Option::is_some)
    }
}
