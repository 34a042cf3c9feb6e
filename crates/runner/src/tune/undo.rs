//! Rolls changes back: one, all, or those that a dead process left.

use super::journal::Entry;
use super::{TuneError, Tuner, knob};
use narrows_sys::network_id::NetworkId;
use std::fmt;

/// How a change ended.
#[derive(Debug, Clone, PartialEq, Eq)]
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
            Self::Dropped(why) => write!(f, "dropped from the journal: {why}"),
        }
    }
}

/// One entry of the journal and what became of it.
#[derive(Debug)]
pub struct Undoing {
    /// The entry.
    pub entry: Entry,
    /// Its end, or why it is still in the journal.
    pub outcome: Result<Undone, TuneError>,
}

impl Tuner {
    /// Undoes one change. It stays in the journal where it is of another namespace, a later change covers it or the kernel refuses.
    pub fn undo(&self, id: &str) -> Result<Undone, TuneError> {
        let entry = self.journal.read(id)?;
        self.undo_entry(&entry)
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
        let here = NetworkId::current()?;
        self.undo_those(|entry| {
            entry.by.role == self.role && !entry.kept && entry.namespace().is(&here) && !entry.by.lives()
        })
    }

    fn undo_those(&self, wanted: impl Fn(&Entry) -> bool) -> Result<Vec<Undoing>, TuneError> {
        let entries = self.journal.entries()?;
        Ok(entries
            .into_iter()
            .rev()
            .filter(wanted)
            .map(|entry| {
                let outcome = self.undo_entry(&entry);
                Undoing { entry, outcome }
            })
            .collect())
    }

    fn undo_entry(&self, entry: &Entry) -> Result<Undone, TuneError> {
        let undone = self.roll_back(entry)?;
        self.journal.remove(&entry.change.id)?;
        Ok(undone)
    }

    fn roll_back(&self, entry: &Entry) -> Result<Undone, TuneError> {
        if entry.is_of_earlier_boot() {
            return Ok(Undone::Dropped("the host has rebooted since".to_owned()));
        }
        let namespace = entry.namespace();
        if !namespace.is(&NetworkId::current()?) {
            if NetworkId::lives(namespace.inode) {
                return Err(TuneError::OtherNamespace(entry.change.id.clone(), namespace.inode));
            }
            return Ok(Undone::Dropped(format!("its network namespace net:[{}] is gone", namespace.inode)));
        }
        if let Some(later) = self.journal.entries()?.iter().rev().find(|other| entry.is_covered_by(other)) {
            return Err(TuneError::LaterChange(later.change.id.clone()));
        }
        let knob = knob(&entry.change.set);
        let now = match knob.current() {
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
        if entry.obtained.as_ref().is_some_and(|obtained| *obtained != now) {
            return Ok(Undone::ChangedByOthers { now });
        }
        knob.write(&entry.change.before)?;
        let now = knob.current()?;
        if now != entry.change.before {
            return Err(TuneError::NotObtained {
                what: entry.change.set.to_string(),
                wanted: entry.change.before.clone(),
                got: now,
            });
        }
        Ok(Undone::SetBack)
    }
}
