//! Fixes that `--try` proved: those that `--keep` left in force with their undo, and those that were rolled back.

use super::places::on;
use crate::doc::Doc;
use crate::words::plural;
use narrows_model::run::report::{ProofView, RoundView};
use narrows_model::words::units::{bps, percent};
use narrows_model::{Change, Place, Report, Status};

fn kept(report: &Report) -> impl Iterator<Item = &RoundView> {
    RoundView::kept(&report.run.ending, &report.rounds)
}

fn proven(report: &Report) -> impl Iterator<Item = &RoundView> {
    report.rounds.iter().filter(|round| round.is_proven())
}

/// A fix of the load alone changes no host: nothing of it is kept or rolled back.
fn is_of_load(round: &RoundView) -> bool {
    round.changes.is_empty()
}

/// Whether a fix that helped is kept.
pub(crate) fn is_kept(report: &Report) -> bool {
    kept(report).next().is_some()
}

/// `by local-shaper on the client (db7), fixed and kept: 47.9 Mbit/s to 25.5 Gbit/s`, and what limits now.
pub(crate) fn headline(report: &Report) -> String {
    let causes: Vec<String> = kept(report).filter_map(|round| cause(round, report)).collect();
    let fixed = match causes.is_empty() {
        true => "a fix is kept".to_owned(),
        false => format!("by {}, fixed and kept", causes.join(" and ")),
    };
    let gain = gain(report).map_or_else(String::new, |gain| format!(": {gain}"));
    let now = remains(report).map_or_else(String::new, |now| format!("; {now}"));
    fixed + &gain + &now
}

/// The first cause whose fix is kept, and where it is.
pub(crate) fn first_cause(report: &Report) -> Option<(&str, Place)> {
    kept(report).find_map(|round| Some((round.cause.as_deref()?, round.at?)))
}

/// What limits after the fixes that are kept; `None` where nothing does.
pub(crate) fn remains(report: &Report) -> Option<String> {
    // Later rounds measure the load of the fix, not the one that was asked for.
    if let Some(round) = proven(report).find(|round| is_of_load(round)) {
        let cause = cause(round, report).unwrap_or_else(|| "a limit of the load".to_owned());
        return Some(format!("{cause} remains, since its fix is another load"));
    }
    let last = report.rounds.last()?;
    match (last.status, cause(last, report)) {
        (Status::Healthy, _) => None,
        (Status::Limited, Some(cause)) => Some(format!("now limited by {cause}")),
        (Status::Suspected, Some(cause)) => Some(format!("now suspected: {cause}")),
        _ => Some("what limits now is unknown".to_owned()),
    }
}

/// The headline of the verdict, which is that of the first round.
pub(crate) fn found_at_first(report: &Report) -> String {
    let headline = &report.verdict.headline;
    if is_kept(report) { format!("before the fix: {headline}") } else { headline.clone() }
}

fn cause(round: &RoundView, report: &Report) -> Option<String> {
    let cause = round.cause.as_ref()?;
    Some(round.at.map_or_else(|| cause.clone(), |at| format!("{cause} {}", on(at, report))))
}

/// `37.1 Mbit/s to 942 Mbit/s`, of UDP with what was lost. `None` where it is not that of the fixes alone that are kept or could be: the
/// proof is of the load's fixes, too.
fn gain(report: &Report) -> Option<String> {
    let is_mixed = proven(report).any(is_of_load) && !proven(report).all(is_of_load);
    let proof = report.proof.as_ref().filter(|_| !is_mixed)?;
    let of = |values: &[f64]| ProofView::mean(values);
    let lost = of(&proof.before_loss).zip(of(&proof.after_loss));
    let lost = lost.map(|(before, after)| format!(", lost {} to {}", percent(before), percent(after)));
    let (before, after) = of(&proof.before_bps).zip(of(&proof.after_bps))?;
    Some(format!("{} to {}{}", bps(before), bps(after), lost.unwrap_or_default()))
}

/// That fixes are proven and rolled back, and how to keep them; `None` where none is.
pub(super) fn rolled_back(report: &Report) -> Option<String> {
    let of_hosts = proven(report).filter(|round| !is_of_load(round)).count();
    let all = if of_hosts > 0 { of_hosts } else { proven(report).count() };
    if all == 0 || is_kept(report) {
        return None;
    }
    let (fixes, them) = match all {
        1 => ("the fix is proven".to_owned(), "it"),
        n => (format!("{n} fixes are proven"), "them"),
    };
    let gain = gain(report).map_or_else(String::new, |gain| format!(" ({gain})"));
    let keep = format!(" and rolled back; `--try --keep` keeps {them} until the next boot");
    let is_undone = of_hosts > 0 && in_force(report).is_empty();
    Some(format!("{fixes}{gain}{}", if is_undone { keep } else { String::new() }))
}

/// What a run that was killed or lost a host may have left in force, and the commands that undo it; `None` where that is nothing, or
/// meant to be.
pub(super) fn left_in_force(report: &Report) -> Option<String> {
    let all = in_force(report);
    if all.is_empty() || is_kept(report) {
        return None;
    }
    let undo: Vec<_> = all.iter().map(|it| format!("{} {}", undo_of(it), on(it.at, report))).collect();
    Some(format!("{} may still be in force: {}", plural(all.len() as u64, "change"), undo.join(", ")))
}

/// What happened to the changes of all rounds.
pub(super) fn outcome(report: &Report) -> &'static str {
    let is_changed = report.rounds.iter().any(|round| !round.changes.is_empty());
    match (is_kept(report), is_changed) {
        (true, _) => "the changes are kept",
        _ if !in_force(report).is_empty() => "changes may still be in force",
        (_, true) => "all changes are rolled back",
        (_, false) => "no host was changed",
    }
}

/// What is in force, the latest first.
fn in_force(report: &Report) -> Vec<&Change> {
    report.rounds.iter().rev().flat_map(|round| round.changes.iter().rev()).filter(|it| it.in_force).collect()
}

fn undo_of(change: &Change) -> String {
    format!("narrows tune undo {}", change.id)
}

/// The fixes that could not be tried, and why.
pub(super) fn untried(report: &Report) -> impl Iterator<Item = String> {
    let absent = report.hosts.server.absent.iter();
    let of_fix = absent.filter(|it| it.collector == "diagnosis" && it.why.starts_with("its fix "));
    of_fix.map(|it| format!("{}: {}", it.what, it.why))
}

/// What is in force, and the commands that undo it, the latest first.
pub(super) fn undo(doc: Doc, report: &Report) -> Doc {
    let all = in_force(report);
    let doc = doc.heading("what is changed").paragraph(
        "This stays until the next boot. To make it permanent, add it to the configuration of the host. To undo it:",
    );
    let places = all.chunk_by(|a, b| a.at == b.at);
    places.fold(doc, |doc, all| doc.commands(&on(all[0].at, report), all.iter().map(|it| undo_of(it))))
}
