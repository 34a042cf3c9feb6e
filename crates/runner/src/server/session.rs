//! One session: from its admission to the moment when all that it started has stopped and all that it changed is undone.

use super::events::Events;
use super::frames::Jobs;
use super::gate::Turn;
use super::limits::{ENGINE_END, OPEN_SESSION, Standing};
use super::shared::Shared;
use super::trial::Running;
use crate::liveness::{AGAIN, Liveness};
use crate::tune::{TuneError, Undone, check_for_client};
use axum::body::Body;
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use narrows_model::{Change, Place, Setting};
use narrows_wire::api::{CLIENT_SILENCE_MS, Event, HEARTBEAT_MS, SessionUse};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};

/// A client's session.
#[derive(Debug)]
pub(super) struct Session {
    /// Its number on this server.
    pub(super) number: u64,
    /// Who knows it may use the session.
    pub(super) id: String,
    pub(super) address: Option<IpAddr>,
    pub(super) standing: Standing,
    pub(super) wanted: SessionUse,
    pub(super) events: Events,
    ended: watch::Sender<Option<&'static str>>,
    turn: watch::Sender<Turn>,
    /// The trial that runs or waits for its connections, and how many there were.
    pub(super) trial: Mutex<(Option<Running>, u32)>,
    /// Generators and receivers of raw frames.
    pub(super) frames: Mutex<Jobs>,
    /// Those of the client's data, while a trial runs.
    pub(super) liveness: Liveness,
    changes: Mutex<Changes>,
}

/// What the session changed on this host.
#[derive(Debug, Default)]
struct Changes {
    made: Vec<Change>,
    closed: bool,
}

/// Locks that hold plain data: what a panic left there is as good as before.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    pub(super) fn new(
        number: u64,
        id: String,
        address: Option<IpAddr>,
        standing: Standing,
        wanted: SessionUse,
        turn: Turn,
        events: Events,
    ) -> Self {
        Self {
            number,
            id,
            address,
            standing,
            wanted,
            events,
            ended: watch::Sender::new(None),
            turn: watch::Sender::new(turn),
            trial: Mutex::default(),
            frames: Mutex::default(),
            liveness: Liveness::default(),
            changes: Mutex::default(),
        }
    }

    /// Ends it; the first reason stays. Its task does the rest.
    pub(super) fn end(&self, why: &'static str) {
        self.ended.send_if_modified(|ended| {
            let first = ended.is_none();
            if first {
                *ended = Some(why);
            }
            first
        });
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.borrow().is_some()
    }

    /// Waits for its end; why.
    pub(super) async fn wait_for_end(&self) -> &'static str {
        let mut ended = self.ended.subscribe();
        match ended.wait_for(Option::is_some).await {
            Ok(why) => why.unwrap_or_default(),
            Err(_) => "the session is gone",
        }
    }

    pub(super) fn is_admitted(&self) -> bool {
        *self.turn.borrow() == Turn::Admitted && !self.has_ended()
    }

    pub(super) fn set_turn(&self, turn: Turn) {
        self.turn.send_if_modified(|old| std::mem::replace(old, turn) != turn);
    }

    /// Makes a change that ends with the session. Blocks; also where the request for it is given up, the change is noted here.
    pub(super) fn apply(&self, shared: &Shared, setting: &Setting) -> Result<Change, TuneError> {
        let mut changes = lock(&self.changes);
        if changes.closed {
            return Err(TuneError::NoSuchChange {
                id: "of an ended session".to_owned(),
                journal: shared.config.state.clone(),
            });
        }
        check_for_client(setting)?;
        let change = shared.tuner.apply(setting, Place::Server)?;
        changes.made.push(change.clone());
        Ok(change)
    }

    pub(super) fn changes(&self) -> Vec<Change> {
        lock(&self.changes).made.clone()
    }

    /// Undoes one of its changes. Blocks. `None`: it is none of this session.
    pub(super) fn undo(&self, shared: &Shared, id: &str) -> Option<Result<Change, TuneError>> {
        let mut changes = lock(&self.changes);
        let index = changes.made.iter().position(|change| change.id == id)?;
        Some(shared.tuner.undo(id).map(|_| {
            let mut change = changes.made.remove(index);
            change.in_force = false;
            change
        }))
    }

    /// Lets one of its changes outlive it. `None`: it is none of this session.
    pub(super) fn keep(&self, shared: &Shared, id: &str) -> Option<Result<Change, TuneError>> {
        let mut changes = lock(&self.changes);
        let index = changes.made.iter().position(|change| change.id == id)?;
        Some(shared.tuner.keep(id).map(|_| changes.made.remove(index)))
    }

    /// Undoes all, the latest first, and takes no more. Blocks.
    fn undo_all(&self, shared: &Shared) {
        let mut changes = lock(&self.changes);
        changes.closed = true;
        for change in changes.made.drain(..).rev() {
            match shared.tuner.undo(&change.id) {
                Ok(Undone::SetBack | Undone::AlreadyBack) | Err(TuneError::NoSuchChange { .. }) => {}
                Ok(otherwise) => shared.say(&format!("change {} ({}): {otherwise}", change.id, change.set)),
                Err(error) => shared.say(&format!(
                    "change {} ({}) could not be undone: {error}; see `narrows tune list`",
                    change.id, change.set
                )),
            }
        }
    }
}

