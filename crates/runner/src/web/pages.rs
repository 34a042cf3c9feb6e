//! The requests of a page but for those of runs.

use super::gate::{Denied, Visitor};
use super::runs;
use super::site::{Shown, Site, Words, content, download, page, reader, refusal, to, written};
use super::source::Ask;
use crate::server::refusal::{Refused, json};
use crate::server::rights::Caller;
use axum::body::Body;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, Uri, header};
use axum::response::IntoResponse as _;
use http_body_util::{BodyExt as _, Limited};
use narrows_fleet::incident::names;
use narrows_model::run::fleet::FleetSeries;
use narrows_model::run::grid::Grid;
use narrows_render::web::{self, Action};
use narrows_render::{Format, fleet_series};
use narrows_sys::clock;
use narrows_views::fleet_series::judged;
use narrows_wire::api::Reason;
use std::sync::Arc;
use std::time::Duration;

/// A form has a few fields.
const FORM_MAX_BYTES: usize = 8 << 10;
const FORM_TIME: Duration = Duration::from_secs(10);
const HOUR_MS: u64 = 3_600_000;
/// A path is shown of no more: a month.
const HOURS_MAX: u64 = 744;

pub(super) async fn login(State(site): State<Arc<Site>>, words: Words) -> Response<Body> {
    page(web::login(words.get("next"), None, site.source.tokens()))
}

async fn form(body: Body) -> Result<Words, Refused> {
    let collected = tokio::time::timeout(FORM_TIME, Limited::new(body, FORM_MAX_BYTES).collect()).await;
    let bytes = collected.map_err(|_| Refused::bad("no complete form in time"))?;
    let bytes = bytes.map_err(|_| Refused::bad("the form is truncated or too long"))?.to_bytes();
    Ok(Words::of(&bytes))
}

/// Whether a browser says that another site made it send this.
fn is_foreign(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-site").is_some_and(|it| it != "same-origin" && it != "none")
}

pub(super) async fn enter(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    let words = match form(body).await {
        Ok(words) if !is_foreign(&headers) => words,
        Ok(_) => return Refused::bad("another site sent this form").into_response(),
        Err(refused) => return refused.into_response(),
    };
    // Elsewhere on this page only: `//host` is another one.
    let next = Some(words.get("next")).filter(|it| it.starts_with(web::AT) && !it.contains(['\\', '\r', '\n']));
    let next = next.unwrap_or(web::AT);
    let source = caller.address.map(crate::server::source_of);
    match site.gate.enter(words.get("token"), source, clock::now()) {
        Ok((cookie, known)) => {
            site.source.note_entry(caller.address, Ok(&known.name));
            with_cookie(to(next), &cookie)
        }
        Err(denied) => {
            let (status, reason, why) = match denied {
                Denied::WrongToken => (StatusCode::FORBIDDEN, Reason::WrongToken, "this token is not known here"),
                Denied::TooOften => {
                    (StatusCode::TOO_MANY_REQUESTS, Reason::Busy, "too many wrong tokens; wait a minute")
                }
            };
            site.source.note_entry(caller.address, Err((reason, why)));
            let mut answer = page(web::login(next, Some(why), site.source.tokens()));
            *answer.status_mut() = status;
            answer
        }
    }
}

fn with_cookie(mut answer: Response<Body>, cookie: &str) -> Response<Body> {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        answer.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    answer
}

pub(super) async fn leave(
    State(site): State<Arc<Site>>,
    visitor: Visitor,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    match form(body).await {
        Ok(words) if visitor.is_own(words.get("key")) => {
            with_cookie(to(&web::address("login", &[])), &site.gate.leave(&headers))
        }
        Ok(_) => Refused::bad("another site sent this form").into_response(),
        Err(refused) => refused.into_response(),
    }
}

/// An address that is of neither the page nor the requests of programs.
pub(super) async fn nowhere(State(site): State<Arc<Site>>, visitor: Visitor, uri: Uri) -> Response<Body> {
    let path: String = uri.path().chars().take(100).collect();
    refusal(&site, &visitor, &Refused::new(Reason::NotFound, format!("there is no page at {path}")))
}

pub(super) async fn front(State(site): State<Arc<Site>>, visitor: Visitor, words: Words) -> Shown {
    let now = site.now().await.map_err(|it| refusal(&site, &visitor, &it))?;
    let name = site.source.name();
    let grid = now.grid(words.get("metric")).map_err(|it| refusal(&site, &visitor, &it))?;
    Ok(page(web::front(&reader(&name, &visitor), &now.front, grid, &now.metrics())))
}

