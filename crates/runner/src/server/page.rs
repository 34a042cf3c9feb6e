//! What the page shows of this host and its store.

use super::audit::{Action, Audit, By, Event, text};
use super::own_test;
use super::shared::Shared;
use crate::connections::{self, Watched};
use crate::helper::Reading;
use crate::server::refusal::Refused;
use crate::server::request::blocking;
use crate::stored::{Content, Filter, Store, maintenance};
use crate::trust::same_secret;
use crate::tune::{Tuner, Undone};
use crate::web::gate::{Find, Gate, Known, Visitor};
use crate::web::live::Live;
use crate::web::site::Site;
use crate::web::source::{Ask, Now, Soon, Source};
use crate::web::{PageSpec, router};
use crate::{Stop, lock};
use axum::Router;
use narrows_collect::Missing;
use narrows_model::Change;
use narrows_model::run::grid::{Grid, GridMetric};
use narrows_model::run::mesh::MeshRecord;
use narrows_render::{Document as _, Format, Style, web};
use narrows_sys::clock;
use narrows_sys::process::host_name;
use narrows_views::{grid, mesh};
use narrows_wire::api::Reason;
use narrows_wire::token::Secret;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// The newest runs, from which the first view is made.
const NEWEST: u64 = 1_000;
const MESH: &str = "mesh";

/// The page of a server; `own` is that server once it serves.
/// Errors: the header of the proxy has no valid name.
pub(super) fn page(spec: &PageSpec, shared: &Shared, own: Weak<Shared>, reading: Reading) -> Result<Router, String> {
    let (secret, controls) = (shared.secret.clone(), spec.controls);
    // Named tokens are for measuring: the store has the inventories of all hosts that keep runs there.
    let find: Find = Box::new(move |shown: &Secret| {
        let is_own = secret.as_ref().is_some_and(|secret| same_secret(shown, secret));
        is_own.then(|| Known { name: "default".to_owned(), may_change: controls })
    });
    let tuner = shared.config.allow_tune.then(|| Arc::new(Tuner::new(&shared.config.state, "serve")));
    let source = OfHost {
        store: spec.store.clone(),
        spec: spec.clone(),
        reading,
        turn: Semaphore::new(1),
        watched: Arc::default(),
        audit: shared.audit.clone(),
        control: controls.then(|| Control { live: Arc::default(), tuner, own }),
    };
    Ok(router(Arc::new(Site::new(Gate::new("server", find, spec.proxy.clone())?, Box::new(source), spec))))
}

struct OfHost {
    store: PathBuf,
    spec: PageSpec,
    reading: Reading,
    /// One reader at a time has this host read.
    turn: Semaphore,
    /// Its connections, when they were read, and their page.
    watched: Arc<Mutex<Option<(Watched, Instant, String)>>>,
    audit: Arc<Audit>,
    /// What readers may start and undo, where they may.
    control: Option<Control>,
}

struct Control {
    live: Arc<Live>,
    /// Where the server may change settings.
    tuner: Option<Arc<Tuner>>,
    own: Weak<Shared>,
}

/// Rates are since the reading before, where that is not longer ago; else of a second. Of a shorter time the kernel tells little.
const READ_BEFORE: Duration = Duration::from_secs(10);
const READ_AGAIN: Duration = Duration::from_secs(1);

/// What limits the connections of this host, as a page.
fn connections(held: &mut Option<(Watched, Instant, String)>) -> Result<String, Missing> {
    if let Some((_, _, page)) = held.as_ref().filter(|(_, at, _)| at.elapsed() < READ_AGAIN) {
        return Ok(page.clone());
    }
    let mut watched = match held.take().filter(|(_, at, _)| at.elapsed() < READ_BEFORE) {
        Some((watched, ..)) => watched,
        None => {
            let mut watched = Watched::new(connections::Filter::default())?;
            watched.read()?;
            clock::sleep(READ_AGAIN);
            watched
        }
    };
    watched.read()?;
    let view = watched.view(false);
    let page = narrows_render::connections::page(&host_name(), Ok(&view));
    *held = Some((watched, clock::now(), page.clone()));
    Ok(page)
}

/// Undoes a change of this host's settings.
/// Errors: there is no such change, or the old value is not back.
fn undo(tuner: &Tuner, change: &str, audit: &Audit, who: &str, from: Option<IpAddr>) -> Result<String, Refused> {
    let made = tuner.list().map_err(Refused::failed)?.into_iter().find(|it| it.change.id == change);
    let made = made.ok_or_else(|| Refused::not_found("change"))?.change;
    let undone = match tuner.undo(change) {
        Ok(done @ (Undone::SetBack | Undone::AlreadyBack)) => Ok(done.to_string()),
        Ok(other) => Err(other.to_string()),
        Err(error) => Err(error.to_string()),
    };
    let failure = undone.as_ref().err().cloned();
    audit.note(&By { who: Some(who), from, session: None }, &Event::changed(Action::Undo, &made, failure));
    undone.map_err(|why| Refused::failed(format!("{}: {why}", made.set)))
}

