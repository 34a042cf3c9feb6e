//! Fixes that `--try` proved: those that `--keep` left in force with their undo, and those that were rolled back.

use super::places::on;
use crate::doc::Doc;
use narrows_model::run::report::{ProofView, RoundView};
use narrows_model::words::units::{bps, percent};
use narrows_model::{Change, Report, Status};

/// The rounds whose fix helped and is in force.
fn kept(report: &Report) -> impl Iterator<Item = &RoundView> {
    proven(report).filter(|round| round.changes.iter().any(|change| change.in_force))
}

fn proven(report: &Report) -> impl Iterator<Item = &RoundView> {
    report.rounds.iter().filter(|round| round.proof.as_ref().is_some_and(|proof| proof.helped))
}

/// Whether a fix that helped is in force.
pub(crate) fn is_kept(report: &Report) -> bool {
    kept(report).next().is_some()
}

/// Whether a limit remains after the fixes that are kept.
pub(crate) fn is_limited_still(report: &Report) -> bool {
    report.rounds.last().is_some_and(|last| last.status == Status::Limited)
}

/// `by local-shaper on the client (db7), fixed and kept: 47.9 Mbit/s to 25.5 Gbit/s`, and what limits now.
pub(crate) fn headline(report: &Report) -> String {
    let causes: Vec<String> = kept(report).filter_map(|round| cause(round, report)).collect();
    let gain = report.proof.as_ref().and_then(gain).map_or_else(String::new, |gain| format!(": {gain}"));
    let last = report.rounds.last().filter(|_| is_limited_still(report));
    let now = last.and_then(|last| cause(last, report)).map_or_else(String::new, |it| format!("; now limited by {it}"));
    format!("by {}, fixed and kept{gain}{now}", causes.join(" and "))
}

fn cause(round: &RoundView, report: &Report) -> Option<String> {
    let cause = round.cause.as_ref()?;
    Some(round.at.map_or_else(|| cause.clone(), |at| format!("{cause} {}", on(at, report))))
}

/// `37.1 Mbit/s to 942 Mbit/s`, of UDP with what was lost.
fn gain(proof: &ProofView) -> Option<String> {
    let of = |values: &[f64]| ProofView::mean(values);
    let lost = of(&proof.before_loss).zip(of(&proof.after_loss));
    let lost = lost.map(|(before, after)| format!(", lost {} to {}", percent(before), percent(after)));
    let (before, after) = of(&proof.before_bps).zip(of(&proof.after_bps))?;
    Some(format!("{} to {}{}", bps(before), bps(after), lost.unwrap_or_default()))
}

/// That fixes are proven and rolled back, and how to keep them; `None` where none is.
pub(super) fn rolled_back(report: &Report) -> Option<String> {
    let all: Vec<&RoundView> = proven(report).collect();
    if all.is_empty() || is_kept(report) {
        return None;
    }
    let (fixes, them) = match all.len() {
        1 => ("the fix is proven".to_owned(), "it"),
        n => (format!("{n} fixes are proven"), "them"),
    };
    let gain = report.proof.as_ref().and_then(gain).map_or_else(String::new, |gain| format!(" ({gain})"));
    // A fix of the load alone changes no host.
    let changed = all.iter().any(|round| !round.changes.is_empty());
    let keep = format!(" and rolled back; `--try --keep` keeps {them} until the next boot");
    Some(format!("{fixes}{gain}{}", if changed { keep } else { String::new() }))
}

/// The fixes that could not be tried, and why.
pub(super) fn untried(report: &Report) -> impl Iterator<Item = String> {
    let absent = report.hosts.server.absent.iter();
    let of_fix = absent.filter(|it| it.collector == "diagnosis" && it.why.starts_with("its fix "));
    of_fix.map(|it| format!("{}: {}", it.what, it.why))
}

/// What is in force, and the commands that undo it, the latest first.
pub(super) fn undo(doc: Doc, report: &Report) -> Doc {
    let mut all: Vec<&Change> =
        report.rounds.iter().flat_map(|round| &round.changes).filter(|it| it.in_force).collect();
    all.reverse();
    let doc = doc.heading("what is changed").paragraph(
        "This stays until the next boot. To make it permanent, add it to the configuration of the host. To undo it:",
    );
    let places = all.chunk_by(|a, b| a.at == b.at);
    places.fold(doc, |doc, all| {
        doc.commands(&on(all[0].at, report), all.iter().map(|it| format!("narrows tune undo {}", it.id)))
    })
}