/// Groups that are asked for, as `0-1,0-2`.
fn pairs(word: &str) -> Vec<(usize, usize)> {
    let pair = |it: &str| it.split_once('-').and_then(|(g, h)| Some((g.parse().ok()?, h.parse().ok()?)));
    word.split(',').take(64).filter_map(pair).collect()
}

async fn with_grid<T: Send + 'static>(
    site: &Arc<Site>,
    words: &Words,
    make: impl FnOnce(&Grid) -> T + Send + 'static,
) -> Result<T, Refused> {
    let (now, metric) = (site.now().await?, words.get("metric").to_owned());
    // A large one takes a moment, for which others do not wait.
    site.make(move || now.grid(&metric).map(make)).await
}

pub(super) async fn grid(State(site): State<Arc<Site>>, _: Visitor, words: Words) -> Result<Response<Body>, Refused> {
    let of = pairs(words.get("of"));
    let whole = words.get("of").is_empty();
    let text = with_grid(&site, &words, move |it| if whole { web::fold(it) } else { web::blocks(it, &of) }).await?;
    Ok(content("application/json", text))
}

pub(super) async fn csv(State(site): State<Arc<Site>>, _: Visitor, words: Words) -> Result<Response<Body>, Refused> {
    let text = with_grid(&site, &words, web::csv).await?.map_err(Refused::failed)?;
    Ok(download("text/csv; charset=utf-8", "paths.csv", text))
}

pub(super) async fn table(State(site): State<Arc<Site>>, visitor: Visitor, words: Words) -> Shown {
    let of = pairs(words.get("of")).first().copied();
    let (name, by) = (site.source.name(), visitor.clone());
    let refused = |it: Refused| refusal(&site, &visitor, &it);
    let metrics = site.now().await.map_err(refused)?.metrics();
    let made = with_grid(&site, &words, move |it| web::table(&reader(&name, &by), it, &metrics, of)).await;
    made.map(page).map_err(refused)
}

pub(super) async fn status(State(site): State<Arc<Site>>, _: Visitor) -> Result<Response<Body>, Refused> {
    let now = site.now().await?;
    // Of a large fleet this takes a moment, for which others do not wait.
    site.make(move || now.status.as_ref().map(json).ok_or_else(|| Refused::not_found("fleet"))).await
}

/// The whole report, in the words of a terminal.
pub(super) async fn report(State(site): State<Arc<Site>>, visitor: Visitor) -> Shown {
    let now = site.now().await.map_err(|it| refusal(&site, &visitor, &it))?;
    if now.status.is_none() {
        return Ok(to(&web::address("runs", &[])));
    }
    // Of a large fleet this takes a moment, for which others do not wait.
    let document = site.make(move || now.status.as_ref().map(|it| written(it, Format::Html)).transpose()).await;
    let document = document.map_err(|it| refusal(&site, &visitor, &it))?.unwrap_or_default();
    let name = site.source.name();
    let links = [("JSON", web::address("status.json", &[]))];
    Ok(page(web::report(&reader(&name, &visitor), "Report", &document, &links)))
}

async fn series(site: &Site, words: &Words) -> Result<Option<FleetSeries>, Refused> {
    let hours = words.number("hours").unwrap_or(24).clamp(1, HOURS_MAX);
    let (from, to) = (words.get("from").to_owned(), words.get("to").to_owned());
    let found = site.source.series(from, to, hours).await?;
    site.make(move || Ok(found.map(judged))).await
}

pub(super) async fn path(State(site): State<Arc<Site>>, visitor: Visitor, words: Words) -> Shown {
    let refused = |it: Refused| refusal(&site, &visitor, &it);
    let found = series(&site, &words).await.map_err(refused)?;
    let document = found.as_ref().map(|it| written(it, Format::Html)).transpose().map_err(refused)?;
    let way = [words.get("from"), words.get("to")];
    let list = runs::between(&site, way).await.map_err(refused)?;
    let hours = words.number("hours").unwrap_or(24).to_string();
    let name = site.source.name();
    let list = list.filter(|it| found.is_none() || !it.runs.is_empty());
    Ok(page(web::path(&reader(&name, &visitor), way, &hours, document.as_deref(), list.as_ref())))
}

