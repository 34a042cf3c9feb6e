//! The requests of the control API, one function each. `docs/api.md` describes them; `narrows_wire::api` has their types.

use super::events::{self, EventBody};
use super::frames;
use super::limits::{BODY, bounded};
use super::refusal::{Refused, VERSION, json};
use super::rights::Rights;
use super::session::{self, Session};
use super::shared::Shared;
use super::stdio;
use super::trial;
use crate::trust;
use crate::tune::TuneError;
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, Response, Uri, header};
use axum::routing::{delete, get, post};
use http_body_util::{BodyExt as _, Limited};
use narrows_wire::PROTOCOL;
use narrows_wire::api::{
    ChangeRequest, Hello, InventoryRequest, MAX_REQUEST_BYTES, Reason, SessionUse, TrialReady, TrialRequest, key_to_hex,
};
use serde::de::DeserializeOwned;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::time::timeout;

pub(super) type Answer = Result<Response<Body>, Refused>;
pub(super) type Server = State<Arc<Shared>>;

/// All requests. One line each.
pub(super) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/v1/hello", get(hello))
        .route("/v1/sessions", post(open_session))
        .route("/v1/sessions/{id}/inventory", post(inventory))
        .route("/v1/sessions/{id}/interfaces", get(interfaces))
        .route("/v1/sessions/{id}/trials", post(open_trial))
        .route("/v1/sessions/{id}/trials/begin", post(begin_trial))
        .route("/v1/sessions/{id}/trials/end", post(end_trial))
        .route("/v1/sessions/{id}/trials/stop", post(stop_trial))
        .route("/v1/sessions/{id}/changes", get(list_changes).post(apply_change))
        .route("/v1/sessions/{id}/changes/{change}", delete(undo_change))
        .route("/v1/sessions/{id}/changes/{change}/keep", post(keep_change))
        .route("/v1/sessions/{id}/links", post(frames::links))
        .route("/v1/sessions/{id}/frames/look", post(frames::look))
        .route("/v1/sessions/{id}/frames/qualify", post(frames::qualify))
        .route("/v1/sessions/{id}/frames", post(frames::begin))
        .route("/v1/sessions/{id}/frames/{job}/wait", post(frames::wait))
        .route("/v1/sessions/{id}/frames/{job}/stop", post(frames::stop))
        .route("/v1/sessions/{id}/frames/{job}", delete(frames::end))
        .fallback(nothing_here)
        .method_not_allowed_fallback(nothing_here)
        .with_state(shared)
}

async fn nothing_here(_: Rights, uri: Uri) -> Refused {
    let path = uri.path().chars().take(100).collect::<String>();
    Refused::new(Reason::NotFound, format!("this server has no such request ({path}); docs/api.md lists them"))
}

async fn hello(rights: Rights, State(shared): Server) -> Answer {
    let mut capabilities: Vec<String> = narrows_model::LoadPlan::KINDS.iter().map(|kind| kind.to_lowercase()).collect();
    capabilities.push("links".to_owned());
    if rights.permissions.tune {
        capabilities.push("tune".to_owned());
    }
    if !shared.config.frames.is_empty() {
        capabilities.push("frames".to_owned());
    }
    Ok(json(&Hello {
        version: VERSION.to_owned(),
        protocol: PROTOCOL,
        host: shared.config.instruments.host_name(),
        data_port: shared.port,
        data_address: if shared.config.stdio { stdio::own_address().map(|address| address.to_string()) } else { None },
        permissions: rights.permissions,
        capabilities,
    }))
}

/// The body is the client's heartbeat, so it is not read here.
async fn open_session(rights: Rights, State(shared): Server, uri: Uri, beats: Body) -> Answer {
    let wanted = match uri.query() {
        None | Some("" | "use=load") => SessionUse::Load,
        Some("use=look") => SessionUse::Look,
        Some(_) => return Err(Refused::bad("the query must be use=load or use=look")),
    };
    let (sender, lines) = events::channel();
    let session = shared.open(rights.address, rights.standing, wanted, sender)?;
    if let Some(pending) = &rights.pending {
        pending.admit();
    }
    tokio::spawn(session::live(shared, session.clone(), beats));
    let mut response = Response::new(Body::new(EventBody::new(lines, session)));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    Ok(response)
}

async fn inventory(rights: Rights, State(shared): Server, Path(id): Path<String>, body: Body) -> Answer {
    let session = find(&shared, &id)?;
    let request: InventoryRequest = read(body).await?;
    let told = request.peer.as_deref().map(str::parse::<IpAddr>).transpose();
    let told = told.map_err(|_| Refused::bad("`peer` must be an IP address"))?;
    let peer = session.address.or(told).map(|address| address.to_canonical());
    let reading = shared.clone();
    let snapshot = blocking(move || reading.config.instruments.inventory(peer)).await?;
    Ok(json(&shared.as_seen_by(rights.standing, snapshot)))
}

async fn interfaces(rights: Rights, State(shared): Server, Path(id): Path<String>) -> Answer {
    let session = find(&shared, &id)?;
    if !rights.permissions.inventory {
        return Err(Refused::new(
            Reason::NotAllowed,
            "this server is open and shows its interfaces only to clients with its token",
        ));
    }
    admitted(&session)?;
    let interfaces = blocking(move || shared.config.instruments.interfaces()).await?.map_err(Refused::failed)?;
    Ok(json(&interfaces))
}