/// The life of a session. `beats` is the body of the client's request.
pub(super) async fn live(shared: Arc<Shared>, session: Arc<Session>, beats: Body) {
    let mut turn = session.turn.subscribe();
    let mut told = None;
    let mut beat = interval(Duration::from_millis(HEARTBEAT_MS));
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let ending = session.wait_for_end();
    let listening = listen(&session, beats);
    let latest = Instant::now() + OPEN_SESSION;
    let expiry = async {
        match session.standing {
            Standing::Open => sleep_until(latest).await,
            Standing::Trusted => std::future::pending().await,
        }
    };
    tokio::pin!(ending, listening, expiry);
    let mut listens = true;
    let why = loop {
        let now = *turn.borrow_and_update();
        if told.replace(now) != Some(now) {
            session.events.tell(&introduction(&shared, &session, now)).await;
        }
        tokio::select! {
            why = &mut ending => break why,
            () = &mut listening, if listens => listens = false,
            () = &mut expiry => session.end("its time without a token is over"),
            _ = turn.changed() => {}
            _ = beat.tick() => session.events.mention(&Event::Beat),
        }
    };
    close(&shared, &session).await;
    session.events.mention(&Event::Ended { why: why.to_owned() });
    session.events.finish().await;
}

fn introduction(shared: &Shared, session: &Session, turn: Turn) -> Event {
    match turn {
        Turn::Admitted => Event::Admitted { session: session.id.clone() },
        Turn::Queued(position) => Event::Queued { position, why: shared.why_queued() },
    }
}

/// Listens to the client's beats. Returns where there are none to expect: a client such as curl sends no body, or one of a
/// length known before, and is watched through its connection alone.
async fn listen(session: &Session, mut beats: Body) {
    if beats.size_hint().exact().is_some() {
        return;
    }
    let patience = Duration::from_millis(CLIENT_SILENCE_MS);
    let mut wait = patience;
    loop {
        match timeout(wait, beats.frame()).await {
            Ok(Some(Ok(_))) => wait = patience,
            Err(_) if session.liveness.is_alive(patience).await => wait = AGAIN,
            Ok(None) => return session.end("the client ended it"),
            Ok(Some(Err(_))) => return session.end("the client is gone"),
            Err(_) => return session.end("the client has been silent for too long"),
        }
    }
}

/// Stops the trial, undoes the changes, and only then lets the next one in.
async fn close(shared: &Arc<Shared>, session: &Arc<Session>) {
    shared.forget(session);
    session.end_frames(shared).await;
    let running = lock(&session.trial).0.clone();
    if let Some(running) = running {
        running.stop.stop();
        if timeout(ENGINE_END, running.wait_for_end()).await.is_err() {
            shared.say("an engine did not end in time; its session is freed all the same");
        }
    }
    let (undoing, theirs) = (shared.clone(), session.clone());
    let _ = tokio::task::spawn_blocking(move || theirs.undo_all(&undoing)).await;
    shared.leave(session);
}
