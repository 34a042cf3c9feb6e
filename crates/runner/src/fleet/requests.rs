//! The controller's requests: messages of agents, each with the token of its host, and commands of users, with the controller's own.

use super::command::{Command, Event, now_ms};
use super::keys::{Hosts, Keys};
use super::transport::{HOLDS, JOIN_PATH, PATH, connected};
use crate::remote::TargetSpec;
use crate::server::audit::{self, Audit, By};
use crate::server::refusal::{Refused, json};
use crate::server::request::{Answer, blocking, read};
use crate::server::rights::Caller;
use crate::trust::same_secret;
use crate::{VERSION, lock};
use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Path, Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::IntoResponse as _;
use axum::routing::{any, get, post};
use narrows_fleet::join::Members;
use narrows_fleet::protocol::{Poll, Reply};
use narrows_model::run::fleet::{FleetPaths, FleetSeries, FleetStatus};
use narrows_render::{fleet_metrics, metrics};
use narrows_views::fleet_series::judged;
use narrows_wire::PROTOCOL;
use narrows_wire::api::{Hello, Permissions, Reason};
use narrows_wire::token::Secret;
use narrows_wire::version::{PROTOCOL_HEADER, check_header};
use std::net::IpAddr;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot, watch};

/// A message of an agent: its outcomes have a few hundred bytes each.
const UP_MAX_BYTES: usize = 4 << 20;
/// Who joins is in the fleet by then.
const JOINS: Duration = Duration::from_secs(3);
/// Users are answered in this time.
const ANSWERS: Duration = Duration::from_secs(20);
const COMMAND_PATH: &str = "/v1/fleet/command";
const METRICS_PATH: &str = "/metrics";

/// What all requests share.
pub(super) struct Door {
    users: Secret,
    scraper: Secret,
    hosts: Arc<RwLock<Hosts>>,
    members: Arc<Mutex<Members>>,
    /// Whether this controller leads: another one knows nothing of who joins here.
    leads: watch::Receiver<bool>,
    pub(super) ask: Mutex<Sender<Event>>,
    looks: Arc<Semaphore>,
    pub(super) audit: Audit,
}

impl Door {
    pub(super) fn new(
        keys: &Keys,
        (hosts, members, leads): (Arc<RwLock<Hosts>>, Arc<Mutex<Members>>, watch::Receiver<bool>),
        ask: Sender<Event>,
        audit: Audit,
    ) -> Self {
        let (users, scraper) = (keys.identity.token.secret.clone(), keys.of_scraper());
        Self { users, scraper, hosts, members, leads, ask: Mutex::new(ask), looks: Arc::new(Semaphore::new(1)), audit }
    }

    /// Has a command executed that somebody asks for, and notes who changed what.
    pub(super) async fn asked(
        self: &Arc<Self>,
        who: &str,
        from: Option<IpAddr>,
        command: Command,
    ) -> Result<serde_json::Value, Refused> {
        let (door, who) = (self.clone(), who.to_owned());
        // By itself: who asks may go before it is done, and it is noted all the same.
        let done = tokio::spawn(async move {
            let changes = command.changes();
            let done = door.executed(command).await;
            if let Some(what) = changes {
                let failure = done.as_ref().err().map(|refused| audit::text(refused.sentence()));
                let event = audit::Event::Asked { what: audit::text(&what), failure };
                door.audit.note(&By { who: Some(&who), from, session: None }, &event);
            }
            done
        });
        done.await.map_err(Refused::failed)?
    }

    /// How the fleet is, and if asked for which paths are tested. One at a time: of a million paths it takes hundreds of megabytes.
    pub(super) async fn looked(&self, with_paths: bool) -> Result<(FleetStatus, FleetPaths), Refused> {
        let turn = tokio::time::timeout(ANSWERS, self.looks.clone().acquire_owned()).await;
        let turn = turn.map_err(|_| Refused::failed("others ask as well: try again"))?.map_err(Refused::failed)?;
        let (answer, answered) = oneshot::channel();
        lock(&self.ask).send(Event::Look(with_paths, answer)).map_err(Refused::failed)?;
        let answered = tokio::time::timeout(ANSWERS, answered).await;
        let later = answered.map_err(|_| Refused::failed("the controller is overloaded"))?;
        let look = later.map_err(Refused::failed)?.map_err(Refused::bad)?;
        blocking(move || {
            // Held as long as it takes, also if nobody waits for it any more.
            let _turn = turn;
            look()
        })
        .await
    }

