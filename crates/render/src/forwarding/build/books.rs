//! The books of the trials: how they stand, where frames were lost, and which are worth being shown.

use super::{is_invalid, trial_name};
use narrows_model::forwarding::report::{BooksOfTrial, BooksView, Derived, LossPlace, Reconciliation};
use narrows_model::forwarding::{BookLine, ForwardingRecord, Test};
use std::collections::BTreeMap;

/// The most books that a report shows.
const MOST: usize = 12;
/// The most of invalid trials among them.
const MOST_INVALID: usize = 6;

/// The most places of loss that a report names.
const MOST_PLACES: usize = 64;

/// How the books stand.
pub(super) fn reconciliation(record: &ForwardingRecord, derived: &Derived, invalid: usize) -> Reconciliation {
    let books = derived.books.len() as u64;
    let disagree = derived.books.iter().filter(|it| it.books.disagreement.is_some()).count() as u64;
    Reconciliation {
        books,
        lost: sound(record, derived).fold(0, |sum, it| sum.saturating_add(u64::try_from(it.books.lost).unwrap_or(0))),
        balanced: books - disagree,
        disagree,
        trials: record.trials.len() as u64,
        invalid: invalid as u64,
    }
}

/// The books of the trials that say something.
fn sound<'a>(record: &'a ForwardingRecord, derived: &'a Derived) -> impl Iterator<Item = &'a BooksOfTrial> {
    derived.books.iter().filter(|it| !is_invalid(record, derived, it.trial))
}

/// Where frames were lost in trials that say something, most first.
pub(super) fn losses(record: &ForwardingRecord, derived: &Derived) -> Vec<LossPlace> {
    let mut sums: BTreeMap<(String, String), (u64, u64)> = BTreeMap::new();
    for books in sound(record, derived) {
        for (hop, reason, frames) in books.books.lines.iter().flat_map(places) {
            let sum = sums.entry((hop, reason)).or_default();
            *sum = (sum.0.saturating_add(frames), sum.1 + 1);
        }
    }
    let mut places: Vec<LossPlace> =
        sums.into_iter().map(|((hop, reason), (frames, trials))| LossPlace { hop, reason, frames, trials }).collect();
    places.sort_by_key(|it| std::cmp::Reverse(it.frames));
    places.truncate(MOST_PLACES);
    places
}

/// Where a line of the books lost frames, why, and how many; what its counters may be wrong by is no loss.
pub(in crate::forwarding) fn places(line: &BookLine) -> Vec<(String, String, u64)> {
    let beyond = |count: Option<i64>| {
        count.and_then(|count| u64::try_from(count).ok()).filter(|count| *count > line.uncertainty)
    };
    let mut places = Vec::new();
    if let Some(frames) = beyond(line.lost_before) {
        places.push((format!("before {}", line.hop), "no counter accounts for them".to_owned(), frames));
    }
    for drop in line.drops.iter().filter(|drop| drop.frames > 0) {
        places.push((line.hop.clone(), drop.reason.clone(), drop.frames));
    }
    if let Some(frames) = beyond(line.unexplained) {
        places.push((line.hop.clone(), "no counter accounts for them".to_owned(), frames));
    }
    places
}

/// The books that are worth being shown: those that disagree, then for each traffic the one with the most losses and one
/// of a confirmation.
pub(super) fn telling(record: &ForwardingRecord, derived: &Derived, names: &[String]) -> Vec<BooksView> {
    let mut chosen: Vec<(&BooksOfTrial, &str)> = Vec::new();
    let has = |chosen: &[(&BooksOfTrial, &str)], it: &BooksOfTrial| {
        chosen.iter().any(|(other, _)| (other.trial, other.direction) == (it.trial, it.direction))
    };
    let disagree = derived.books.iter().filter(|it| it.books.disagreement.is_some());
    chosen.extend(disagree.take(MOST_INVALID).map(|it| (it, "the counters disagree")));
    let room = MOST_INVALID.saturating_sub(chosen.len());
    let other =
        derived.books.iter().filter(|it| it.books.disagreement.is_none() && is_invalid(record, derived, it.trial));
    chosen.extend(other.take(room).map(|it| (it, "the trial is invalid")));
    for traffic in 0..names.len() {
        let sound = || {
            sound(record, derived)
                .filter(|it| record.trials.get(it.trial).is_some_and(|trial| trial.traffic == traffic))
        };
        let most = sound().filter(|it| it.books.lost > 0).max_by_key(|it| it.books.lost);
        let test = |it: &&BooksOfTrial| record.trials.get(it.trial).map(|trial| trial.test);
        let confirmed = sound()
            .filter(|it| test(it) == Some(Test::Confirmation))
            .max_by_key(|it| (it.books.lost, std::cmp::Reverse(it.trial)));
        for (it, why) in [(most, "most frames lost"), (confirmed, "at the throughput")] {
            if let Some(it) = it.filter(|it| chosen.len() < MOST && !has(&chosen, it)) {
                chosen.push((it, why));
            }
        }
    }
    if chosen.is_empty() {
        chosen.extend(derived.books.first().map(|it| (it, "the first trial")));
    }
    chosen.into_iter().filter_map(|(it, telling)| view(record, names, it, telling)).collect()
}

fn view(record: &ForwardingRecord, names: &[String], it: &BooksOfTrial, telling: &str) -> Option<BooksView> {
    let trial = record.trials.get(it.trial)?;
    let direction = match it.direction {
        _ if trial.directions.len() < 2 => "",
        0 => "forth",
        _ => "back",
    };
    Some(BooksView {
        trial: trial_name(record, names, it.trial)?,
        direction: direction.to_owned(),
        telling: telling.to_owned(),
        books: it.books.clone(),
        invalid: trial.invalid.clone().or_else(|| it.books.disagreement.clone()),
    })
}
