//! Rolls changes back: one, all, or those that a dead process left.

use super::journal::Entry;
use super::knob::check_note;
use super::note::{before, words};
use super::{TuneError, Tuner};
use narrows_sys::network_id::NetworkId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How a change ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Undone {
    /// The old value is back.
    SetBack,
    /// The old value was there already.
    AlreadyBack,
    /// Somebody else set another value since, which stays.
    ChangedByOthers {
        /// What is there now.
        now: String,
    },
    /// A later change of the same thing is in force; its roll-back restores what was there before both.
    HandedOver { to: String },
    /// What was changed is gone and the change with it; why.
    Dropped(String),
}

impl fmt::Display for Undone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SetBack => f.write_str("rolled back"),
            Self::AlreadyBack => f.write_str("was already rolled back"),
            Self::ChangedByOthers { now } => {
                write!(f, "not rolled back, since another program changed it; it is now `{now}`")
            }
            Self::HandedOver { to } => {
                write!(f, "the later change {to} is in force; its roll-back restores the old value")
            }
            Self::Dropped(why) => write!(f, "dropped from the journal: {why}"),
        }
    }
}

/// One entry of the journal and what became of it.
#[derive(Debug)]
pub struct Undoing {
    pub entry: Entry,
    /// Its end, or why it is still in the journal.
    pub outcome: Result<Undone, TuneError>,
}

impl Tuner {
    /// Undoes one change. It stays in the journal where it is of another namespace or the kernel refuses.
    pub fn undo(&self, id: &str) -> Result<Undone, TuneError> {
        let _lock = self.host.lock()?;
        let mut entry = self.host.read(id)?;
        let undone = self.roll_back(&mut entry)?;
        self.host.remove(id)?;
        Ok(undone)
    }

    /// Undoes all changes of this namespace, the latest first, and drops those that nothing can undo any more.
    /// Entries of other living namespaces are in the answer with [`TuneError::OtherNamespace`].
    pub fn undo_all(&self) -> Result<Vec<Undoing>, TuneError> {
        self.undo_those(|_| true)
    }

    /// Undoes all that was made in this role, as [`Tuner::undo_all`] does.
    pub fn undo_of_role(&self) -> Result<Vec<Undoing>, TuneError> {
        self.undo_those(|entry| entry.by.role == self.role)
    }

    /// Undoes what dead processes of this role left in this namespace, unless it was to be kept.
    pub fn recover(&self) -> Result<Vec<Undoing>, TuneError> {
        let here = self.host.network()?;
        self.undo_those(|entry| {
            entry.by.role == self.role && !entry.kept && entry.namespace().is(&here) && !self.host.lives(&entry.by)
        })
    }

    fn undo_those(&self, wanted: impl Fn(&Entry) -> bool) -> Result<Vec<Undoing>, TuneError> {
        let (entries, _) = self.host.entries()?;
        Ok(entries
            .into_iter()
            .rev()
            .filter(wanted)
            .map(|entry| {
                let outcome = self.undo(&entry.change.id);
                Undoing { entry, outcome }
            })
            .collect())
    }

    /// Gives the old value of a change to the next later one of the same thing.
    fn hand_over(&self, entry: &Entry, mut later: Entry) -> Result<Undone, TuneError> {
        let old = &entry.change.before;
        let to = later.change.id.clone();
        if later.change.before == *old {
            return Ok(Undone::HandedOver { to });
        }
        // Somebody else set another value between the two, which is what the later one restores.
        if !entry.restoring && entry.obtained.as_ref().is_some_and(|obtained| *obtained != later.change.before) {
            return Ok(Undone::ChangedByOthers { now: before(&later.change) });
        }
        later.change.before.clone_from(old);
        self.host.write(&later)?;
        Ok(Undone::HandedOver { to })
    }

    fn roll_back(&self, entry: &mut Entry) -> Result<Undone, TuneError> {
        if entry.is_of_earlier_boot() {
            return Ok(Undone::Dropped("the host has rebooted since".to_owned()));
        }
        let namespace = entry.namespace();
        if !namespace.is(&self.host.network()?) {
            if NetworkId::lives(namespace.inode) {
                return Err(TuneError::OtherNamespace(entry.change.id.clone(), namespace.inode));
            }
            return Ok(Undone::Dropped(format!("its network namespace net:[{}] is gone", namespace.inode)));
        }
        if let Some(later) = self.host.entries()?.0.into_iter().find(|other| entry.is_covered_by(other)) {
            return self.hand_over(entry, later);
        }
        let set = entry.change.set.clone();
        let knob = self.host.knob(&set);
        // The journal is a file: what it names must be in the tables, as what is set.
        check_note(&entry.change.before)?;
        let now = match knob.check().and_then(|()| knob.current()) {
            Ok(now) => now,
            // ENODEV, ENXIO
            Err(TuneError::System(error)) if matches!(error.errno(), Some(19 | 6)) => {
                return Ok(Undone::Dropped(format!("the device is gone ({error})")));
            }
            Err(error) => return Err(error),
        };
        if now == entry.change.before {
            return Ok(Undone::AlreadyBack);
        }
        if !entry.restoring {
            if entry.obtained.as_ref().is_some_and(|obtained| *obtained != now) {
                return Ok(Undone::ChangedByOthers { now: words(&set, &now) });
            }
            // A roll-back that fails half-way leaves a value that nobody set.
            entry.restoring = true;
            self.host.write(entry)?;
        }
        knob.write(&entry.change.before)?;
        let now = knob.current()?;
        if now != entry.change.before {
            return Err(TuneError::NotObtained {
                what: entry.change.set.to_string(),
                wanted: before(&entry.change),
                got: words(&set, &now),
            });
        }
        Ok(Undone::SetBack)
    }
}
