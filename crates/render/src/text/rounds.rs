//! The rounds of `--try`: the changes, their gain, and the predicted gain.

use super::page::{Page, on};
use crate::style::Tone;
use crate::words::{clean, range, times};
use narrows_model::run::report::{ProofView, RoundView};
use narrows_model::words::units::{bps, percent};
use narrows_model::{Report, Status};

pub(super) fn write(page: &mut Page, report: &Report) {
    if report.rounds.is_empty() {
        return;
    }
    page.heading("what was tried", "");
    for round in &report.rounds {
        write_round(page, report, round);
    }
}

fn write_round(page: &mut Page, report: &Report, round: &RoundView) {
    let status = status(round.status);
    let cause = match (&round.cause, round.at) {
        (Some(cause), Some(at)) => format!(" by {} {}", clean(cause), on(at, report)),
        (Some(cause), None) => format!(" by {}", clean(cause)),
        _ => String::new(),
    };
    let cause = if round.status == Status::Limited { cause } else { cause.replacen(" by ", ": ", 1) };
    page.labelled(
        &format!("  act {}  ", round.round + 1),
        &format!("{}, {status}{cause}", bps(round.goodput_bps)),
        None,
    );
    for change in &round.changes {
        let kept = if change.in_force { "in force" } else { "rolled back" };
        page.line(&format!("         {}: {}  ({kept})", on(change.at, report), clean(&change.set.to_string())));
    }
    if let Some(proof) = &round.proof {
        page.labelled("         ", &outcome(proof), Some(if proof.helped { Tone::Good } else { Tone::Bad }));
        page.labelled("         ", &prediction(proof), None);
    }
}

/// The verdict in a word.
pub(crate) const fn status(status: Status) -> &'static str {
    match status {
        Status::Limited => "limited",
        Status::Healthy => "healthy",
        Status::Suspected => "suspected",
        Status::Unknown => "unknown",
    }
}

/// The effect of a fix in a sentence.
pub(crate) fn outcome(proof: &ProofView) -> String {
    let runs = |runs: &[f64]| ProofView::mean(runs).map_or_else(|| "not measured".to_owned(), bps);
    let loss = |runs: &[f64]| ProofView::mean(runs).map(percent);
    let lost = match (loss(&proof.before_loss), loss(&proof.after_loss)) {
        (Some(before), Some(after)) => format!(", lost {before} and {after}"),
        _ => String::new(),
    };
    format!(
        "{}: {} without, {} with: {}{lost}, {} + {} trials in turn",
        if proof.helped { "It helped" } else { "It did not help" },
        runs(&proof.before_bps),
        runs(&proof.after_bps),
        times(proof),
        proof.before_bps.len(),
        proof.after_bps.len(),
    )
}

/// Predicted and measured side by side.
pub(crate) fn prediction(proof: &ProofView) -> String {
    let within = proof.predicted_interval_bps.map_or_else(String::new, |ends| format!(" ({})", range(ends)));
    let predicted = format!("predicted {}{within}", proof.predicted_words());
    match ProofView::mean(&proof.after_bps) {
        Some(after) if proof.predicted_bps > 0.0 => {
            let off = (after / proof.predicted_bps - 1.0) * 100.0;
            let Some([low, high]) = proof.predicted_interval_bps else {
                let word = if after >= proof.predicted_bps { "no less" } else { "less" };
                return format!("{predicted}; measured {}, {word}", bps(after));
            };
            let word = if (low..=high).contains(&after) { "inside" } else { "outside" };
            format!("{predicted}; measured {} ({off:+.1} %, {word})", bps(after))
        }
        _ => predicted,
    }
}
