//! Changes of this host: made here, or by the helper [`Role::Tune`](super::Role), which checks each of them again.

use super::line::Line;
use super::order::{Refusal, TuneOrder};
use crate::lock;
use crate::tune::{TuneError, Tuner, Undone};
use narrows_model::{Change, Setting};
use narrows_sys::channel::Channel;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Mutex;

/// Who makes changes for the server.
#[derive(Debug)]
pub(crate) enum Tuning {
    Here(Tuner),
    /// The helper; where its journal is.
    Helper(Line, PathBuf),
    /// Nobody: the server was not started with `--allow-tune`. Where the journal would be.
    Nobody(PathBuf),
}

impl Tuning {
    fn order<T: DeserializeOwned>(&self, order: &TuneOrder, id: &str) -> Result<T, TuneError> {
        let Self::Helper(line, _) = self else { return Err(self.no_such_change(id)) };
        line.call(order).map_err(|refusal| match refusal {
            Refusal::NotAllowed(why) => TuneError::Refused(why),
            Refusal::Failed(why) => TuneError::Helper(why),
            Refusal::NoSuchChange => self.no_such_change(id),
        })
    }

    /// Makes a setting of this host for a client.
    pub(crate) fn apply(&self, setting: &Setting) -> Result<Change, TuneError> {
        match self {
            Self::Here(tuner) => tuner.apply_for_client(setting),
            _ => self.order(&TuneOrder::Apply(setting.clone()), "with that setting"),
        }
    }

    pub(crate) fn undo(&self, id: &str) -> Result<Undone, TuneError> {
        match self {
            Self::Here(tuner) => tuner.undo(id),
            _ => self.order(&TuneOrder::Undo(id.to_owned()), id),
        }
    }

    /// Lets a change outlive the server.
    pub(crate) fn keep(&self, id: &str) -> Result<Change, TuneError> {
        match self {
            Self::Here(tuner) => tuner.keep(id),
            _ => self.order(&TuneOrder::Keep(id.to_owned()), id),
        }
    }

    pub(crate) fn no_such_change(&self, id: &str) -> TuneError {
        match self {
            Self::Here(tuner) => tuner.no_such_change(id),
            Self::Helper(_, journal) | Self::Nobody(journal) => TuneError::NoSuchChange(id.to_owned(), journal.clone()),
        }
    }
}

/// The helper's end: what it made, and whether it takes more.
pub(super) struct Tunes {
    tuner: Tuner,
    allowed: bool,
    made: Mutex<Made>,
}

#[derive(Default)]
struct Made {
    ids: BTreeSet<String>,
    closed: bool,
}

impl Tunes {
    pub(super) fn new(tuner: Tuner, allowed: bool) -> Self {
        Self { tuner, allowed, made: Mutex::default() }
    }

    /// Carries out an order, after every check that the network process should have made.
    pub(super) fn carry_out(&self, order: TuneOrder) -> Result<Value, Refusal> {
        let mut made = lock(&self.made);
        if !self.allowed || made.closed {
            return Err(Refusal::NotAllowed("this server does not allow changes".to_owned()));
        }
        let own = |id: &String| if made.ids.contains(id) { Ok(()) } else { Err(Refusal::NoSuchChange) };
        match order {
            TuneOrder::Apply(setting) => {
                let change = self.tuner.apply_for_client(&setting).map_err(|error| refusal(&error))?;
                made.ids.insert(change.id.clone());
                value(&change)
            }
            TuneOrder::Undo(id) => {
                own(&id)?;
                let undone = self.tuner.undo(&id).map_err(|error| refusal(&error))?;
                made.ids.remove(&id);
                value(&undone)
            }
            TuneOrder::Keep(id) => {
                own(&id)?;
                let change = self.tuner.keep(&id).map_err(|error| refusal(&error))?;
                made.ids.remove(&id);
                value(&change)
            }
        }
    }

    /// Answers the order of a channel.
    pub(super) fn attend(&self, channel: &Channel) {
        super::answering::one_order(channel, |order, _| self.carry_out(order));
    }

    /// Undoes all that it made, the latest first, and takes no more. Returns what went otherwise, in sentences.
    pub(super) fn end(&self) -> Vec<String> {
        let mut made = lock(&self.made);
        made.closed = true;
        let undo = |id: String| match self.tuner.undo(&id) {
            Ok(Undone::SetBack | Undone::AlreadyBack) | Err(TuneError::NoSuchChange(..)) => None,
            Ok(otherwise) => Some(format!("change {id}: {otherwise}")),
            Err(error) => Some(format!("cannot undo change {id}: {error}; see `narrows tune list`")),
        };
        // Later ones first: an id begins with the time.
        std::mem::take(&mut made.ids).into_iter().rev().filter_map(undo).collect()
    }
}

fn refusal(error: &TuneError) -> Refusal {
    match error {
        TuneError::NotInTable { .. } | TuneError::NotForClients(_) | TuneError::BadValue { .. } => {
            Refusal::NotAllowed(error.to_string())
        }
        TuneError::NoSuchChange(..) => Refusal::NoSuchChange,
        _ => Refusal::Failed(error.to_string()),
    }
}

fn value(of: &impl Serialize) -> Result<Value, Refusal> {
    serde_json::to_value(of).map_err(|error| Refusal::Failed(error.to_string()))
}
