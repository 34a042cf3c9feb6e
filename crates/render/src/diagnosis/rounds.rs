//! The rounds of `--try`: the changes, their gain, and the predicted gain.

use super::kept::is_kept;
use super::places::on;
use crate::doc::{Doc, Pair};
use crate::style::Tone;
use crate::words::{range, times};
use narrows_model::run::report::{ProofView, RoundView};
use narrows_model::words::units::{bps, percent};
use narrows_model::{Report, Status};

pub(super) fn add(doc: Doc, report: &Report) -> Doc {
    if report.rounds.is_empty() {
        return doc;
    }
    doc.heading("what was tried").pairs(report.rounds.iter().flat_map(|round| act(report, round)))
}

fn act(report: &Report, round: &RoundView) -> Vec<Pair> {
    let limited = round.status == Status::Limited;
    let cause = match (&round.cause, round.at) {
        (Some(cause), Some(at)) => format!("{} {cause} {}", if limited { " by" } else { ":" }, on(at, report)),
        (Some(cause), None) => format!("{} {cause}", if limited { " by" } else { ":" }),
        _ => String::new(),
    };
    let says = format!("{}, {}{cause}", bps(round.goodput_bps), round.status.word());
    let mut all = vec![Pair::new(&format!("act {}", round.round + 1), &says)];
    all.extend(round.changes.iter().map(|change| {
        let state = match (change.in_force, is_kept(report)) {
            (true, true) => "in force",
            (true, false) => "perhaps in force",
            (false, _) => "rolled back",
        };
        Pair::new("", &format!("{}: {}  ({state})", on(change.at, report), change.set))
    }));
    if let Some(proof) = &round.proof {
        all.push(Pair::new("", &outcome(proof)).tone(if proof.helped { Tone::Good } else { Tone::Bad }));
        all.push(Pair::new("", &prediction(proof)));
    }
    all
}

/// The effect of a fix in a sentence.
fn outcome(proof: &ProofView) -> String {
    let runs = |runs: &[f64]| ProofView::mean(runs).map_or_else(|| "not measured".to_owned(), bps);
    let loss = |runs: &[f64]| ProofView::mean(runs).map(percent);
    let lost = match (loss(&proof.before_loss), loss(&proof.after_loss)) {
        (Some(before), Some(after)) => format!(", lost {before} and {after}"),
        _ => String::new(),
    };
    format!(
        "{}: {} without, {} with ({}){lost}, {} + {} trials in turn",
        proof.helped_words(),
        runs(&proof.before_bps),
        runs(&proof.after_bps),
        times(proof),
        proof.before_bps.len(),
        proof.after_bps.len(),
    )
}

/// Predicted and measured side by side.
fn prediction(proof: &ProofView) -> String {
    if proof.predicted_bps <= 0.0 {
        return proof.predicted_words();
    }
    let within = proof.predicted_interval_bps.map_or_else(String::new, |ends| format!(" ({})", range(ends)));
    let predicted = format!("{}{within}", proof.predicted_words());
    match ProofView::mean(&proof.after_bps) {
        Some(after) => {
            let off = (after / proof.predicted_bps - 1.0) * 100.0;
            let Some([low, high]) = proof.predicted_interval_bps else {
                let word = if after >= proof.predicted_bps { "no less" } else { "less" };
                return format!("{predicted}; measured {}, {word}", bps(after));
            };
            let word = if (low..=high).contains(&after) { "inside" } else { "outside" };
            format!("{predicted}; measured {} ({off:+.1} %, {word})", bps(after))
        }
        None => predicted,
    }
}
