//! The life of a session: from its admission to the moment when all that it started has stopped and all that it changed is undone.

use super::audit::{self, Action};
use super::frames::Jobs;
use super::gate::Turn;
use super::holder::Holder;
use super::limits::{ENGINE_END, OPEN_SESSION, Standing};
use super::running::Phase;
use super::session::Session;
use super::shared::Shared;
use crate::liveness::AGAIN;
use crate::lock;
use crate::tokens::MOMENT;
use axum::body::Body;
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use narrows_wire::api::{CLIENT_SILENCE_MS, Event, HEARTBEAT_MS};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};

/// A client whose events find no room for this long reads none; an overloaded path delivers some.
const UNREAD_MS: u64 = 4 * CLIENT_SILENCE_MS;

/// The life of a session. `beats` is the body of the client's request.
pub(super) async fn live(shared: Arc<Shared>, session: Arc<Session>, beats: Body) {
    let mut turn = session.turn.subscribe();
    let mut sent = None;
    let mut beat = interval(Duration::from_millis(HEARTBEAT_MS));
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let ending = session.end.wait();
    let listening = listen(&session, beats);
    let latest = Instant::now() + OPEN_SESSION;
    let expiry = async {
        match session.standing {
            Standing::Open => sleep_until(latest).await,
            Standing::Trusted => std::future::pending().await,
        }
    };
    tokio::pin!(ending, listening, expiry);
    let (mut listens, mut unread) = (true, 0);
    let why = loop {
        let now = *turn.borrow_and_update();
        if sent.replace(now) != Some(now) {
            let introduction = introduction(&shared, &session, now);
            tokio::select! {
                why = &mut ending => break why,
                () = session.events.tell(&introduction) => {}
            }
        }
        tokio::select! {
            why = &mut ending => break why,
            () = &mut listening, if listens => listens = false,
            () = &mut expiry => session.end.raise("its time limit without a token is reached"),
            _ = turn.changed() => {}
            _ = beat.tick() => {
                if let Holder::Named(_) = session.holder {
                    shared.tokens.renew(MOMENT).await;
                }
                if let Some(why) = shared.ended(&session.holder) {
                    session.end.raise(why);
                }
                // A client that sends heartbeats but never reads would occupy its place for nothing.
                unread = if session.events.mention(&Event::Beat) { 0 } else { unread + 1 };
                if unread * HEARTBEAT_MS >= UNREAD_MS {
                    session.end.raise("the client does not read its events");
                }
            }
        }
    };
    close(&shared, &session).await;
    shared.audit.note(&session.by(), &audit::Event::SessionEnd { why: why.to_owned() });
    session.events.mention(&Event::Ended { why: why.to_owned() });
    let _ = timeout(ENGINE_END, session.events.finish()).await;
}

fn introduction(shared: &Shared, session: &Session, turn: Turn) -> Event {
    match turn {
        Turn::Admitted => Event::Admitted { session: session.id.clone() },
        Turn::Queued(position) => Event::Queued { position, why: shared.why_queued(session.standing) },
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
            Ok(None) => return session.end.raise("the client ended it"),
            Ok(Some(Err(_))) => return session.end.raise("the client is gone"),
            Err(_) => return session.end.raise("the client sent no heartbeat for too long"),
        }
    }
}

/// Stops the trial, undoes the changes, and only then lets the next one in.
async fn close(shared: &Arc<Shared>, session: &Arc<Session>) {
    shared.forget(session);
    shared.passes.end(session.number);
    if !Jobs::end_all(&session.frames).await {
        crate::say("a frame generator did not end in time; its session is freed anyway");
    }
    let running = lock(&session.trial).0.clone();
    if let Some(running) = running {
        running.stop.stop();
        if timeout(ENGINE_END, running.reach(Phase::Over)).await.is_err() {
            crate::say("an engine did not end in time; its session is freed anyway");
        }
    }
    let (undoing, theirs) = (shared.clone(), session.clone());
    let undone = tokio::task::spawn_blocking(move || theirs.undo_all(&undoing.tuner)).await;
    for (change, failure) in undone.unwrap_or_default() {
        shared.audit.note(&session.by(), &audit::Event::changed(Action::Undo, &change, failure.clone()));
        failure.iter().for_each(|sentence| crate::say(sentence));
    }
    shared.leave(session);
}
