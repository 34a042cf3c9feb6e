//! A page with what it is of, and what its requests have in common.

use super::gate::{Gate, Visitor};
use super::source::{Now, Source};
use super::spec::PageSpec;
use crate::lock;
use crate::server::refusal::Refused;
use crate::server::request::blocking;
use crate::server::rights::Caller;
use crate::stored::Kinds;
use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::{HeaderValue, Method, Response, StatusCode, header, request::Parts};
use axum::response::IntoResponse;
use narrows_render::web::{self, Reader};
use narrows_render::{Document, Format, Style};
use narrows_sys::clock;
use narrows_wire::api::Reason;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// What is shown now is read again after so long, whoever asks.
const FRESH: Duration = Duration::from_secs(3);
/// What is older is not shown.
const OLD: Duration = Duration::from_secs(60);
/// Large answers that are made at the same time, and how long others wait for their turn.
const MAKING_MAX: usize = 2;
const WAITS: Duration = Duration::from_secs(20);

pub(super) type Shown = Result<Response<Body>, Response<Body>>;

/// A page, and what it is of.
pub(crate) struct Site {
    pub(crate) gate: Gate,
    pub(crate) source: Box<dyn Source>,
    /// The store of its runs: a file, or an address.
    pub(crate) store: PathBuf,
    pub(crate) kinds: Kinds,
    now: Mutex<Option<Kept>>,
    /// How often a reader changed something.
    changes: AtomicU64,
    /// Held by who reads it anew.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Large answers that are being made.
    making: Arc<Semaphore>,
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
        Self {
            gate,
            source,
            store: spec.store.clone(),
            kinds: spec.kinds,
            now: Mutex::default(),
            changes: AtomicU64::default(),
            turn: Arc::default(),
            making: Arc::new(Semaphore::new(MAKING_MAX)),
        }
    }

    /// Makes an answer that may be large, on a thread of its own: only so many at a time, since each is whole in memory before it is sent.
    pub(super) async fn make<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Refused> + Send + 'static,
    ) -> Result<T, Refused> {
        let turn = tokio::time::timeout(WAITS, self.making.clone().acquire_owned()).await;
        let turn = turn.map_err(|_| Refused::new(Reason::Busy, "others read as well; try again"))?;
        let turn = turn.map_err(Refused::failed)?;
        blocking(move || {
            let _turn = turn;
            work()
        })
        .await?
    }

    /// How everything is. All readers share the answer. A large fleet takes a moment for it: a reader gets the last one while the next one
    /// is made, unless that is old.
    pub(super) async fn now(self: &Arc<Self>) -> Result<Arc<Now>, Refused> {
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
    async fn renew(self: &Arc<Self>) -> Result<Arc<Now>, Refused> {
        let asked = clock::now();
        let turn = self.turn.clone().lock_owned().await;
        let kept = lock(&self.now).clone();
        match kept.filter(|it| it.at >= asked) {
            Some(kept) => Ok(kept.now),
            // By itself: a reader that goes meanwhile neither stops it nor lets another begin beside it.
            None => {
                let site = self.clone();
                let made = tokio::spawn(async move {
                    let _turn = turn;
                    site.read().await
                });
                made.await.map_err(Refused::failed)?
            }
        }
    }

    async fn read(&self) -> Result<Arc<Now>, Refused> {
        let (began, changes) = (clock::now(), self.changes.load(Relaxed));
        let now = Arc::new(self.source.now().await?);
        let mut kept = lock(&self.now);
        // What was changed meanwhile may not be in it.
        if self.changes.load(Relaxed) == changes {
            *kept = Some(Kept { at: began, took: began.elapsed(), now: now.clone() });
        }
        drop(kept);
        Ok(now)
    }

    /// What a reader changed is to be seen at once.
    pub(super) fn forget(&self) {
        let mut kept = lock(&self.now);
        self.changes.fetch_add(1, Relaxed);
        *kept = None;
    }
}

pub(super) fn reader<'a>(site: &'a str, visitor: &'a Visitor) -> Reader<'a> {
    let key = visitor.has_session.then_some(visitor.key.as_str());
    let said = visitor.said.as_deref();
    Reader { site, name: &visitor.known.name, key: key.filter(|_| visitor.known.may_change), out: key, said }
}

/// A refusal as a page.
pub(super) fn refusal(site: &Site, visitor: &Visitor, refused: &Refused) -> Response<Body> {
    let status = refused.clone().into_response().status();
    let name = site.source.name();
    let mut answer = page(web::refused(&reader(&name, visitor), refused.sentence()));
    *answer.status_mut() = status;
    answer
}

pub(super) fn written(report: &impl Document, format: Format) -> Result<String, Refused> {
    let text = report.write(format, Style::default()).map_err(Refused::failed)?;
    text.ok_or_else(|| Refused::not_found("format of it"))
}

pub(super) fn content(kind: &'static str, text: String) -> Response<Body> {
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

pub(super) fn page(text: String) -> Response<Body> {
    content("text/html; charset=utf-8", text)
}

/// What is saved as a file. A browser that opened it would let it do what a page may.
pub(super) fn download(kind: &'static str, name: &str, text: String) -> Response<Body> {
    let mut answer = content(kind, text);
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect();
    if let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{name}\"")) {
        answer.headers_mut().insert(header::CONTENT_DISPOSITION, value);
    }
    answer
}

/// Elsewhere on the page.
pub(super) fn to(place: &str) -> Response<Body> {
    let place = HeaderValue::from_str(place).unwrap_or(HeaderValue::from_static(web::AT));
    (StatusCode::SEE_OTHER, [(header::LOCATION, place)]).into_response()
}

/// What is behind the question mark of an address, or in a form.
#[derive(Debug, Default)]
pub(crate) struct Words(HashMap<String, String>);

impl Words {
    pub(super) fn of(text: &[u8]) -> Self {
        Self(form_urlencoded::parse(text).into_owned().take(64).collect())
    }

    pub(super) fn get(&self, key: &str) -> &str {
        self.0.get(key).map_or("", String::as_str)
    }

    pub(super) fn number(&self, key: &str) -> Option<u64> {
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
        let Some(mut visitor) = visitor else {
            // What a form asked for is not done, and no address to go to.
            let asked = parts.uri.path_and_query().filter(|_| parts.method == Method::GET);
            let next = asked.map_or(web::AT, |it| it.as_str());
            return Err(to(&web::address("login", &[("next", next)])));
        };
        if let Some(pending) = caller.and_then(|caller| caller.pending) {
            pending.admit();
        }
        // What the page's script reads shows nobody what was done.
        let is_shown = parts.headers.get("sec-fetch-mode").is_none_or(|it| it == "navigate");
        if is_shown && parts.method == Method::GET {
            visitor.said = site.gate.said(&parts.headers);
        }
        Ok(visitor)
    }
}
