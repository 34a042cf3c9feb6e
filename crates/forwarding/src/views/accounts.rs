//! The accounts of the trials: how they reconcile, where frames were lost, and which are shown.

use super::build::trial_name;
use super::{AccountOfTrial, Derived};
use crate::data::Test;
use crate::data::report::{BooksView, LossPlace, Reconciliation};
use std::collections::BTreeMap;

/// Accounts that a report shows.
const MAX_SHOWN: usize = 12;
/// Those of invalid trials among them.
const MAX_INVALID: usize = 6;

/// Places of loss that a report names.
const MAX_PLACES: usize = 64;

/// How the accounts reconcile.
pub(super) fn reconciliation(derived: &Derived) -> Reconciliation {
    let books = derived.accounts.len() as u64;
    let disagree = derived.accounts.iter().filter(|it| it.account.disagreement.is_some()).count() as u64;
    Reconciliation {
        books,
        lost: sound(derived).fold(0, |sum, it| sum.saturating_add(u64::try_from(it.account.lost).unwrap_or(0))),
        balanced: books - disagree,
        disagree,
        trials: derived.record.trials.len() as u64,
        invalid: derived.invalid.iter().flatten().count() as u64,
    }
}

/// The accounts of valid trials.
fn sound(derived: &Derived) -> impl Iterator<Item = &AccountOfTrial> {
    derived.accounts.iter().filter(|it| !derived.is_invalid(it.trial))
}

/// Where frames were lost in the valid trials of the record, most first.
pub(super) fn losses(derived: &Derived) -> Vec<LossPlace> {
    let mut sums: BTreeMap<(String, String), (u64, u64)> = BTreeMap::new();
    for it in sound(derived) {
        for (hop, reason, frames) in it.account.losses() {
            let sum = sums.entry((hop, reason)).or_default();
            *sum = (sum.0.saturating_add(frames), sum.1 + 1);
        }
    }
    let mut places: Vec<LossPlace> =
        sums.into_iter().map(|((hop, reason), (frames, trials))| LossPlace { hop, reason, frames, trials }).collect();
    places.sort_by_key(|it| std::cmp::Reverse(it.frames));
    places.truncate(MAX_PLACES);
    places
}

/// The accounts to be shown: those that disagree, then for each traffic the one with the most losses and one
/// of a confirmation.
pub(super) fn telling(derived: &Derived, names: &[String]) -> Vec<BooksView> {
    let mut chosen: Vec<(&AccountOfTrial, &str)> = Vec::new();
    let has = |chosen: &[(&AccountOfTrial, &str)], it: &AccountOfTrial| {
        chosen.iter().any(|(other, _)| (other.trial, other.direction) == (it.trial, it.direction))
    };
    let disagree = derived.accounts.iter().filter(|it| it.account.disagreement.is_some());
    chosen.extend(disagree.take(MAX_INVALID).map(|it| (it, "the counters disagree")));
    let room = MAX_INVALID.saturating_sub(chosen.len());
    let other = derived.accounts.iter().filter(|it| it.account.disagreement.is_none() && derived.is_invalid(it.trial));
    chosen.extend(other.take(room).map(|it| (it, "the trial is invalid")));
    for traffic in 0..names.len() {
        let sound = || {
            sound(derived)
                .filter(|it| derived.record.trials.get(it.trial).is_some_and(|trial| trial.traffic == traffic))
        };
        let most = sound().filter(|it| it.account.lost > 0).max_by_key(|it| it.account.lost);
        let test = |it: &&AccountOfTrial| derived.record.trials.get(it.trial).map(|trial| trial.test);
        let confirmed = sound()
            .filter(|it| test(it) == Some(Test::Confirmation))
            .max_by_key(|it| (it.account.lost, std::cmp::Reverse(it.trial)));
        for (it, why) in [(most, "most frames lost"), (confirmed, "at the throughput")] {
            if let Some(it) = it.filter(|it| chosen.len() < MAX_SHOWN && !has(&chosen, it)) {
                chosen.push((it, why));
            }
        }
    }
    if chosen.is_empty() {
        chosen.extend(derived.accounts.first().map(|it| (it, "the first trial")));
    }
    chosen.into_iter().filter_map(|(it, telling)| view(derived, names, it, telling)).collect()
}

fn view(derived: &Derived, names: &[String], it: &AccountOfTrial, telling: &str) -> Option<BooksView> {
    let trial = derived.record.trials.get(it.trial)?;
    let direction = match it.direction {
        _ if trial.directions.len() < 2 => "",
        0 => "forth",
        _ => "back",
    };
    Some(BooksView {
        trial: trial_name(&derived.record, names, it.trial)?,
        direction: direction.to_owned(),
        telling: telling.to_owned(),
        books: it.account.clone(),
        invalid: derived.invalid.get(it.trial).cloned().flatten(),
    })
}
