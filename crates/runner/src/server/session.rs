//! One session: what it may do, what it runs, and what it changed.

use super::audit::By;
use super::events::{End, Events};
use super::frames::Jobs;
use super::gate::Turn;
use super::holder::Holder;
use super::limits::Standing;
use super::refusal::Refused;
use super::running::Running;
use crate::helper::Tuning;
use crate::liveness::Liveness;
use crate::lock;
use crate::tune::{TuneError, Undone};
use narrows_model::{Change, Setting};
use narrows_wire::api::{Reason, SessionUse};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

#[derive(Debug)]
pub(super) struct Session {
    /// Its number on this server.
    pub(super) number: u64,
    /// Who knows it may use the session.
    pub(super) id: String,
    pub(super) address: Option<IpAddr>,
    /// Who opened it; nobody else may use it.
    pub(super) holder: Holder,
    pub(super) standing: Standing,
    pub(super) wanted: SessionUse,
    pub(super) events: Events,
    pub(super) end: End,
    pub(super) turn: watch::Sender<Turn>,
    /// The trial that runs or waits for its connections, and how many there were.
    pub(super) trial: Mutex<(Option<Running>, u32)>,
    /// Generators and receivers of raw frames.
    pub(super) frames: Mutex<Jobs>,
    /// Those of the client's data, while a trial runs.
    pub(super) liveness: Liveness,
    /// Requests that take memory or wait for a reading of this host, the one that runs included.
    asked: Arc<Semaphore>,
    /// One of them runs at a time.
    pub(super) reads: Arc<Semaphore>,
    /// What it changed on this host.
    changes: Mutex<Vec<Change>>,
    /// Locked while a change is made or undone, which may take time; true: no more changes.
    closed: Mutex<bool>,
}

/// Such requests at once: a session can be used from many connections.
const MAX_ASKED: usize = 4;

impl Session {
    pub(super) fn new(
        number: u64,
        id: String,
        address: Option<IpAddr>,
        holder: Holder,
        wanted: SessionUse,
        turn: Turn,
        events: Events,
    ) -> Self {
        Self {
            number,
            id,
            address,
            standing: holder.standing(),
            holder,
            wanted,
            events,
            end: End::default(),
            turn: watch::Sender::new(turn),
            trial: Mutex::default(),
            frames: Mutex::default(),
            liveness: Liveness::default(),
            asked: Arc::new(Semaphore::new(MAX_ASKED)),
            reads: Arc::new(Semaphore::new(1)),
            changes: Mutex::default(),
            closed: Mutex::default(),
        }
    }

    /// Its client, for the audit log.
    pub(super) fn by(&self) -> By<'_> {
        By { who: Some(self.holder.name()), from: self.address, session: Some(self.number) }
    }

    /// A place for a request that takes memory or waits, before its body is read; held until it is over.
    pub(super) fn place(&self) -> Result<OwnedSemaphorePermit, Refused> {
        let place = self.asked.clone().try_acquire_owned();
        place.map_err(|_| {
            Refused::new(Reason::Busy, "this session has several requests that wait; ask again after one of them")
        })
    }

    pub(super) fn is_admitted(&self) -> bool {
        *self.turn.borrow() == Turn::Admitted && !self.end.is_raised()
    }

    pub(super) fn set_turn(&self, turn: Turn) {
        self.turn.send_if_modified(|old| std::mem::replace(old, turn) != turn);
    }

    /// Makes a change that ends with the session. Blocks. It is noted here even where the request for it is given up.
    pub(super) fn apply(&self, tuner: &Tuning, setting: &Setting) -> Result<Change, TuneError> {
        let closed = lock(&self.closed);
        if *closed {
            return Err(tuner.no_such_change("of an ended session"));
        }
        let change = tuner.apply(setting)?;
        lock(&self.changes).push(change.clone());
        Ok(change)
    }

    pub(super) fn changes(&self) -> Vec<Change> {
        lock(&self.changes).clone()
    }

    /// Undoes one of its changes. Blocks. `None`: it is not one of this session.
    pub(super) fn undo(&self, tuner: &Tuning, id: &str) -> Option<Result<Change, TuneError>> {
        self.take(id, || tuner.undo(id).map(drop)).map(|taken| taken.map(|change| Change { in_force: false, ..change }))
    }

    /// Lets one of its changes outlive it. `None`: it is not one of this session.
    pub(super) fn keep(&self, tuner: &Tuning, id: &str) -> Option<Result<Change, TuneError>> {
        self.take(id, || tuner.keep(id).map(drop))
    }

    fn take(&self, id: &str, act: impl FnOnce() -> Result<(), TuneError>) -> Option<Result<Change, TuneError>> {
        let _closed = lock(&self.closed);
        let change = self.changes().into_iter().find(|change| change.id == id)?;
        Some(act().map(|()| {
            lock(&self.changes).retain(|change| change.id != id);
            change
        }))
    }

    /// Undoes all, the latest first, and takes no more. Blocks. Returns each, with a sentence where it went otherwise.
    pub(super) fn undo_all(&self, tuner: &Tuning) -> Vec<(Change, Option<String>)> {
        let mut closed = lock(&self.closed);
        *closed = true;
        let undo = |change: &Change| match tuner.undo(&change.id) {
            Ok(Undone::SetBack | Undone::AlreadyBack) | Err(TuneError::NoSuchChange { .. }) => None,
            Ok(otherwise) => Some(format!("change {} ({}): {otherwise}", change.id, change.set)),
            Err(error) => {
                Some(format!("cannot undo change {} ({}): {error}; see `narrows tune list`", change.id, change.set))
            }
        };
        let made = std::mem::take(&mut *lock(&self.changes));
        made.into_iter().rev().map(|change| (change.clone(), undo(&change))).collect()
    }
}
