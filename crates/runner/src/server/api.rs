//! The requests of the control API, one function each. `docs/api.md` describes them; `narrows_wire::api` has their types.

use super::audit::{self, Action, By};
use super::events::{self, EventBody};
use super::frames;
use super::holder::Holder;
use super::life;
use super::limits::{CONNECTIONS_EVERY, Standing, TRACE, bounded, bounded_trace};
use super::refusal::{Refused, json};
use super::request::{Answer, Asked, blocking, done};
use super::rights::{Caller, Rights, holder, own_address_of_ssh};
use super::running::Phase;
use super::session::Session;
use super::shared::Shared;
use super::trial;
use super::unauthenticated::Pending;
use crate::helper::Tuning;
use crate::tokens::Allowed;
use crate::trace::{UDP_PORT, echo_refused, trace};
use crate::tune::TuneError;
use crate::{VERSION, lock, trust};
use axum::Router;
use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, Response, Uri, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::IntoResponse as _;
use axum::routing::{any, delete, get, post};
use hyper::body::Body as HttpBody;
use narrows_model::{Change, ConnectionSample, TraceProtocol};
use narrows_sys::{clock, cpu};
use narrows_traffic::Stop;
use narrows_wire::api::{
    BeginRequest, ChangeRequest, ConnectionsRequest, Hello, InventoryRequest, MAX_ANSWER_BYTES, MAX_CONNECTIONS,
    PassAnswer, Reason, SessionUse, TraceRequest, TrialReady, TrialRequest, key_to_hex,
};
use narrows_wire::pack::{ENCODING, Packer, is_taken};
use narrows_wire::token::Secret;
use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tokio::sync::oneshot;

type Server = State<Arc<Shared>>;

/// A path of programs that is no request.
const UNKNOWN: &str = "/v1/{*rest}";

/// All requests. One line each.
pub(super) fn router(shared: Arc<Shared>) -> Router {
    let page = shared.page.clone();
    let requests = Router::new()
        .route("/v1/hello", get(hello))
        .route("/v1/sessions", post(open_session))
        .route("/v1/sessions/{id}/inventory", post(inventory))
        .route("/v1/sessions/{id}/interfaces", get(interfaces))
        .route("/v1/sessions/{id}/trace", post(trace_back))
        .route("/v1/sessions/{id}/connections", post(connections))
        .route("/v1/sessions/{id}/pass", post(give_pass))
        .route("/v1/sessions/{id}/pass/seal", post(seal_pass))
        .route("/v1/sessions/{id}/trials", post(open_trial))
        .route("/v1/sessions/{id}/trials/begin", post(begin_trial))
        .route("/v1/sessions/{id}/trials/end", post(end_trial))
        .route("/v1/sessions/{id}/trials/stop", post(stop_trial))
        .route("/v1/sessions/{id}/changes", get(list_changes).post(apply_change))
        .route("/v1/sessions/{id}/changes/{change}", delete(async |asked| with_change(asked, Session::undo).await))
        .route("/v1/sessions/{id}/changes/{change}/keep", post(async |asked| with_change(asked, Session::keep).await))
        .route("/v1/sessions/{id}/links", post(frames::links))
        .route("/v1/sessions/{id}/frames/look", post(frames::look))
        .route("/v1/sessions/{id}/frames/qualify", post(frames::qualify))
        .route("/v1/sessions/{id}/frames", post(frames::begin))
        .route("/v1/sessions/{id}/frames/{job}/wait", post(frames::wait))
        .route("/v1/sessions/{id}/frames/{job}/stop", post(frames::stop))
        .route("/v1/sessions/{id}/frames/{job}", delete(frames::end))
        // Where there is a page, all other addresses are its own.
        .route(UNKNOWN, any(nothing_here))
        .route("/v1", any(nothing_here))
        .route("/v1/", any(nothing_here))
        .fallback(nothing_here)
        .method_not_allowed_fallback(nothing_here)
        .layer(from_fn(packed))
        .layer(from_fn_with_state(shared.clone(), refusals))
        .with_state(shared);
    page.into_iter().fold(requests, Router::merge)
}