impl OfHost {
    /// The newest mesh of the store as grids; else the newest runs between each two hosts.
    fn read(store: &Store, spec: &PageSpec) -> Result<Now, narrows_store::Error> {
        let runs = store.list(&Filter::default(), 0, NEWEST)?;
        let newest = runs.iter().find(|run| run.command == MESH);
        // One that this program cannot read is as none.
        let record = newest.and_then(|run| maintenance::show(store, &run.id, spec.kinds).ok().flatten());
        let record = record.and_then(|(_, content)| Content::take::<MeshRecord>(content));
        let grids: Vec<Grid> = match record.map(|it| mesh::report(&it)) {
            Some(report) => GridMetric::ALL.map(|metric| grid::of_mesh(&report, metric, None)).into(),
            None => vec![grid::of_runs(&runs)],
        };
        let now_ms = clock::unix_us() / 1_000;
        Ok(Now { front: web::of_runs(&host_name(), &runs, now_ms), grids, status: None })
    }
}

impl Source for OfHost {
    fn name(&self) -> String {
        host_name()
    }

    fn tokens(&self) -> &'static str {
        "The token of this server: narrows serve names its file at its start."
    }

    fn now(&self) -> Soon<'_, Now> {
        let (place, spec) = (self.store.clone(), self.spec.clone());
        Box::pin(async {
            let read = move || Store::open(&place).and_then(|store| Self::read(&store, &spec));
            blocking(read).await?.map_err(Refused::failed)
        })
    }

    fn note_entry(&self, from: Option<IpAddr>, entry: Result<&str, (Reason, &str)>) {
        self.audit.note_entry(from, entry);
    }

    fn tests(&self) -> Option<&Arc<Live>> {
        self.control.as_ref().map(|it| &it.live)
    }

    fn ends(&self) -> Soon<'_, Vec<String>> {
        Box::pin(blocking(own_test::ends))
    }

    fn changes(&self, host: String) -> Soon<'_, Vec<(String, String)>> {
        let tuner = self.control.as_ref().and_then(|it| it.tuner.clone()).filter(|_| host == host_name());
        let listed = move || {
            let made = tuner.and_then(|tuner| tuner.list().ok()).unwrap_or_default();
            let says = |it: &Change| format!("{} (before: {})", it.set, it.before);
            made.into_iter().map(|it| (it.change.id.clone(), says(&it.change))).collect()
        };
        Box::pin(blocking(listed))
    }

    fn act(&self, by: Visitor, ask: Ask) -> Soon<'_, String> {
        Box::pin(async move {
            let not_allowed = |why: &str| Refused::new(Reason::NotAllowed, why);
            let control = self.control.as_ref();
            let control = control.ok_or_else(|| not_allowed("this needs `narrows serve --web --web-control`"))?;
            let (who, from) = (by.known.name, by.from);
            let (what, done) = match ask {
                Ask::Test { to, down, .. } => {
                    let own = control.own.upgrade().ok_or_else(|| Refused::failed("the server ends"))?;
                    let says = format!("diagnosis of the path {} {to}", if down { "from" } else { "to" });
                    let make = move |live: &Live, stop: &Stop| {
                        own_test::diagnose(&own, &to, down, live, stop).unwrap_or_else(|why| (why, None))
                    };
                    (says.clone(), control.live.begin(says, who.clone(), make))
                }
                Ask::Stop { began_unix_ms } => {
                    let stopped = control.live.stop(began_unix_ms);
                    let over = || Refused::not_found("test");
                    ("stop of the test".to_owned(), if stopped { Ok(()) } else { Err(over()) })
                }
                Ask::Undo { change } => {
                    let tuner = control.tuner.clone();
                    let tuner = tuner.ok_or_else(|| not_allowed("this needs `narrows serve --allow-tune`"))?;
                    let audit = self.audit.clone();
                    // It is noted also where nobody waits for the answer any more.
                    return blocking(move || undo(&tuner, &change, &audit, &who, from)).await?;
                }
                Ask::Acknowledge { .. } | Ask::Mute { .. } | Ask::Pause { .. } => {
                    return Err(not_allowed("that is of a fleet"));
                }
            };
            let failure = done.as_ref().err().map(|it| it.sentence().to_owned());
            let by = By { who: Some(&who), from, session: None };
            self.audit.note(&by, &Event::Asked { what: text(&what), failure });
            done.map(|()| what)
        })
    }

    fn settings(&self, host: String) -> Soon<'_, Option<String>> {
        let reading = self.reading.clone();
        Box::pin(async move {
            if host != host_name() {
                return Ok(None);
            }
            let read = move || reading.inventory(None).map(|it| narrows_diagnose::audit::audit(Some(&it), None));
            let _turn = self.turn.acquire().await.map_err(Refused::failed)?;
            let audit = blocking(read).await?.map_err(Refused::failed)?;
            audit.write(Format::Html, Style::default()).map_err(Refused::failed)
        })
    }

    fn connections(&self, host: String) -> Soon<'_, Option<String>> {
        let watched = self.watched.clone();
        Box::pin(async move {
            if host != host_name() {
                return Ok(None);
            }
            let _turn = self.turn.acquire().await.map_err(Refused::failed)?;
            let read = move || {
                let unknown = |why: Missing| narrows_render::connections::page(&host, Err(&why.to_string()));
                connections(&mut lock(&watched)).unwrap_or_else(unknown)
            };
            blocking(read).await.map(Some)
        })
    }
}
