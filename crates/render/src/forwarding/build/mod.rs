//! The view of a forwarding benchmark from its record. What is derived by rules that are not those of a view (books,
//! latencies over repetitions, bursts, estimates) comes in beside it.

pub(super) mod books;
mod device;
mod missing;
mod modified;
mod size;
mod verdict;

use super::words;
use narrows_model::forwarding::modifiers::Modifier;
use narrows_model::forwarding::report::{
    Derived, ForwardingReport, HopView, InvalidTrial, PlanSummary, SCHEMA, TrafficView, TrialName,
};
use narrows_model::forwarding::{ForwardingPlan, ForwardingRecord, Traffic};

/// The view of a benchmark, complete or not.
#[must_use]
pub fn build(record: &ForwardingRecord, derived: Derived) -> ForwardingReport {
    let plan = &record.plan;
    let names = words::names(&plan.traffic);
    let traffic: Vec<TrafficView> = plan
        .traffic
        .iter()
        .zip(&names)
        .enumerate()
        .map(|(at, (traffic, name))| TrafficView {
            name: name.clone(),
            what: words::traffic(traffic),
            traffic: without_secrets(traffic),
            sizes: size::views(record, &derived, at, traffic),
        })
        .collect();
    let traffic = modified::compared(plan, traffic);
    let invalid: Vec<InvalidTrial> =
        (0..record.trials.len()).filter_map(|at| invalid(record, &derived, &names, at)).collect();
    let losses = books::losses(record, &derived);
    let reconciliation = books::reconciliation(record, &derived, invalid.len());
    ForwardingReport {
        schema: SCHEMA.to_owned(),
        name: plan.name.clone(),
        verdict: verdict::verdict(&traffic, &losses, &reconciliation, &invalid),
        plan: summary(plan),
        losses,
        reconciliation,
        books: books::telling(record, &derived, &names),
        invalid,
        not_measured: missing::all(record, &derived, &traffic),
        remarks: derived.remarks,
        ended: record.ended.clone(),
        run: derived.run,
        traffic,
    }
}

/// A report is passed on: it holds no community and no password.
fn without_secrets(of: &Traffic) -> Traffic {
    Traffic { modifier: of.modifier.clone().map(Modifier::without_secrets), ..of.clone() }
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
        learning_frames: plan.learning_frames,
        residue_ms: plan.residue_ms,
        rest_ms: plan.rest_ms,
    }
}

/// The trial's name; `None` where the record has no such trial.
fn trial_name(record: &ForwardingRecord, names: &[String], index: usize) -> Option<TrialName> {
    let it = record.trials.get(index)?;
    let traffic = names.get(it.traffic).map_or_else(|| format!("traffic {}", it.traffic), Clone::clone);
    let name =
        format!("{} {}, {traffic}, {}", words::test(it.test), it.repetition.saturating_add(1), words::size(it.size));
    Some(TrialName { index, test: it.test, traffic: it.traffic, size: it.size, repetition: it.repetition, name })
}

/// The trial, if it says nothing: by what the runner said of it, or by its books.
fn invalid(record: &ForwardingRecord, derived: &Derived, names: &[String], index: usize) -> Option<InvalidTrial> {
    let trial = record.trials.get(index)?;
    let books = derived.books.iter().filter(|books| books.trial == index);
    let disagreement = books.filter_map(|books| books.books.disagreement.clone()).next();
    let why = trial.invalid.clone().or_else(|| disagreement.clone())?;
    Some(InvalidTrial { trial: trial_name(record, names, index)?, why, disagreement })
}

/// Whether a trial says nothing.
fn is_invalid(record: &ForwardingRecord, derived: &Derived, index: usize) -> bool {
    record.trials.get(index).is_none_or(|trial| trial.invalid.is_some())
        || derived.books.iter().any(|books| books.trial == index && books.books.disagreement.is_some())
}
