//! The page that a browser is shown: of a fleet, or of a host and its store. It is rendered here from the same documents as reports on a
//! terminal, and loads nothing from elsewhere.

mod budget;
pub(crate) mod gate;
pub(crate) mod live;
mod pages;
mod runs;
pub(crate) mod site;
pub(crate) mod source;
mod spec;
#[cfg(test)]
mod tests;

pub use spec::{PageSpec, Proxy};

use crate::server::rights::Caller;
use crate::server::source_of;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Response, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::routing::{get, post};
use budget::Budget;
use narrows_render::web;
use site::{Site, content, to};
use std::sync::Arc;

/// The requests of a page.
pub(crate) fn router(site: Arc<Site>) -> Router {
    Router::new()
        .route("/", get(async || to(web::AT)))
        .route("/web", get(async || to(web::AT)))
        .route("/web/page.css", get(async || asset("text/css; charset=utf-8", web::style())))
        .route("/web/page.js", get(async || asset("text/javascript; charset=utf-8", web::script())))
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
        .route("/web/test", get(pages::test))
        .route("/web/test/events", get(pages::events))
        .route("/web/runs", get(runs::list))
        .route("/web/run", get(runs::one))
        .route("/web/run.{form}", get(runs::one_as))
        .route("/web/compare", get(runs::compare))
        .layer(from_fn_with_state(Arc::<Budget>::default(), guarded))
        .with_state(site)
}

/// What a browser may do with any answer.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; \
    base-uri 'none'; frame-ancestors 'none'";

async fn guarded(State(budget): State<Arc<Budget>>, request: Request, next: Next) -> Response<Body> {
    let source = request.extensions().get::<Caller>().and_then(|caller| caller.address);
    let mut answer = budget.held(source.map(source_of), next.run(request).await).await;
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