async fn open_trial(rights: Rights, State(shared): Server, Path(id): Path<String>, body: Body) -> Answer {
    let session = its_turn(&shared, &id)?;
    let request: TrialRequest = read(body).await?;
    let plan = bounded(request.plan, rights.standing, shared.config.open_most_bps).map_err(Refused::bad)?;
    let key = trust::trial_key().map_err(Refused::failed)?;
    let trial = trial::open(&shared, &session, plan.clone(), key).map_err(Refused::bad)?;
    Ok(json(&TrialReady { trial, key: key_to_hex(&key), data_port: shared.port, plan }))
}

async fn begin_trial(_: Rights, State(shared): Server, Path(id): Path<String>) -> Answer {
    let running = session::lock(&find(&shared, &id)?.trial).0.clone();
    if let Some(running) = running {
        running.begin().await;
    }
    Ok(json(&serde_json::json!({})))
}

async fn end_trial(_: Rights, State(shared): Server, Path(id): Path<String>) -> Answer {
    if let (Some(running), _) = &*session::lock(&find(&shared, &id)?.trial) {
        running.release();
    }
    Ok(json(&serde_json::json!({})))
}

async fn stop_trial(_: Rights, State(shared): Server, Path(id): Path<String>) -> Answer {
    let session = find(&shared, &id)?;
    if let (Some(running), _) = &*session::lock(&session.trial) {
        running.stop.stop();
    }
    Ok(json(&serde_json::json!({})))
}

async fn list_changes(_: Rights, State(shared): Server, Path(id): Path<String>) -> Answer {
    Ok(json(&find(&shared, &id)?.changes()))
}

async fn apply_change(rights: Rights, State(shared): Server, Path(id): Path<String>, body: Body) -> Answer {
    let session = its_turn(&shared, &id)?;
    may_tune(&rights)?;
    let request: ChangeRequest = read(body).await?;
    let tuning = shared.clone();
    let change = blocking(move || session.apply(&tuning, &request.setting)).await?.map_err(not_set)?;
    Ok(json(&change))
}

async fn undo_change(rights: Rights, State(shared): Server, Path((id, change)): Path<(String, String)>) -> Answer {
    let session = find(&shared, &id)?;
    may_tune(&rights)?;
    let undone = blocking(move || session.undo(&shared, &change)).await?;
    let change = undone.ok_or_else(|| Refused::not_found("change of this session"))?.map_err(Refused::failed)?;
    Ok(json(&change))
}

async fn keep_change(rights: Rights, State(shared): Server, Path((id, change)): Path<(String, String)>) -> Answer {
    let session = find(&shared, &id)?;
    may_tune(&rights)?;
    let kept = blocking(move || session.keep(&shared, &change)).await?;
    let change = kept.ok_or_else(|| Refused::not_found("change of this session"))?.map_err(Refused::failed)?;
    Ok(json(&change))
}

pub(super) fn find(shared: &Shared, id: &str) -> Result<Arc<Session>, Refused> {
    shared.session(id).ok_or_else(|| Refused::not_found("session"))
}

/// The session, where it may do what would disturb others.
pub(super) fn its_turn(shared: &Shared, id: &str) -> Result<Arc<Session>, Refused> {
    let session = find(shared, id)?;
    if session.wanted != SessionUse::Load {
        return Err(Refused::new(Reason::NotAllowed, "this session only looks; open one with use=load"));
    }
    admitted(&session)?;
    Ok(session)
}

pub(super) fn admitted(session: &Session) -> Result<(), Refused> {
    if session.is_admitted() {
        return Ok(());
    }
    Err(Refused::new(Reason::Busy, "it is not this session's turn yet; wait for the event `admitted`"))
}

fn may_tune(rights: &Rights) -> Result<(), Refused> {
    if rights.permissions.tune {
        return Ok(());
    }
    Err(Refused::new(
        Reason::NotAllowed,
        "this server does not let clients change its host; start it with `narrows serve --allow-tune`",
    ))
}

/// Why a setting was not made: it makes no sense, or it was tried.
fn not_set(error: TuneError) -> Refused {
    match error {
        TuneError::NotInTable { .. } | TuneError::NotForClients { .. } | TuneError::BadValue { .. } => {
            Refused::bad(error)
        }
        _ => Refused::failed(error),
    }
}

/// Runs what blocks on a thread of its own. It goes on where the request is given up.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refused> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Refused::failed(format!("it broke: {error}")))
}

/// Reads the body of a request as JSON, within limits of size and time.
pub(super) async fn read<T: DeserializeOwned>(body: Body) -> Result<T, Refused> {
    let collected = timeout(BODY, Limited::new(body, MAX_REQUEST_BYTES).collect()).await;
    let bytes = match collected {
        Err(_) => return Err(Refused::bad(format!("the body did not come within {} s", BODY.as_secs()))),
        Ok(Err(_)) => {
            return Err(Refused::bad(format!("the body is broken or longer than {MAX_REQUEST_BYTES} bytes")));
        }
        Ok(Ok(collected)) => collected.to_bytes(),
    };
    let bytes: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
    serde_json::from_slice(bytes).map_err(|error| Refused::bad(format!("the body is not what it should be: {error}")))
}