pub(super) async fn path_as(
    State(site): State<Arc<Site>>,
    Path(form): Path<String>,
    _: Visitor,
    words: Words,
) -> Result<Response<Body>, Refused> {
    let found = series(&site, &words).await?.ok_or_else(|| Refused::not_found("path"))?;
    let name = format!("{}-{}.{form}", found.from, found.to);
    match form.as_str() {
        "json" => Ok(download("application/json", &name, written(&found, Format::Json)?)),
        "csv" => Ok(download("text/csv; charset=utf-8", &name, written(&found, Format::Csv)?)),
        "svg" => Ok(download("image/svg+xml", &name, fleet_series::picture(&found))),
        _ => Err(Refused::not_found("format of it")),
    }
}

pub(super) async fn host(State(site): State<Arc<Site>>, visitor: Visitor, words: Words) -> Shown {
    let refused = |it: Refused| refusal(&site, &visitor, &it);
    let now = site.now().await.map_err(refused)?;
    let name = words.get("name");
    let of_fleet = now.status.as_ref().and_then(|it| it.hosts.iter().find(|host| host.name == name));
    let grid = now.grids.first();
    let at = grid.and_then(|it| it.hosts.iter().position(|host| host == name));
    let listed = runs::of_host(&site, name).await.map_err(refused)?;
    if of_fleet.is_none() && at.is_none() && listed.is_none() && name != site.source.name() {
        return Err(refused(Refused::not_found("host")));
    }
    // Of goodput, round trip and loss.
    let worst = |from: usize, to: usize| {
        let of = now.grids.iter().map(|grid| grid.state(from, to));
        of.max().unwrap_or(narrows_model::run::grid::CellState::NotTested)
    };
    let paths = grid.zip(at).map(|(grid, at)| {
        let others = grid.hosts.iter().enumerate().filter(|(other, _)| *other != at);
        let all = others.map(|(other, name)| (name.as_str(), [worst(at, other), worst(other, at)]));
        // The paths that are tested, the worst first.
        let mut known: Vec<_> =
            all.filter(|(_, of)| of.iter().any(|it| *it > narrows_model::run::grid::CellState::NotTested)).collect();
        known.sort_by_key(|(_, [there, back])| std::cmp::Reverse(*there.max(back)));
        known
    });
    let connections = site.source.connections(name.to_owned()).await.map_err(refused)?;
    let settings = site.source.settings(name.to_owned()).await.map_err(refused)?;
    let host = web::Host {
        name,
        of_fleet,
        troubles: now.front.troubles.iter().filter(|it| names(&it.element, name)).collect(),
        connections,
        settings,
        runs: listed.map(|it| web::listed(&it)),
        changes: site.source.changes(name.to_owned()).await.map_err(refused)?,
        paths: paths.unwrap_or_default(),
    };
    let site_name = site.source.name();
    Ok(page(web::host(&reader(&site_name, &visitor), &host)))
}

/// Hosts, paths and runs whose names are asked for. What is found alone is shown at once.
pub(super) async fn search(State(site): State<Arc<Site>>, visitor: Visitor, words: Words) -> Shown {
    let refused = |it: Refused| refusal(&site, &visitor, &it);
    let now = site.now().await.map_err(refused)?;
    let asked: String = words.get("q").trim().chars().take(200).collect();
    let parts: Vec<&str> = asked.split([' ', ',']).filter(|it| !it.is_empty() && *it != "to" && *it != "→").collect();
    let hosts: &[String] = now.grids.first().map_or(&[], |it| &it.hosts);
    let like = |part: &str| {
        hosts.iter().filter(|it| it.to_lowercase().contains(&part.to_lowercase())).take(100).collect::<Vec<_>>()
    };
    let host = |it: &str| (format!("host {it}"), web::address("host", &[("name", it)]));
    let path =
        |from: &str, to: &str| (format!("path {from} to {to}"), web::address("path", &[("from", from), ("to", to)]));
    let mut found: Vec<(String, String)> = Vec::new();
    // Hosts that only the runs of the store name are found by their whole names.
    match parts[..] {
        [one] => {
            found.extend(like(one).into_iter().map(|it| host(it.as_str())));
            let is_there = hosts.iter().any(|it| it == one);
            if !is_there && runs::of_host(&site, one).await.map_err(refused)?.is_some() {
                found.push(host(one));
            }
        }
        [from, to] => {
            let ways = like(from).into_iter().flat_map(|from| like(to).into_iter().map(move |to| (from, to)));
            found.extend(ways.filter(|(from, to)| from != to).take(100).map(|(from, to)| path(from, to)));
            let between = runs::between(&site, [from, to]);
            if found.is_empty() && between.await.map_err(refused)?.is_some_and(|it| it.total > 0) {
                found.push(path(from, to));
            }
        }
        _ => {}
    }
    if let Some(id) = runs::named(&site, &asked).await.map_err(refused)? {
        found.push((format!("run {id}"), web::address("run", &[("id", &id)])));
    }
    // A host that is called just so.
    let exact = found.iter().find(|(words, _)| *words == format!("host {asked}"));
    match (exact, &found[..]) {
        (Some((_, only)), _) | (None, [(_, only)]) => Ok(to(only)),
        (None, _) => {
            let name = site.source.name();
            Ok(page(web::found(&reader(&name, &visitor), &asked, &found)))
        }
    }
}

