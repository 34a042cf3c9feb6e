//! The page that a browser is shown: of a fleet, or of a host and its store. It is rendered here from the same documents as reports on a
//! terminal, and loads nothing from elsewhere.

pub(crate) mod gate;
mod pages;
mod runs;
pub(crate) mod source;

pub use gate::Proxy;

use crate::lock;
use crate::server::refusal::Refused;
use crate::server::rights::Caller;
use crate::stored::Kinds;
use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequestParts, Request};
use axum::http::{HeaderValue, Response, StatusCode, header, request::Parts};
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use gate::{Gate, Visitor};
use narrows_render::web;
use narrows_sys::clock;
use source::{Now, Source};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What is shown now is read again after so long, whoever asks.
const FRESH: Duration = Duration::from_secs(3);
/// What is older is not shown.
const OLD: Duration = Duration::from_secs(60);

/// How a page is shown.
#[derive(Debug, Clone)]
pub struct PageSpec {
    /// The store of the runs that it can show: a file, or an address of PostgreSQL.
    pub store: PathBuf,
    /// The kinds of records that it can show.
    pub kinds: Kinds,
    /// A reverse proxy that names readers.
    pub proxy: Option<Proxy>,
}

/// A page, and what it is of.
pub(crate) struct Site {
    pub(crate) gate: Gate,
    pub(crate) source: Box<dyn Source>,
    /// The store of its runs: a file, or an address.
    pub(crate) store: PathBuf,
    pub(crate) kinds: Kinds,
    now: Mutex<Option<Kept>>,
    /// Held by who reads it anew.
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// What was shown last.
#[derive(Clone)]
struct Kept {
    at: Instant,
    took: Duration,
    now: Arc<Now>,
}

impl Site {
    pub(crate) fn new(gate: Gate, source: Box<dyn Source>, spec: &PageSpec) -> Self {
        Self { gate, source, store: spec.store.clone(), kinds: spec.kinds, now: Mutex::default(), turn: Arc::default() }
    }

    /// How everything is. All readers share the answer. A large fleet takes a moment for it: a reader gets the last one while the next one
    /// is made, unless that is old.
    async fn now(self: &Arc<Self>) -> Result<Arc<Now>, Refused> {
        let kept = lock(&self.now).clone();
        let Some(Kept { at, took, now }) = kept.filter(|it| it.at.elapsed() < OLD) else { return self.renew().await };
        // It costs no more than a tenth of the time of who makes it.
        if at.elapsed() > FRESH.max(took * 10)
            && let Ok(turn) = self.turn.clone().try_lock_owned()
        {
            let site = self.clone();
            tokio::spawn(async move {
                let _turn = turn;
                let _ = site.read().await;
            });
        }
        Ok(now)
    }

    /// Waits for a new answer; readers that wait at the same time share it.
    async fn renew(&self) -> Result<Arc<Now>, Refused> {
        let asked = clock::now();
        let _turn = self.turn.lock().await;
        let kept = lock(&self.now).clone();
        match kept.filter(|it| it.at >= asked) {
            Some(kept) => Ok(kept.now),
            None => self.read().await,
        }
    }

    async fn read(&self) -> Result<Arc<Now>, Refused> {
        let began = clock::now();
        let now = Arc::new(self.source.now().await?);
        *lock(&self.now) = Some(Kept { at: began, took: began.elapsed(), now: now.clone() });
        Ok(now)
    }

    /// What a reader changed is to be seen at once.
    fn forget(&self) {
        *lock(&self.now) = None;
    }
}

/// The requests of a page.
pub(crate) fn router(site: Arc<Site>) -> Router {
    Router::new()
        .route("/", get(async || to(web::AT)))
        .route("/web", get(async || to(web::AT)))
        .route("/web/page.css", get(async || asset("text/css; charset=utf-8", web::style())))
        .route("/web/page.js", get(async || asset("text/javascript; charset=utf-8", web::SCRIPT.to_owned())))
        .route("/web/login", get(pages::login).post(pages::enter))
        .route("/web/logout", post(pages::leave))
        .route("/web/", get(pages::front))
        .route("/web/grid.json", get(pages::grid))
        .route("/web/paths.csv", get(pages::csv))
        .route("/web/table", get(pages::table))
        .route("/web/report", get(pages::report))
        .route("/web/status.json", get(pages::status))
        .route("/web/path", get(pages::path))
        .route("/web/path.{form}", get(pages::path_as))
        .route("/web/host", get(pages::host))
        .route("/web/search", get(pages::search))
        .route("/web/do", post(pages::act))
        .route("/web/runs", get(runs::list))
        .route("/web/run", get(runs::one))
        .route("/web/run.{form}", get(runs::one_as))
        .route("/web/compare", get(runs::compare))
        .layer(from_fn(guarded))
        .with_state(site)
}

/// What a browser may do with any answer.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; \
    base-uri 'none'; frame-ancestors 'none'";

async fn guarded(request: Request, next: Next) -> Response<Body> {
    let mut answer = next.run(request).await;
    let headers = answer.headers_mut();
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    answer
}

fn asset(kind: &'static str, text: String) -> Response<Body> {
    let mut answer = content(kind, text);
    answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=300"));
    answer
}

fn content(kind: &'static str, text: String) -> Response<Body> {
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

fn page(text: String) -> Response<Body> {
    content("text/html; charset=utf-8", text)
}

/// What is saved as a file. A browser that opened it would let it do what a page may.
fn download(kind: &'static str, name: &str, text: String) -> Response<Body> {
    let mut answer = content(kind, text);
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect();
    if let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{name}\"")) {
        answer.headers_mut().insert(header::CONTENT_DISPOSITION, value);
    }
    answer
}

/// Elsewhere on the page.
fn to(place: &str) -> Response<Body> {
    let place = HeaderValue::from_str(place).unwrap_or(HeaderValue::from_static(web::AT));
    (StatusCode::SEE_OTHER, [(header::LOCATION, place)]).into_response()
}

/// What is behind the question mark of an address, or in a form.
#[derive(Debug, Default)]
pub(crate) struct Words(HashMap<String, String>);

impl Words {
    fn of(text: &[u8]) -> Self {
        Self(form_urlencoded::parse(text).into_owned().take(64).collect())
    }

    fn get(&self, key: &str) -> &str {
        self.0.get(key).map_or("", String::as_str)
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.get(key).parse().ok()
    }
}

impl<S: Sync> FromRequestParts<S> for Words {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self::of(parts.uri.query().unwrap_or_default().as_bytes()))
    }
}

impl FromRequestParts<Arc<Site>> for Visitor {
    type Rejection = Response<Body>;

    async fn from_request_parts(parts: &mut Parts, site: &Arc<Site>) -> Result<Self, Response<Body>> {
        let caller = parts.extensions.get::<Caller>().cloned();
        let visitor = caller.as_ref().and_then(|caller| site.gate.visitor(&parts.headers, caller, clock::now()));
        let Some(visitor) = visitor else {
            let next = parts.uri.path_and_query().map_or(web::AT, |it| it.as_str());
            return Err(to(&web::address("login", &[("next", next)])));
        };
        if let Some(pending) = caller.and_then(|caller| caller.pending) {
            pending.admit();
        }
        Ok(visitor)
    }
}

#[cfg(test)]
mod tests;
