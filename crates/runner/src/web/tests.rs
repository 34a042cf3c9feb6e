//! The page as a browser that means no good meets it.

use super::gate::{Gate, Known, Visitor};
use super::site::Site;
use super::source::{Ask, Now, Soon, Source};
use super::*;
use crate::lock;
use crate::server::rights::Caller;
use hyper_util::service::TowerToHyperService;
use narrows_model::run::grid::{CellState, Grid, GridCell, GridGroup, GridMetric};
use narrows_render::web::{Front, Trouble};
use narrows_wire::api::Reason;
use narrows_wire::token::Secret;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Mutex;

const HOSTILE: &str = "<img src=x onerror=alert(1)>\"'";

/// A fleet of two hosts with hostile names, which notes what it is asked for, and who came.
struct Fake(Arc<Mutex<Vec<Ask>>>, Entries);

type Entries = Arc<Mutex<Vec<Result<String, Reason>>>>;

impl Source for Fake {
    fn name(&self) -> String {
        HOSTILE.to_owned()
    }

    fn now(&self) -> Soon<'_, Now> {
        let why = HOSTILE.to_owned();
        let cell = GridCell { state: CellState::Failed, value: None, expected: None, at_unix_ms: Some(1), why };
        let hosts = vec![HOSTILE.to_owned(), "b".to_owned()];
        let groups = vec![GridGroup { name: HOSTILE.to_owned(), hosts: [0, 2] }];
        let grid = Grid { metric: GridMetric::Goodput, hosts, groups, cells: BTreeMap::from([([0, 1], cell)]) };
        let trouble =
            Trouble { number: Some(1), element: HOSTILE.to_owned(), says: HOSTILE.to_owned(), ..Trouble::default() };
        let front = Front { word: "BAD", troubles: vec![trouble; 300], pauses: true, ..Front::default() };
        Box::pin(async { Ok(Now { front, grids: vec![grid], status: None }) })
    }

    fn note_entry(&self, _: Option<IpAddr>, entry: Result<&str, (Reason, &str)>) {
        lock(&self.1).push(entry.map(str::to_owned).map_err(|(reason, _)| reason));
    }

    fn act(&self, _: Visitor, ask: Ask) -> Soon<'_, String> {
        lock(&self.0).push(ask);
        Box::pin(async { Ok(String::new()) })
    }
}

/// The page, and what was asked of it.
struct Browser {
    router: Router,
    asked: Arc<Mutex<Vec<Ask>>>,
    entries: Entries,
    _store: tempfile::TempDir,
}

struct Got {
    status: u16,
    headers: axum::http::HeaderMap,
    text: String,
}

impl Browser {
    fn new() -> Self {
        let (asked, entries) = (Arc::<Mutex<Vec<Ask>>>::default(), Entries::default());
        // 1: users, 2: readers.
        let find = |shown: &Secret| {
            let first = shown.bytes()[0];
            [1, 2].contains(&first).then(|| Known { name: first.to_string(), may_change: first == 1 })
        };
        let store = tempfile::tempdir().expect("a directory");
        let spec = PageSpec { store: store.path().join("runs.db"), kinds: crate::stored::OWN, proxy: None };
        let gate = Gate::new("a site", Box::new(find), None).expect("a gate");
        let site = Site::new(gate, Box::new(Fake(asked.clone(), entries.clone())), &spec);
        Self { router: router(Arc::new(site)), asked, entries, _store: store }
    }

    async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Got {
        let mut request = hyper::Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut request = request.body(Body::from(body.to_owned())).expect("a request");
        let address = Some(IpAddr::from([192, 0, 2, 1]));
        request.extensions_mut().insert(Caller { address, pending: None });
        let service = TowerToHyperService::new(self.router.clone());
        let answer = hyper::service::Service::call(&service, request).await.expect("an answer");
        let (parts, body) = answer.into_parts();
        let text = axum::body::to_bytes(body, 1 << 20).await.expect("a body");
        let text = String::from_utf8(text.to_vec()).expect("text");
        Got { status: parts.status.as_u16(), headers: parts.headers, text }
    }

    /// Logs in; the cookie, and the key of forms where there are any.
    async fn enter(&self, first: u8) -> (String, Option<String>) {
        let mut bytes = [0; 24];
        bytes[0] = first;
        let token = format!("token=narrows1.x.{}&next=/web/runs", Secret::new(bytes).reveal());
        let got = self.send("POST", "/web/login", &[], &token).await;
        assert_eq!(got.status, 303);
        assert_eq!(got.headers["location"], "/web/runs");
        let cookie = got.headers["set-cookie"].to_str().expect("text").split(';').next().unwrap_or_default().to_owned();
        let front = self.send("GET", "/web/", &[("cookie", &cookie)], "").await;
        assert_eq!(front.status, 200);
        // That of the last form is of an action, unless the reader has none.
        let key = front.text.rsplit("name=\"key\" value=\"").next().filter(|_| front.text.contains("name=\"what\""));
        (cookie, key.and_then(|it| it.split('"').next()).map(str::to_owned))
    }
}