/// Whether a client takes packed answers.
fn takes_packed(headers: &HeaderMap) -> bool {
    headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).is_some_and(is_taken)
}

/// Writes each refusal to the audit log: the route, never the path, which names a session.
async fn refusals(State(shared): Server, request: Request, next: Next) -> Response<Body> {
    let caller = request.extensions().get::<Caller>().cloned();
    let authorization = request.headers().get(header::AUTHORIZATION).cloned().filter(|_| shared.audit.is_open());
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let answer = next.run(request).await;
    if let (Some(refused), Some(caller)) = (answer.extensions().get::<Refused>(), caller) {
        shared.tally.refused.fetch_add(1, Relaxed);
        let authorization = authorization.as_ref().and_then(|value| value.to_str().ok());
        let who = holder(&shared, &caller, authorization);
        let who = who.as_ref().map_or(audit::STRANGER, |holder| holder.name());
        let route = route.as_ref().map(MatchedPath::as_str).filter(|it| *it != UNKNOWN).unwrap_or("an unknown path");
        let event = audit::Event::Refused {
            request: audit::text(&format!("{method} {route}")),
            reason: refused.reason,
            message: audit::text(&refused.message),
        };
        shared.audit.note(&By { who: Some(who), from: caller.address, session: None }, &event);
    }
    answer
}

/// Packs an answer that is long enough for it to matter.
async fn packed(request: Request, next: Next) -> Response<Body> {
    let takes = takes_packed(request.headers());
    let answer = next.run(request).await;
    let is_json = answer.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    let long = HttpBody::size_hint(answer.body()).lower() >= LONG_BYTES;
    if !(takes && is_json && long) {
        return answer;
    }
    let (mut parts, body) = answer.into_parts();
    let Ok(bytes) = axum::body::to_bytes(body, MAX_ANSWER_BYTES).await else {
        return Refused::failed("cannot compress an answer").into_response();
    };
    parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(ENCODING));
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(Packer::default().finish(&bytes)))
}

/// Shorter answers fit into a packet as they are.
const LONG_BYTES: u64 = 1_200;

async fn nothing_here(_: Rights, uri: Uri) -> Refused {
    let path = uri.path().chars().take(100).collect::<String>();
    Refused::new(Reason::NotFound, format!("unknown request {path}; see docs/api.md"))
}

async fn hello(rights: Rights, State(shared): Server) -> Answer {
    let mut capabilities: Vec<String> = narrows_model::LoadPlan::KINDS.iter().map(|kind| kind.to_lowercase()).collect();
    capabilities.push("links".to_owned());
    if rights.permissions.tune {
        capabilities.push("tune".to_owned());
    }
    if !shared.config.frames.is_empty() && rights.holder.check(Allowed::Frames).is_ok() {
        capabilities.push("frames".to_owned());
    }
    let data_address = if shared.config.stdio { own_address_of_ssh() } else { None };
    Ok(json(&Hello {
        version: VERSION.to_owned(),
        // An older client takes no other number than its own.
        protocol: rights.protocol,
        host: if rights.permissions.inventory { narrows_sys::process::host_name() } else { "server".to_owned() },
        data_port: shared.port,
        data_address: data_address.map(|address| address.to_string()),
        permissions: rights.permissions,
        capabilities,
    }))
}