    pub(super) async fn executed(&self, command: Command) -> Result<serde_json::Value, Refused> {
        if matches!(command, Command::Status) {
            let (status, _) = self.looked(false).await?;
            return blocking(move || serde_json::to_value(status)).await?.map_err(Refused::failed);
        }
        let (answer, answered) = oneshot::channel();
        lock(&self.ask).send(Event::Command(command, answer)).map_err(Refused::failed)?;
        let answered = tokio::time::timeout(ANSWERS, answered).await;
        let answered = answered.map_err(|_| Refused::failed("the controller is overloaded"))?;
        answered.map_err(Refused::failed)?.map_err(Refused::bad)
    }
}

/// Who asks.
#[derive(Clone)]
enum Who {
    User,
    Scraper,
    Host(String),
    /// An agent that joins this group.
    Member(String),
}

async fn unknown() -> Refused {
    Refused::new(Reason::NotFound, "unknown request")
}

pub(super) fn router(door: Arc<Door>) -> Router {
    Router::new()
        .route("/v1/hello", get(hello))
        .route(PATH, post(poll))
        .route(&format!("{JOIN_PATH}/{{name}}/{{address}}"), post(join))
        .route(COMMAND_PATH, post(command))
        .route(METRICS_PATH, get(scrape))
        // Where there is a page, all other addresses are its own.
        .route("/v1/{*rest}", any(unknown))
        .route("/v1", any(unknown))
        .route("/v1/", any(unknown))
        .layer(from_fn_with_state(door.clone(), enter))
        .with_state(door)
}

/// Lets in who shows a secret of the fleet.
async fn enter(State(door): State<Arc<Door>>, mut request: Request, next: Next) -> axum::response::Response {
    match who(&door, request.uri().path(), request.headers()) {
        Ok(who) => {
            if let Some(pending) = request.extensions().get::<Caller>().and_then(|caller| caller.pending.clone()) {
                pending.admit();
            }
            request.extensions_mut().insert(who);
            next.run(request).await
        }
        Err(refused) => refused.into_response(),
    }
}

fn who(door: &Door, path: &str, headers: &HeaderMap) -> Result<Who, Refused> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    // Scrapers know nothing of our protocol.
    if path != METRICS_PATH {
        check_header(text(PROTOCOL_HEADER), VERSION)
            .map_err(|error| Refused::new(Reason::VersionMismatch, error.to_string()))?;
    }
    let shown = text(header::AUTHORIZATION.as_str()).and_then(Secret::from_bearer);
    let wrong = || {
        Refused::new(
            Reason::WrongToken,
            "the controller does not know this token: make it anew there with `narrows fleet token`; it follows from its key, the fleet's name and the host's",
        )
    };
    let shown = shown.ok_or_else(wrong)?;
    if same_secret(&shown, &door.users) {
        return Ok(Who::User);
    }
    if same_secret(&shown, &door.scraper) {
        return Ok(Who::Scraper);
    }
    let hosts = door.hosts.read().unwrap_or_else(PoisonError::into_inner);
    let member = || hosts.group(&shown).map(Who::Member);
    hosts.find(&shown).map(Who::Host).or_else(member).ok_or_else(wrong)
}

async fn hello(headers: HeaderMap) -> Answer {
    // An agent of an older protocol takes no other number than its own; `who` has checked it.
    let shown = headers.get(PROTOCOL_HEADER).and_then(|value| value.to_str().ok());
    Ok(json(&Hello {
        version: VERSION.to_owned(),
        protocol: check_header(shown, VERSION).unwrap_or(PROTOCOL),
        host: narrows_sys::process::host_name(),
        data_port: 0,
        data_address: None,
        permissions: Permissions { measure: false, inventory: false, tune: false, trial_most_ms: 0 },
        capabilities: vec!["fleet".to_owned()],
    }))
}

async fn poll(
    State(door): State<Arc<Door>>,
    Extension(who): Extension<Who>,
    Extension(caller): Extension<Caller>,
    body: Body,
) -> Answer {
    let host = match who {
        Who::Host(host) => host,
        Who::Member(group) => {
            let why =
                format!("this is the token of hosts that join the group {group}: say which one it is with --name");
            return Err(Refused::new(Reason::NotAllowed, why));
        }
        _ => return Err(Refused::new(Reason::NotAllowed, "this is the token of users")),
    };
    if !door.hosts.read().unwrap_or_else(PoisonError::into_inner).may_poll(&host, now_ms() / 1_000) {
        return Err(Refused::new(Reason::NotAllowed, TOO_MANY));
    }
    let from = caller.address.ok_or_else(|| Refused::bad("unknown address"))?;
    polled(&door, host, from, body).await
}