const PAGES: [&str; 11] = [
    "/web/", "/web/grid.json", "/web/grid.json?of=0-0", "/web/table", "/web/paths.csv", "/web/runs", "/web/search?q=x",
    "/web/host?name=b", "/web/run?id=1", "/web/status.json", "/web/path?from=a&to=b",
];

#[tokio::test]
async fn nobody_sees_anything_without_a_session_and_every_answer_has_the_policy() {
    let browser = Browser::new();
    for page in PAGES {
        for cookie in ["", "__Host-narrows=", "__Host-narrows=AAAA"] {
            let got = browser.send("GET", page, &[("cookie", cookie)], "").await;
            assert_eq!((got.status, got.text.as_str()), (303, ""), "{page}");
            assert!(got.headers["location"].to_str().expect("text").starts_with("/web/login?next=%2Fweb%2F"), "{page}");
        }
    }
    for page in ["/web/login", "/web/page.css", "/web/page.js", "/web/", "/"] {
        let headers = browser.send("GET", page, &[], "").await.headers;
        let policy = headers["content-security-policy"].to_str().expect("text");
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        assert_eq!(headers["x-content-type-options"], "nosniff", "{page}");
        assert_eq!(headers["referrer-policy"], "no-referrer", "{page}");
    }
}

#[tokio::test]
async fn a_change_needs_the_users_token_and_the_key_of_the_session() {
    let browser = Browser::new();
    let (cookie, key) = browser.enter(1).await;
    let key = key.expect("a key");
    let act = async |cookie: &str, key: &str, more: &[(&str, &str)]| {
        let headers = [&[("cookie", cookie)], more].concat();
        let form = format!("key={key}&what=acknowledge&incident=1&who=ada");
        browser.send("POST", "/web/do", &headers, &form).await.status
    };
    assert_eq!(act("", &key, &[]).await, 303, "without a session");
    assert_eq!(act(&cookie, "", &[]).await, 403);
    assert_eq!(act(&cookie, "x", &[]).await, 403);
    assert_eq!(act(&cookie, &key, &[("sec-fetch-site", "cross-site")]).await, 403);
    assert_eq!(act(&cookie, &key, &[("sec-fetch-site", "same-site")]).await, 403);
    let (reader, none) = browser.enter(2).await;
    assert_eq!((none, act(&reader, &key, &[]).await), (None, 403), "another session's key");
    assert_eq!(lock(&browser.asked).len(), 0);
    assert_eq!(act(&cookie, &key, &[("sec-fetch-site", "same-origin")]).await, 303);
    assert_eq!(*lock(&browser.asked), [Ask::Acknowledge { incident: 1, who: "ada".to_owned() }]);
    for page in ["/web/do", "/web/logout"] {
        assert_eq!(browser.send("GET", page, &[("cookie", &cookie)], "").await.status, 405, "a link changes nothing");
    }
    let out = browser.send("POST", "/web/logout", &[("cookie", &cookie)], &format!("key={key}")).await;
    assert_eq!((out.status, act(&cookie, &key, &[]).await), (303, 303));
    assert_eq!(lock(&browser.asked).len(), 1);
}

#[tokio::test]
async fn who_comes_and_who_is_not_let_in_is_noted() {
    let browser = Browser::new();
    let wrong = format!("token={}", Secret::new([9; 24]).reveal());
    for status in [403, 403, 403, 403, 403, 429] {
        assert_eq!(browser.send("POST", "/web/login", &[], &wrong).await.status, status);
    }
    browser.enter(2).await;
    let wanted = [vec![Err(Reason::WrongToken); 5], vec![Err(Reason::Busy), Ok("2".to_owned())]].concat();
    assert_eq!(*lock(&browser.entries), wanted);
}

#[tokio::test]
async fn names_and_words_of_others_are_text_and_a_flood_of_them_is_cut() {
    let browser = Browser::new();
    let (cookie, _) = browser.enter(1).await;
    let asked = "%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E";
    for page in [
        "/web/".to_owned(),
        "/web/table".to_owned(),
        "/web/table?of=0-0".to_owned(),
        format!("/web/search?q={asked}"),
        format!("/web/host?name={asked}"),
        format!("/web/run?id={asked}"),
        format!("/web/runs?host={asked}"),
        format!("/web/path?from={asked}&to={asked}&hours={asked}"),
        format!("/web/login?next={asked}"),
    ] {
        let got = browser.send("GET", &page, &[("cookie", &cookie)], "").await;
        assert!(!got.text.contains("<img") && got.text.len() < 200 << 10, "{page}: {}", got.text.len());
        assert_eq!(got.headers["content-type"], "text/html; charset=utf-8", "{page}");
    }
    let long = browser.send("POST", "/web/login", &[], &"x".repeat(10 << 20)).await;
    assert_eq!(long.status, 400);
    let far = format!("token={}&next=//evil.example/", Secret::new([1; 24]).reveal());
    assert_eq!(browser.send("POST", "/web/login", &[], &far).await.headers["location"], "/web/");
    let many = format!("/web/grid.json?of={}", vec!["0-0"; 5_000].join(","));
    assert!(browser.send("GET", &many, &[("cookie", &cookie)], "").await.text.len() < 64 << 10);
}
