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
use axum::routing::{any, get, post};
use budget::Budget;
use narrows_render::web;
use narrows_sys::process::host_name;
use narrows_sys::udp::socket;
use site::{Site, content, to};
use std::net::{IpAddr, SocketAddr};
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
        // All that is not below `/v1`, which is for programs.
        .route("/{*rest}", any(pages::nowhere))
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

/// Where the page is, for the user: at the address that it is bound to; else at one of this host, whose name others may not resolve, and at
/// its name.
pub(crate) fn announcement(bind: Option<IpAddr>, port: u16) -> String {
    announced(bind, own_address(bind), &host_name(), port)
}

fn announced(bind: Option<IpAddr>, own: Option<IpAddr>, name: &str, port: u16) -> String {
    let bound = bind.filter(|it| !it.is_unspecified());
    let address = bound.or(own).map(|it| SocketAddr::new(it, port).to_string());
    let name = bound.is_none().then(|| format!("{name}:{port}"));
    let all: Vec<String> = address.into_iter().chain(name).map(|it| format!("https://{it}/")).collect();
    format!("its page is at {}", all.join(" or "))
}

/// The address that this host sends from to others. A socket that is connected and sends nothing knows it.
fn own_address(bind: Option<IpAddr>) -> Option<IpAddr> {
    // Of documentation (RFC 5737, RFC 3849): the route is the default one.
    let others = [IpAddr::from([192, 0, 2, 1]), IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1])];
    let others = others.into_iter().filter(|it| bind.is_none_or(|bind| bind.is_ipv4() == it.is_ipv4()));
    let from = |to| socket::connect(SocketAddr::new(to, 9)).ok()?.local_addr().ok().map(|it| it.ip());
    others.filter_map(from).find(|it| !it.is_loopback())
}