/// The body is the client's heartbeat, so it is not read here.
async fn open_session(rights: Rights, State(shared): Server, uri: Uri, headers: HeaderMap, beats: Body) -> Answer {
    let wanted = match uri.query() {
        None | Some("" | "use=load") => SessionUse::Load,
        Some("use=look") => SessionUse::Look,
        Some(_) => return Err(Refused::bad("the query must be use=load or use=look")),
    };
    let (sender, lines) = events::channel();
    let session = shared.open(rights.address, rights.holder, wanted, sender)?;
    // A token holder's connection stays; a guest's only as long as the session.
    let kept = rights.pending.as_ref().map(Pending::keep);
    let packed = takes_packed(&headers);
    shared.audit.note(&session.by(), &audit::Event::Session { r#use: wanted });
    let body = EventBody::new(lines, session.end.clone(), packed);
    tokio::spawn(async move {
        life::live(shared, session, beats).await;
        drop(kept);
    });
    let mut response = Response::new(Body::new(body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    if packed {
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static(ENCODING));
    }
    Ok(response)
}

async fn inventory(asked: Asked, body: Body) -> Answer {
    let place = asked.session.place()?;
    let request: InventoryRequest = asked.read(body).await?;
    let peer = client_of(&asked, request.peer.as_deref())?;
    let turn = asked.turn(place, &asked.shared.inventories).await?;
    let reading = asked.shared.reading.clone();
    let snapshot = blocking(move || (reading.inventory(peer), turn).0).await?.map_err(Refused::failed)?;
    Ok(json(&asked.rights.standing.visible(snapshot)))
}

/// The client's address: as this server sees it, else as the client does.
fn client_of(asked: &Asked, peer: Option<&str>) -> Result<Option<IpAddr>, Refused> {
    let peer = peer.map(str::parse::<IpAddr>).transpose();
    let peer = peer.map_err(|_| Refused::bad("`peer` must be an IP address"))?;
    Ok(asked.session.address.or(peer).map(|address| address.to_canonical()))
}

async fn trace_back(asked: Asked, body: Body) -> Answer {
    asked.may_see("the path from it")?;
    asked.rights.holder.check(Allowed::Measure)?;
    let place = asked.session.place()?;
    let TraceRequest { peer, plan } = asked.read(body).await?;
    let client =
        client_of(&asked, peer.as_deref())?.ok_or_else(|| Refused::bad("the address of the client is unknown"))?;
    let mut plan = bounded_trace(&plan, client);
    if plan.protocol == TraceProtocol::Icmp && echo_refused(client).is_some() {
        (plan.protocol, plan.port) = (TraceProtocol::Udp, UDP_PORT);
    }
    let turn = asked.shared.traces.clone().acquire_owned().await.map_err(Refused::failed)?;
    let (session, stop) = (asked.session, Stop::new());
    let record = blocking(move || {
        let _turn = (turn, place);
        let began = clock::now();
        let mut poll = || {
            if began.elapsed() >= TRACE || session.end.is_raised() {
                stop.stop();
            }
        };
        trace(plan, &stop, &mut poll, &mut |_| true)
    });
    Ok(json(&record.await?.map_err(Refused::failed)?))
}

async fn interfaces(asked: Asked) -> Answer {
    asked.may_see("its interfaces")?;
    let turn = asked.turn(asked.session.place()?, &asked.shared.inventories).await?;
    let reading = asked.shared.reading.clone();
    let interfaces = blocking(move || (reading.interfaces(), turn).0).await?.map_err(Refused::failed)?;
    Ok(json(&interfaces))
}

/// Only those with the client's own address; of others a token tells nothing.
async fn connections(asked: Asked, body: Body) -> Answer {
    asked.may_see("its connections")?;
    let _place = asked.session.place()?;
    let ConnectionsRequest { peer, connections } = asked.read(body).await?;
    if connections.len() > MAX_CONNECTIONS {
        return Err(Refused::bad(format!("at most {MAX_CONNECTIONS} connections can be asked for at once")));
    }
    let client =
        client_of(&asked, peer.as_deref())?.ok_or_else(|| Refused::bad("the address of the client is unknown"))?;
    let shared = asked.shared.clone();
    let turn = asked.shared.connections.acquire().await.map_err(Refused::failed)?;
    turn.forget();
    // A task of its own: a request that is given up does not shorten the rest until the next one.
    let (done, read) = oneshot::channel();
    tokio::spawn(async move {
        let _ = done.send(blocking(move || narrows_collect::Connections::open()?.read(Some(client))).await);
        tokio::time::sleep(CONNECTIONS_EVERY).await;
        shared.connections.add_permits(1);
    });
    let read = read.await.map_err(Refused::failed)??.map_err(Refused::failed)?;
    let wanted: HashSet<_> = connections.into_iter().collect();
    let of_client = |one: &ConnectionSample| one.remote.ip() == client && wanted.contains(&(one.remote, one.local));
    Ok(json(&read.changed.into_iter().filter(of_client).collect::<Vec<_>>()))
}

/// Lets other hosts measure here while this session lasts.
async fn give_pass(asked: Asked) -> Answer {
    // A member of a mesh lets in whom it saw at its start; a pass would let in others.
    let of_one_run = asked.shared.config.of_one_run.is_some();
    if asked.rights.standing != Standing::Trusted || matches!(asked.rights.holder, Holder::Pass(_)) || of_one_run {
        return Err(Refused::new(Reason::NotAllowed, "a pass for other hosts needs the token of this server"));
    }
    asked.rights.holder.check(Allowed::Measure)?;
    let secret = Secret::new(narrows_sys::random::bytes().map_err(Refused::failed)?);
    let answer = PassAnswer { secret: secret.reveal() };
    asked.shared.passes.issue(asked.session.number, secret, &asked.rights.holder, asked.shared.config.open_most_bps);
    asked.shared.audit.note(&asked.session.by(), &audit::Event::Pass);
    Ok(json(&answer))
}

/// From now on the pass admits only addresses from which it was shown.
async fn seal_pass(asked: Asked) -> Answer {
    let pass =
        asked.shared.passes.of(asked.session.number).ok_or_else(|| Refused::not_found("pass of this session"))?;
    pass.admission.seal();
    done()
}

async fn open_trial(asked: Asked, body: Body) -> Answer {
    asked.may_load()?;
    asked.rights.holder.check(Allowed::Measure)?;
    let _place = asked.session.place()?;
    let request: TrialRequest = asked.read(body).await?;
    let Asked { rights, shared, session, .. } = asked;
    let max_bps = rights.holder.max_bps(shared.config.open_most_bps);
    let plan = bounded(request.plan, rights.standing, max_bps).map_err(Refused::bad)?;
    let key = trust::trial_key().map_err(Refused::failed)?;
    let machine = &cpu::machine().word;
    let wanted = trial::Asked { light: request.light, beside: !machine.is_empty() && request.machine == *machine };
    let trial = trial::open(&shared, &session, plan.clone(), key, wanted).map_err(Refused::bad)?;
    let (key, machine) = (key_to_hex(&key), machine.clone());
    Ok(json(&TrialReady { trial, key, data_port: shared.port, plan, machine }))
}

async fn begin_trial(asked: Asked, body: Body) -> Answer {
    let _place = asked.session.place()?;
    let BeginRequest { cookies } = asked.read(body).await?;
    let running = lock(&asked.session.trial).0.clone();
    if let Some(running) = running {
        running.begin(cookies).await;
    }
    done()
}

async fn end_trial(asked: Asked) -> Answer {
    if let (Some(running), _) = &*lock(&asked.session.trial) {
        running.raise(Phase::Released);
    }
    done()
}

async fn stop_trial(asked: Asked) -> Answer {
    if let (Some(running), _) = &*lock(&asked.session.trial) {
        running.stop.stop();
    }
    done()
}

async fn list_changes(asked: Asked) -> Answer {
    Ok(json(&asked.session.changes()))
}

async fn apply_change(asked: Asked, body: Body) -> Answer {
    asked.may_load()?;
    asked.may_tune()?;
    let request: ChangeRequest = asked.read(body).await?;
    // Noted by the thread that made it: the request may be given up.
    let change = blocking(move || {
        let change = asked.session.apply(&asked.shared.tuner, &request.setting)?;
        asked.shared.audit.note(&asked.session.by(), &audit::Event::changed(Action::Set, &change, None));
        Ok(change)
    });
    Ok(json(&change.await?.map_err(not_set)?))
}

/// Undoes or keeps a change.
async fn with_change(asked: Asked, act: fn(&Session, &Tuning, &str) -> Option<Result<Change, TuneError>>) -> Answer {
    asked.may_tune()?;
    let done = blocking(move || {
        let done = act(&asked.session, &asked.shared.tuner, &asked.item);
        if let Some(Ok(change)) = &done {
            let action = if change.in_force { Action::Keep } else { Action::Undo };
            asked.shared.audit.note(&asked.session.by(), &audit::Event::changed(action, change, None));
        }
        done
    });
    let change = done.await?.ok_or_else(|| Refused::not_found("change of this session"))?.map_err(Refused::failed)?;
    Ok(json(&change))
}

/// Why a setting was not made: the request is invalid, or it was tried and failed.
fn not_set(error: TuneError) -> Refused {
    match error {
        TuneError::NotInTable { .. }
        | TuneError::NotForClients(_)
        | TuneError::BadValue { .. }
        | TuneError::Refused(_) => Refused::bad(error),
        _ => Refused::failed(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::helper::Deputies;
    use crate::instruments::LiveInstruments;
    use crate::server::audit::Audit;
    use crate::server::config::ServeConfig;
    use crate::tokens::{FRESH, Tokens};
    use crate::tune::Tuner;
    use hyper::service::Service as _;
    use hyper_util::service::TowerToHyperService;
    use narrows_wire::token::Secret;
    use narrows_wire::version::{PROTOCOL, PROTOCOL_HEADER, protocol_header};
    use std::sync::mpsc::channel;
    use std::time::Duration;

    #[test]
    fn a_helper_that_never_answers_keeps_nobody_waiting() {
        let state = tempfile::tempdir().expect("a directory");
        let (hold, held) = channel::<()>();
        let held = std::sync::Mutex::new(held);
        // A reading that takes as long as the test.
        let source = move || lock(&held).recv().map(|()| Vec::new()).map_err(|error| error.to_string());
        let tokens = Tokens::new(state.path(), Box::new(source), FRESH);
        let secret = Secret::new([7; 24]);
        let config = ServeConfig::new(state.path().to_owned(), LiveInstruments::Nothing);
        let deputies = Deputies::here(Tuner::new(state.path(), "serve"));
        let (stop, _) = tokio::sync::watch::channel(false);
        let (parts, secret_of) = ((tokens, Audit::of(None)), Some(secret.clone()));
        let shared = Arc::new(Shared::new(config, 1, secret_of, parts, deputies, stop));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let service = TowerToHyperService::new(router(shared.clone()));
            let address = [192, 0, 2, 1].into();
            let hello = |secret: &Secret| {
                let request = Request::builder()
                    .uri("/v1/hello")
                    .header(PROTOCOL_HEADER, protocol_header(PROTOCOL, VERSION))
                    .header(header::AUTHORIZATION, format!("Bearer {}", secret.reveal()))
                    .extension(Caller { address: Some(address), pending: Some(shared.unauthenticated.enter(address)) });
                service.call(request.body(Body::empty()).expect("a request"))
            };
            // Of a token that may be new.
            let other = tokio::spawn(hello(&Secret::new([8; 24])));
            tokio::task::yield_now().await;
            let answer = tokio::time::timeout(Duration::from_millis(200), hello(&secret)).await;
            assert_eq!(answer.expect("in time").expect("infallible").status(), 200);
            assert!(!other.is_finished());
        });
        drop(hold);
    }
}
