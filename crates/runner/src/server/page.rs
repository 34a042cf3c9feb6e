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
use crate::tune::{Tuner, Undone, before};
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
use narrows_model::run::history::StoredRun;
use narrows_model::run::mesh::{MeshRecord, MeshReport};
use narrows_render::web::{self, Front};
use narrows_render::{Document as _, Format, Style};
use narrows_sys::clock;
use narrows_sys::process::host_name;
use narrows_views::{grid, mesh};
use narrows_wire::api::Reason;
use narrows_wire::token::Secret;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// The newest runs, from which the first view is made.
const NEWEST: u64 = 1_000;
const MESH: &str = "mesh";

/// What a server's page is of. A browser may know several servers by one name, as those behind forwarded ports: each has sessions of its own.
fn of_server(host: &str, state: &Path, port: u16) -> String {
    format!("server {host} {} {port}", state.display())
}

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
    let of = of_server(&host_name(), &shared.config.state, shared.port);
    Ok(router(Arc::new(Site::new(Gate::new(&of, find, spec.proxy.clone())?, Box::new(source), spec))))
}

struct OfHost {
    store: PathBuf,
    spec: PageSpec,
    reading: Reading,
    /// One reader at a time has this host read.
    turn: Semaphore,
    watched: Arc<Mutex<Option<Held>>>,
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

/// A page, and when its content was read.
type Read = (String, u64);

/// The connections of this host, when they were read, and their page.
type Held = (Watched, Instant, Read);

/// Rates are since the reading before, where that is not longer ago; else of a second. Of a shorter time the kernel tells little.
const READ_BEFORE: Duration = Duration::from_secs(10);
const READ_AGAIN: Duration = Duration::from_secs(1);

/// What limits the connections of this host, as a page.
fn connections(held: &mut Option<Held>) -> Result<Read, Missing> {
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
    let page = (narrows_render::connections::page(&host_name(), Ok(&view)), clock::unix_us() / 1_000);
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
    let says = |how: String| format!("{}: {how}", made.set);
    undone.map(says).map_err(|why| Refused::failed(says(why)))
}

/// A stored mesh as a grid: how its paths were then.
fn grid_of(report: &MeshReport, metric: GridMetric, at_unix_ms: u64) -> Grid {
    let mut grid = grid::of_mesh(report, metric, None);
    grid.cells.values_mut().for_each(|it| it.at_unix_ms = Some(at_unix_ms));
    grid
}

impl OfHost {
    /// The newest mesh of the store as grids, where no run between two hosts is newer; else the newest of those runs.
    fn read(store: &Store, spec: &PageSpec) -> Result<Now, narrows_store::Error> {
        let runs = store.list(&Filter::default(), 0, NEWEST)?;
        let of_runs = grid::of_runs(&runs);
        let at = |run: &StoredRun| run.started_unix_us / 1_000;
        // Diagnoses that a mesh made have its time.
        let newer = of_runs.cells.values().filter_map(|it| it.at_unix_ms).max();
        let newest = runs.iter().find(|run| run.command == MESH).filter(|run| Some(at(run)) >= newer);
        // One that this program cannot read is as none.
        let found = newest.and_then(|run| maintenance::show(store, &run.id, spec.kinds).ok().flatten());
        let found = found.and_then(|(run, content)| Some((run, Content::take::<MeshRecord>(content)?)));
        let of_mesh = found.map(|(run, record)| (mesh::report(&record), at(&run), run.id));
        let (grids, mesh): (Vec<Grid>, _) = match of_mesh {
            Some((report, at, id)) => {
                (GridMetric::ALL.map(|metric| grid_of(&report, metric, at)).into(), Some((id, at)))
            }
            None => (vec![of_runs], None),
        };
        let front = web::of_runs(&host_name(), &runs, clock::unix_us() / 1_000);
        Ok(Now { front: Front { mesh, ..front }, grids, status: None })
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
            let says = |it: &Change| format!("{} (before: {})", it.set, before(it));
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
            let (what, says, done) = match ask {
                Ask::Test { to, down, .. } => {
                    let own = control.own.upgrade().ok_or_else(|| Refused::failed("the server ends"))?;
                    let says = format!("diagnosis of the path {} {to}", if down { "from" } else { "to" });
                    let make = move |live: &Live, stop: &Stop| {
                        own_test::diagnose(&own, &to, down, live, stop).unwrap_or_else(|why| (why, None))
                    };
                    let begun = format!("the {says} has begun");
                    (says.clone(), begun, control.live.begin(says, who.clone(), make))
                }
                Ask::Stop { began_unix_ms } => {
                    let stopped = control.live.stop(began_unix_ms);
                    let over = || Refused::not_found("test");
                    let done = if stopped { Ok(()) } else { Err(over()) };
                    ("stop of the test".to_owned(), "the test stops".to_owned(), done)
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
            done.map(|()| says)
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

    fn connections(&self, host: String) -> Soon<'_, Option<Read>> {
        let watched = self.watched.clone();
        Box::pin(async move {
            if host != host_name() {
                return Ok(None);
            }
            let _turn = self.turn.acquire().await.map_err(Refused::failed)?;
            let read = move || {
                let page = |why: Missing| narrows_render::connections::page(&host, Err(&why.to_string()));
                let unknown = |why: Missing| (page(why), clock::unix_us() / 1_000);
                connections(&mut lock(&watched)).unwrap_or_else(unknown)
            };
            blocking(read).await.map(Some)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::helper::Deputies;
    use crate::instruments::LiveInstruments;
    use crate::server::api;
    use crate::server::config::ServeConfig;
    use crate::server::rights::Caller;
    use crate::tokens::{FRESH, Tokens};
    use axum::body::Body;
    use hyper::service::Service as _;
    use hyper_util::service::TowerToHyperService;
    use narrows_model::run::history::Headline;
    use narrows_model::run::mesh::{MeshLoad, MeshMember, MeshPlan, MeshState};
    use narrows_model::{Snapshot, Unit};
    use narrows_views::history::empty;

    fn two_hosts() -> MeshRecord {
        let member = |name: &str| MeshMember {
            name: name.to_owned(),
            group: String::new(),
            address: String::new(),
            absent: None,
            is_shared: false,
            host: Snapshot::default(),
        };
        let load = MeshLoad {
            from: 0,
            to: 1,
            opened_by_receiver: false,
            state: MeshState::Measured { goodput_bps: 1e9, retransmits: None, busy: [None, None] },
            beside_others_bps: None,
        };
        MeshRecord {
            plan: MeshPlan {
                duration_ms: 1_000,
                streams: 1,
                probe_ms: 0,
                diagnose: false,
                try_fixes: false,
                budget_ms: None,
                budget_bytes: None,
            },
            paths: Vec::new(),
            diagnoses: Vec::new(),
            ended_early: None,
            members: ["a", "b"].map(member).into(),
            loads: vec![load],
            interrupted: false,
        }
    }

    #[test]
    fn an_old_mesh_is_not_shown_as_how_paths_are_now() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = directory.path().join("runs.db");
        let spec = PageSpec { store, kinds: crate::stored::OWN, proxy: None, controls: false };
        let mut store = Store::open(&spec.store).expect("a store");
        let run = |id: &str, at_s: u64, command: &str| StoredRun {
            id: id.to_owned(),
            started_unix_us: at_s * 1_000_000,
            client: "a".to_owned(),
            server: "b".to_owned(),
            verdict: "healthy".to_owned(),
            ..empty(command, vec![Headline::new("goodput up", 1e9, Unit::BitsPerSecond)])
        };
        let mesh = serde_json::to_vec(&two_hosts()).expect("JSON");
        store.put(&run("m", 20, MESH), "mesh", &mesh).expect("a mesh");
        store.put(&run("d", 20, "diagnose"), "run", b"{}").expect("a diagnosis of it");
        let now = OfHost::read(&store, &spec).expect("how it is");
        let times: Vec<Option<u64>> = now.grids[0].cells.values().map(|it| it.at_unix_ms).collect();
        assert_eq!((now.grids.len(), times, now.front.mesh), (3, vec![Some(20_000)], Some(("m".to_owned(), 20_000))));
        store.put(&run("e", 30, "diagnose"), "run", b"{}").expect("a diagnosis");
        let now = OfHost::read(&store, &spec).expect("how it is");
        assert_eq!((now.grids.len(), now.front.mesh), (1, None));
    }

    #[tokio::test]
    async fn requests_of_programs_stay_theirs_and_all_other_addresses_are_the_page() {
        let state = tempfile::tempdir().expect("a directory");
        let config = ServeConfig::new(state.path().to_owned(), LiveInstruments::Nothing);
        let deputies = Deputies::here(Tuner::new(state.path(), "serve"));
        let (stop, _) = tokio::sync::watch::channel(false);
        let tokens = Tokens::new(state.path(), Box::new(|| Ok(Vec::new())), FRESH);
        let secret = Secret::new([7; 24]);
        let reading = deputies.reading.clone();
        let mut shared = Shared::new(config, 1, Some(secret.clone()), (tokens, Audit::of(None)), deputies, stop);
        let store = state.path().join("runs.db");
        let spec = PageSpec { store, kinds: crate::stored::OWN, proxy: None, controls: false };
        shared.page = Some(page(&spec, &shared, Weak::new(), reading).expect("a page"));
        let shared = Arc::new(shared);
        let service = TowerToHyperService::new(api::router(shared.clone()));
        let bearer = format!("Bearer {}", secret.reveal());
        for (path, authorization, status) in [
            ("/v1/hello", "", 401),
            ("/v1/nothing", "", 401),
            ("/v1/nothing", bearer.as_str(), 404),
            ("/v1/sessions/7/nothing", bearer.as_str(), 404),
            ("/nothing", "", 303),
            ("/web/nothing", "", 303),
        ] {
            let address = IpAddr::from([192, 0, 2, 1]);
            let caller = Caller { address: Some(address), pending: Some(shared.unauthenticated.enter(address)) };
            let request = hyper::Request::builder().uri(path).extension(caller);
            let request =
                if authorization.is_empty() { request } else { request.header("authorization", authorization) };
            let answer = service.call(request.body(Body::empty()).expect("a request")).await.expect("infallible");
            let is_json = answer.headers().get("content-type").is_some_and(|it| it == "application/json");
            assert_eq!((answer.status().as_u16(), is_json), (status, status != 303), "{path} {authorization}");
        }
    }

    #[test]
    fn each_server_has_sessions_of_its_own() {
        let of = |host: &str, state: &str, port: u16| of_server(host, Path::new(state), port);
        let all = [of("a", "/s", 1), of("b", "/s", 1), of("a", "/t", 1), of("a", "/s", 2)];
        assert_eq!(std::collections::BTreeSet::from(all).len(), 4);
    }
}