/// The last test of this host, and a form for another one.
pub(super) async fn test(State(site): State<Arc<Site>>, visitor: Visitor, words: Words) -> Shown {
    let live = site.source.tests().ok_or_else(|| refusal(&site, &visitor, &Refused::not_found("test")))?;
    let ends = site.source.ends().await.map_err(|it| refusal(&site, &visitor, &it))?;
    let name = site.source.name();
    Ok(page(web::live_test(&reader(&name, &visitor), live.last().as_ref(), &ends, words.get("to"))))
}

/// What the test says after a number of lines; a browser that lost the connection names the last one that it has.
pub(super) async fn events(
    State(site): State<Arc<Site>>,
    visitor: Visitor,
    headers: HeaderMap,
    words: Words,
) -> Result<Response<Body>, Refused> {
    let live = site.source.tests().ok_or_else(|| Refused::not_found("test"))?;
    let last = headers.get("last-event-id").and_then(|it| it.to_str().ok()?.parse().ok());
    let after: u64 = last.or_else(|| words.number("after")).unwrap_or(0);
    let of = site.clone();
    let lives = move || !visitor.has_session || of.gate.lives(&headers, clock::now());
    let after = usize::try_from(after).unwrap_or(usize::MAX);
    live.events(words.number("began").unwrap_or(0), after, lives)
}

/// Does what a form asks for. It shows the key of its session, so no other site can have sent it.
pub(super) async fn act(State(site): State<Arc<Site>>, visitor: Visitor, headers: HeaderMap, body: Body) -> Shown {
    let refused = |it: Refused| refusal(&site, &visitor, &it);
    let words = form(body).await.map_err(refused)?;
    if is_foreign(&headers) || !visitor.is_own(words.get("key")) {
        return Err(refused(Refused::new(Reason::NotAllowed, "the form is not of this session; load the page again")));
    }
    if !visitor.known.may_change {
        return Err(refused(Refused::new(Reason::NotAllowed, "this token shows the page and changes nothing")));
    }
    let for_ms = words.number("hours").unwrap_or(1).clamp(1, 24 * 7) * HOUR_MS;
    let short = |key: &str| words.get(key).trim().chars().take(300).collect::<String>();
    let what = Action::ALL.into_iter().find(|it| it.word() == words.get("what"));
    let who: String = short("who").chars().take(60).collect();
    let ask = match (what, words.number("incident")) {
        (Some(Action::Acknowledge), Some(incident)) if !who.is_empty() => Ask::Acknowledge { incident, who },
        (Some(Action::Mute), _) if !short("element").is_empty() => Ask::Mute { element: short("element"), for_ms },
        (Some(Action::Unmute), _) if !short("element").is_empty() => Ask::Mute { element: short("element"), for_ms: 0 },
        (Some(Action::Pause), _) => Ask::Pause { for_ms },
        (Some(Action::Resume), _) => Ask::Pause { for_ms: 0 },
        (Some(Action::Test), _) if !short("to").is_empty() => {
            Ask::Test { from: short("from"), to: short("to"), down: words.get("down") == "1" }
        }
        (Some(Action::Stop), _) => Ask::Stop { began_unix_ms: words.number("began").unwrap_or(0) },
        (Some(Action::Undo), _) if !short("change").is_empty() => Ask::Undo { change: short("change") },
        _ => return Err(refused(Refused::bad("the form lacks something"))),
    };
    let next = match &ask {
        Ask::Test { from, to, .. } if site.source.tests().is_none() => {
            web::address("path", &[("from", from), ("to", to)])
        }
        Ask::Test { .. } | Ask::Stop { .. } => web::address("test", &[]),
        Ask::Undo { .. } => web::address("host", &[("name", &site.source.name())]),
        _ => web::AT.to_owned(),
    };
    let done = site.source.act(visitor.clone(), ask).await.map_err(refused)?;
    site.gate.say(&headers, &done);
    site.forget();
    Ok(to(&next))
}