const TOO_MANY: &str = "too many polls in a second";

/// A message of an agent that joins the fleet, by the name that it has there, and by its address; `-`: where it comes from.
async fn join(
    State(door): State<Arc<Door>>,
    Extension(who): Extension<Who>,
    Extension(caller): Extension<Caller>,
    Path((name, says)): Path<(String, String)>,
    body: Body,
) -> Answer {
    let Who::Member(group) = who else {
        let why = "this token is of one host, which has its name in the file of the fleet: leave --name out";
        return Err(Refused::new(Reason::NotAllowed, why));
    };
    if !door.hosts.read().unwrap_or_else(PoisonError::into_inner).may_join(&group, now_ms() / 1_000) {
        return Err(Refused::new(Reason::NotAllowed, TOO_MANY));
    }
    let from = caller.address.ok_or_else(|| Refused::bad("unknown address"))?;
    if !*door.leads.borrow() {
        return Err(Refused::failed("this controller stands by"));
    }
    let (is_there, from) = {
        let mut members = lock(&door.members);
        let is_there = members.join(&group, &name, now_ms());
        let is_there = is_there.map_err(|why| Refused::new(Reason::NotAllowed, format!("cannot join: {why}")))?;
        (is_there, members.address(&group, says.parse().ok()).unwrap_or(from))
    };
    if !is_there {
        // Its next poll will be that of a host.
        tokio::time::sleep(JOINS).await;
        return Ok(json(&Reply::default()));
    }
    polled(&door, name, from, body).await
}

/// Has the poll of a host answered.
async fn polled(door: &Door, host: String, from: IpAddr, body: Body) -> Answer {
    let poll: Poll = read(body, UP_MAX_BYTES).await?;
    let (answer, answered) = oneshot::channel();
    lock(&door.ask).send(Event::Poll { host, from: Some(from), poll, answer }).map_err(Refused::failed)?;
    let reply = tokio::time::timeout(HOLDS + Duration::from_secs(5), answered).await;
    let reply = reply.map_err(|_| Refused::failed("the controller is overloaded"))?;
    Ok(json(&reply.map_err(|_| {
        Refused::failed("no reply: the message is invalid, a newer one replaced it, or this controller stands by")
    })?))
}

async fn command(
    State(door): State<Arc<Door>>,
    Extension(who): Extension<Who>,
    Extension(caller): Extension<Caller>,
    body: Body,
) -> Answer {
    if !matches!(who, Who::User) {
        return Err(Refused::new(Reason::NotAllowed, "this needs the token of the fleet's users"));
    }
    let command: Command = read(body, UP_MAX_BYTES).await?;
    let answer = door.asked("users", caller.address, command).await?;
    // Of a large fleet this takes a moment, for which others do not wait.
    blocking(move || json(&answer)).await
}

/// The fleet's figures, as a scraper reads them.
async fn scrape(State(door): State<Arc<Door>>, Extension(who): Extension<Who>) -> Answer {
    if matches!(who, Who::Host(_) | Who::Member(_)) {
        return Err(Refused::new(Reason::NotAllowed, "this is the token of an agent"));
    }
    let (status, _) = door.looked(false).await?;
    let text = blocking(move || fleet_metrics::metrics(&status)).await?;
    Ok(([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response())
}

/// Asks a controller for something; its answer in a sentence.
/// Errors: it cannot be reached, or refuses.
pub fn ask(controller: &TargetSpec, command: &Command) -> Result<String, String> {
    let answer: serde_json::Value = asked(controller, command)?;
    Ok(answer.as_str().unwrap_or_default().to_owned())
}

/// How a fleet is.
/// Errors: the controller cannot be reached, or refuses.
pub fn status(controller: &TargetSpec) -> Result<FleetStatus, String> {
    asked(controller, &Command::Status)
}

/// What was found from one host to another in the last so long.
/// Errors: the controller cannot be reached, refuses, or the fleet has no such host.
pub fn history(controller: &TargetSpec, from: &str, to: &str, last: Duration) -> Result<FleetSeries, String> {
    let last_ms = u64::try_from(last.as_millis()).unwrap_or(u64::MAX);
    asked(controller, &Command::Series { from: from.to_owned(), to: to.to_owned(), last_ms }).map(judged)
}

pub(super) fn asked<T: serde::de::DeserializeOwned>(controller: &TargetSpec, command: &Command) -> Result<T, String> {
    let remote = connected(controller, "--controller HOST:PORT").map_err(|error| error.to_string())?;
    remote.post(COMMAND_PATH, command, ANSWERS + ANSWERS / 2).map_err(|error| error.to_string())
}
