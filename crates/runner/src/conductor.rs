//! What every search for a better setting does: settings of both hosts into force and back, and two sides measured in turn. What differs
//! from one to the other is the schedule: the climb of `diagnose --try`, `optimise`, a campaign.

use crate::ends::{Changes, EndsError};
use narrows_model::{Change, Place, Setting};

/// A setting at its host.
pub(crate) type At = (Place, Setting);

/// What is in force, the last made last. Each change is in the journal of its host.
#[derive(Debug, Default)]
pub(crate) struct InForce {
    changes: Vec<Change>,
    /// Every setting that was ever made, with the value before the first time.
    before: Vec<(At, String)>,
}

impl InForce {
    /// Brings exactly these settings into force.
    /// Errors: one cannot be made or undone; what was done until then stays.
    pub(crate) fn reach(&mut self, hosts: &mut dyn Changes, wanted: &[At]) -> Result<(), EndsError> {
        let is = |change: &Change, (at, set): &At| change.at == *at && change.set == *set;
        for nth in (0..self.changes.len()).rev() {
            if !wanted.iter().any(|it| is(&self.changes[nth], it)) {
                hosts.undo(&self.changes[nth])?;
                self.changes.remove(nth);
            }
        }
        for it in wanted {
            if self.changes.iter().any(|change| is(change, it)) {
                continue;
            }
            let change = hosts.apply(it.0, &it.1)?;
            if self.before(it).is_none() {
                self.before.push((it.clone(), change.before.clone()));
            }
            self.changes.push(change);
        }
        Ok(())
    }

    /// The value before a setting was made for the first time.
    pub(crate) fn before(&self, at: &At) -> Option<&str> {
        self.before.iter().find(|(known, _)| known == at).map(|(_, value)| value.as_str())
    }

    /// What is in force.
    pub(crate) fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Keeps all that is in force, or undoes it, the last made first; what could not be.
    pub(crate) fn end(&mut self, hosts: &mut dyn Changes, keep: bool) -> Vec<(Change, EndsError)> {
        let all = std::mem::take(&mut self.changes).into_iter().rev();
        let end = |change: Change| {
            let done = if keep { hosts.keep(&change) } else { hosts.undo(&change) };
            done.err().map(|why| (change, why))
        };
        all.filter_map(end).collect()
    }
}

/// The sides of a pair, without (`false`) and with (`true`): the first in turn, so that drift affects both alike.
pub(crate) const fn sides(pair: usize) -> [bool; 2] {
    if pair.is_multiple_of(2) { [false, true] } else { [true, false] }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hosts with settings alone; one key cannot be set.
    #[derive(Default)]
    struct Hosts {
        log: Vec<String>,
    }

    impl Changes for Hosts {
        fn apply(&mut self, at: Place, set: &Setting) -> Result<Change, EndsError> {
            let key = set.to_string();
            if key.contains("never") {
                return Err(EndsError::Failed("no".to_owned()));
            }
            self.log.push(format!("+{key}"));
            let (id, before) = (self.log.len().to_string(), "old".to_owned());
            Ok(Change { id, at, set: set.clone(), before, made_unix_us: 0, in_force: true })
        }

        fn undo(&mut self, change: &Change) -> Result<(), EndsError> {
            self.log.push(format!("-{}", change.set));
            if change.set.to_string().contains("stuck") { Err(EndsError::Lost("gone".to_owned())) } else { Ok(()) }
        }

        fn keep(&mut self, change: &Change) -> Result<(), EndsError> {
            self.log.push(format!("={}", change.set));
            Ok(())
        }
    }

    fn at(key: &str) -> At {
        (Place::Client, Setting::Sysctl { key: key.to_owned(), value: "1".to_owned() })
    }

    #[test]
    fn exactly_what_is_wanted_is_in_force_and_all_of_it_ends() {
        let (mut hosts, mut force) = (Hosts::default(), InForce::default());
        force.reach(&mut hosts, &[at("a"), at("b")]).expect("both");
        force.reach(&mut hosts, &[at("b"), at("stuck")]).expect("one new");
        assert!(force.reach(&mut hosts, &[at("b"), at("stuck"), at("c"), at("never")]).is_err());
        assert_eq!(force.changes().len(), 3, "what was made before the error is known");
        assert_eq!((force.before(&at("a")), force.before(&at("never"))), (Some("old"), None));
        let left = force.end(&mut hosts, false);
        assert_eq!(left.len(), 1, "the others are undone all the same");
        let log: Vec<char> = hosts.log.iter().filter_map(|it| it.chars().next()).collect();
        assert_eq!(log, ['+', '+', '-', '+', '+', '-', '-', '-'], "{:?}", hosts.log);
        assert!(force.changes().is_empty() && force.end(&mut hosts, true).is_empty());
    }

    #[test]
    fn the_first_side_changes_from_pair_to_pair() {
        assert_eq!([sides(0), sides(1), sides(2)], [[false, true], [true, false], [false, true]]);
    }
}
