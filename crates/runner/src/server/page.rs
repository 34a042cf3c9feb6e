//! What the page shows of this host and its store.

use crate::connections::{self, Watched};
use crate::helper::Reading;
use crate::lock;
use crate::server::audit::Audit;
use crate::server::refusal::Refused;
use crate::server::request::blocking;
use crate::stored::{Content, Filter, Store, maintenance};
use crate::trust::same_secret;
use crate::web::gate::{Find, Gate, Known};
use crate::web::site::Site;
use crate::web::source::{Now, Soon, Source};
use crate::web::{PageSpec, router};
use axum::Router;
use narrows_collect::Missing;
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
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// The newest runs, from which the first view is made.
const NEWEST: u64 = 1_000;
const MESH: &str = "mesh";

/// The page of a server.
/// Errors: the header of the proxy has no valid name.
pub(super) fn page(
    spec: &PageSpec,
    secret: Option<Secret>,
    reading: Reading,
    audit: Arc<Audit>,
) -> Result<Router, String> {
    // Named tokens are for measuring: the store has the inventories of all hosts that keep runs there.
    let find: Find = Box::new(move |shown: &Secret| {
        let is_own = secret.as_ref().is_some_and(|secret| same_secret(shown, secret));
        is_own.then(|| Known { name: "default".to_owned(), may_change: false })
    });
    let (turn, watched) = (Semaphore::new(1), Arc::default());
    let source = OfHost { store: spec.store.clone(), spec: spec.clone(), reading, turn, watched, audit };
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
