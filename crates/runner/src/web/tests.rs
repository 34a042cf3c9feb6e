//! The page as a browser that means no good meets it.

use super::gate::{Gate, Known, Visitor};
use super::live::Live;
use super::site::Site;
use super::source::{Ask, Now, Soon, Source};
use super::*;
use crate::lock;
use crate::server::rights::Caller;
use crate::stored::{Record as _, Store};
use hyper_util::service::TowerToHyperService;
use narrows_model::Unit;
use narrows_model::run::campaign::{CampaignFactor, CampaignReport, Design, Step};
use narrows_model::run::fleet::FleetMute;
use narrows_model::run::grid::{CellState, Grid, GridCell, GridGroup, GridMetric};
use narrows_model::run::history::{Headline, StoredRun};
use narrows_render::web::{Front, Trouble};
use narrows_views::campaign::{Observed, Planned};
use narrows_wire::api::Reason;
use narrows_wire::token::Secret;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Mutex;

const HOSTILE: &str = "<img src=x onerror=alert(1)>\"'";

/// A fleet of two hosts with hostile names, which notes what it is asked for, and who came, and has tests.
struct Fake(Arc<Mutex<Vec<Ask>>>, Entries, Arc<Live>);

type Entries = Arc<Mutex<Vec<Result<String, Reason>>>>;

impl Source for Fake {
    fn name(&self) -> String {
        HOSTILE.to_owned()
    }

    fn tokens(&self) -> &'static str {
        HOSTILE
    }

    fn now(&self) -> Soon<'_, Now> {
        let why = HOSTILE.to_owned();
        let cell = GridCell { state: CellState::Failed, value: None, expected: None, at_unix_ms: Some(1), why };
        let hosts = vec![HOSTILE.to_owned(), "b".to_owned()];
        let groups = vec![GridGroup { name: HOSTILE.to_owned(), hosts: [0, 2] }];
        let grid = Grid { metric: GridMetric::Goodput, hosts, groups, cells: BTreeMap::from([([0, 1], cell)]) };
        let trouble =
            Trouble { number: Some(1), element: HOSTILE.to_owned(), says: HOSTILE.to_owned(), ..Trouble::default() };
        let mutes = vec![FleetMute { element: HOSTILE.to_owned(), until_unix_ms: 1 }];
        let front = Front { word: "BAD", troubles: vec![trouble; 300], mutes, pauses: true, ..Front::default() };
        Box::pin(async { Ok(Now { front, grids: vec![grid], status: None }) })
    }

    fn note_entry(&self, _: Option<IpAddr>, entry: Result<&str, (Reason, &str)>) {
        lock(&self.1).push(entry.map(str::to_owned).map_err(|(reason, _)| reason));
    }

    fn tests(&self) -> Option<&Arc<Live>> {
        Some(&self.2)
    }

    fn ends(&self) -> Soon<'_, Vec<String>> {
        Box::pin(async { Ok(vec![HOSTILE.to_owned()]) })
    }

    fn changes(&self, _: String) -> Soon<'_, Vec<(String, String)>> {
        Box::pin(async { Ok(vec![(HOSTILE.to_owned(), HOSTILE.to_owned())]) })
    }

    fn act(&self, _: Visitor, ask: Ask) -> Soon<'_, String> {
        lock(&self.0).push(ask);
        Box::pin(async { Ok(format!("done {HOSTILE}")) })
    }
}

/// The page, and what was asked of it.
struct Browser {
    router: Router,
    asked: Arc<Mutex<Vec<Ask>>>,
    entries: Entries,
    live: Arc<Live>,
    store: tempfile::TempDir,
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
        let spec =
            PageSpec { store: store.path().join("runs.db"), kinds: crate::stored::OWN, proxy: None, controls: false };
        let gate = Gate::new("a site", Box::new(find), None).expect("a gate");
        let live = Arc::<Live>::default();
        let site = Site::new(gate, Box::new(Fake(asked.clone(), entries.clone(), live.clone())), &spec);
        Self { router: router(Arc::new(site)), asked, entries, live, store }
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

const PAGES: [&str; 13] = [
    "/web/", "/web/grid.json", "/web/grid.json?of=0-0", "/web/table", "/web/paths.csv", "/web/runs", "/web/search?q=x",
    "/web/host?name=b", "/web/run?id=1", "/web/status.json", "/web/path?from=a&to=b", "/web/test", "/web/test/events",
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
async fn what_is_muted_is_reported_again_by_a_form_of_who_may() {
    let browser = Browser::new();
    let (cookie, key) = browser.enter(1).await;
    let (reader, _) = browser.enter(2).await;
    let front = async |cookie: &str| browser.send("GET", "/web/", &[("cookie", cookie)], "").await.text;
    let (shown, read) = (front(&cookie).await, front(&reader).await);
    let form = "name=\"what\" value=\"unmute\"";
    assert!(shown.contains(form) && shown.contains("Muted"), "{shown}");
    assert!(!read.contains(form) && read.contains("Muted"), "{read}");
    let form = format!("key={}&what=unmute&element=group+west", key.expect("a key"));
    let act = async |cookie: &str| browser.send("POST", "/web/do", &[("cookie", cookie)], &form).await.status;
    assert_eq!((act(&reader).await, act(&cookie).await), (403, 303));
    assert_eq!(*lock(&browser.asked), [Ask::Mute { element: "group west".to_owned(), for_ms: 0 }]);
}

#[tokio::test]
async fn what_an_action_did_is_shown_once_in_its_session_and_by_no_address() {
    let browser = Browser::new();
    let (cookie, key) = browser.enter(1).await;
    let (other, _) = browser.enter(1).await;
    let form = format!("key={}&what=resume", key.expect("a key"));
    assert_eq!(browser.send("POST", "/web/do", &[("cookie", &cookie)], &form).await.status, 303);
    let shows = async |cookie: &str, mode: &str| {
        let headers = [("cookie", cookie), ("sec-fetch-mode", mode)];
        let text = browser.send("GET", "/web/?said=done", &headers, "").await.text;
        assert!(!text.contains("<img"), "{text}");
        text.contains("role=\"status\"") && text.contains("done &lt;img")
    };
    assert!(!shows(&other, "navigate").await, "another session");
    assert!(!shows(&cookie, "cors").await, "the page's script reads what is worst");
    assert!(shows(&cookie, "navigate").await);
    assert!(!shows(&cookie, "navigate").await, "once");
}

#[tokio::test]
async fn all_runs_between_two_hosts_are_counted_and_hosts_of_runs_have_a_page() {
    let browser = Browser::new();
    let run = |nth: u64, server: &str| {
        let run = StoredRun {
            id: format!("{server}{nth}"),
            started_unix_us: nth,
            client: "here".to_owned(),
            server: server.to_owned(),
            ..narrows_views::history::empty("diagnose", Vec::new())
        };
        (run, "run", b"{}".to_vec())
    };
    // Those that are asked for are older than many others of the same host.
    let all = (0..52).map(|nth| run(nth, "far")).chain((100..700).map(|nth| run(nth, "near")));
    let mut store = Store::open(&browser.store.path().join("runs.db")).expect("a store");
    store.put_all(all).expect("runs");
    let (cookie, _) = browser.enter(2).await;
    let get = async |page: &str| browser.send("GET", page, &[("cookie", &cookie)], "").await;
    let path = get("/web/path?from=here&to=far").await.text;
    assert!(path.contains("50 of 52") && path.contains("/web/runs?host=here&amp;peer=far&amp;offset=50"), "{path}");
    let older = get("/web/runs?host=far&peer=here&offset=50").await.text;
    assert!(older.contains("2 of 52") && !older.contains("near"), "{older}");
    assert_eq!((get("/web/host?name=near").await.status, get("/web/host?name=nosuch").await.status), (200, 404));
    assert_eq!(get("/web/search?q=near").await.headers["location"], "/web/host?name=near");
    assert_eq!(get("/web/search?q=here+far").await.headers["location"], "/web/path?from=here&to=far");
}

/// Four blocks of a factor that doubles the goodput.
fn campaign() -> CampaignReport {
    let steps = (1..=8).map(|number| Step { number, block: number.div_ceil(2), host: 0, cell: vec![number % 2] });
    let steps: Vec<Step> = steps.collect();
    let run = |step: &Step| {
        let value = [1e6, 2e6][step.cell[0]] + [0.0, 1e3, 4e3, 2e3][step.block - 1];
        let figure = Ok(Headline::new("goodput up", value, Unit::BitsPerSecond));
        (step.number, Observed { id: HOSTILE.to_owned(), started_unix_us: 0, figure })
    };
    let observed = steps.iter().map(run).collect();
    let planned = Planned {
        name: HOSTILE.to_owned(),
        tag: "campaign:0a".to_owned(),
        hosts: vec!["a".to_owned(), "b".to_owned()],
        factors: vec![CampaignFactor { name: HOSTILE.to_owned(), levels: vec!["off".to_owned(), "on".to_owned()] }],
        design: Design::Full,
        blocks: 4,
        steps,
        better: None,
    };
    narrows_views::campaign::report(&planned, &observed, 0.01)
}

#[tokio::test]
async fn a_campaign_is_listed_with_its_effects_and_has_a_picture_and_files() {
    let (browser, report) = (Browser::new(), campaign());
    let entry = StoredRun { id: "x7kq".to_owned(), tags: vec![report.tag.clone()], ..report.listed() };
    let mut store = Store::open(&browser.store.path().join("runs.db")).expect("a store");
    store.put(&entry, CampaignReport::KIND, &serde_json::to_vec(&report).expect("JSON")).expect("kept");
    let (cookie, _) = browser.enter(2).await;
    let get = async |page: &str| browser.send("GET", page, &[("cookie", &cookie)], "").await;
    let list = get("/web/runs").await.text;
    for words in ["<td>campaign", "a, b", "goodput up mean: 1.50 Mbit/s", "effect: 1 of 1 factor"] {
        assert!(list.contains(words), "{words}: {list}");
    }
    let shown = get("/web/run?id=x7kq").await.text;
    for words in ["<svg", "Main effects", "raises", "run.json?id=x7kq", "run.csv?id=x7kq", "run.svg?id=x7kq"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(!shown.contains("<img"), "{shown}");
    for (form, begins) in [("json", "{"), ("csv", "step,block,host,"), ("svg", "<svg")] {
        let got = get(&format!("/web/run.{form}?id=x7kq")).await;
        assert!(got.status == 200 && got.text.starts_with(begins), "{form}: {}", got.text);
    }
}

#[tokio::test]
async fn a_test_is_watched_line_by_line_and_stopped_by_who_may() {
    let browser = Browser::new();
    let (cookie, key) = browser.enter(1).await;
    let key = key.expect("a key");
    let (cookie, form) = ([("cookie", cookie.as_str())], format!("key={key}&what="));
    let act = async |more: &str| browser.send("POST", "/web/do", &cookie, &format!("{form}{more}")).await.status;
    assert_eq!(act("test").await, 400, "no other end");
    assert_eq!((act("test&to=b&down=1").await, act("stop").await, act("undo&change=7").await), (303, 303, 303));
    let (from, to) = (String::new(), "b".to_owned());
    let asked =
        [Ask::Test { from, to, down: true }, Ask::Stop { began_unix_ms: 0 }, Ask::Undo { change: "7".to_owned() }];
    assert_eq!(*lock(&browser.asked), asked);
    let (reader, _) = browser.enter(2).await;
    for what in ["test&to=b", "stop", "undo&change=7"] {
        let got = browser.send("POST", "/web/do", &[("cookie", &reader)], &format!("{form}{what}")).await;
        assert_eq!((got.status, lock(&browser.asked).len()), (403, 3), "{what} by a reader");
    }
    // One at a time; it is told of line by line while it goes on, and ends when it is stopped.
    let begin = |may_panic: bool| {
        browser.live.begin(HOSTILE.to_owned(), HOSTILE.to_owned(), move |live, stop| {
            assert!(!may_panic, "as a test that goes wrong");
            live.say(&format!("one\n\nevent: end\ndata: {HOSTILE}"));
            while !stop.is_set() {
                narrows_sys::clock::sleep(std::time::Duration::from_millis(5));
            }
            live.say("two");
            ("stopped".to_owned(), Some("x7kq".to_owned()))
        })
    };
    begin(false).expect("none goes on");
    assert!(begin(false).is_err_and(|it| it.sentence().contains("under way")));
    let shown = browser.send("GET", "/web/test", &cookie, "").await.text;
    assert!(shown.contains("data-events=\"/web/test/events?began=") && !shown.contains("<img"), "{shown}");
    let began = browser.live.last().expect("a test").began_unix_ms;
    let events = format!("/web/test/events?began={began}&after=0");
    let stop = async {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        assert!(!browser.live.stop(began + 1), "another one");
        assert!(browser.live.stop(began));
    };
    let (got, ()) = tokio::join!(browser.send("GET", &events, &cookie, ""), stop);
    assert_eq!(got.headers["content-type"], "text/event-stream");
    // Whatever it says is one line of data.
    let lines: Vec<&str> = got.text.split("\n\n").collect();
    assert_eq!((lines.len(), lines[1], lines[2]), (4, "id: 2\ndata: two", "event: end\ndata:"), "{lines:?}");
    assert!(lines[0].starts_with("id: 1\ndata: one  event: end"), "{lines:?}");
    let last = [cookie[0], ("last-event-id", "1")];
    let rest = browser.send("GET", &events, &last, "").await.text;
    assert_eq!(rest, "id: 2\ndata: two\n\nevent: end\ndata:\n\n", "after the line that the browser has");
    let ended = browser.send("GET", "/web/test", &cookie, "").await.text;
    assert!(ended.contains("/web/run?id=x7kq") && !ended.contains("data-events"), "{ended}");
    begin(true).expect("the last one has ended");
    let of_the_first = browser.send("GET", &events, &cookie, "").await.text;
    assert_eq!(of_the_first, "event: end\ndata:\n\n", "the lines of another one are not mixed in");
    while browser.live.last().expect("a test").ended.is_none() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let ended = browser.live.last().and_then(|it| it.ended).expect("one that panics has ended, too");
    assert!(ended.contains("it failed"), "{ended}");
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
async fn what_is_not_there_is_said_on_a_page_that_leads_home() {
    let browser = Browser::new();
    let (cookie, _) = browser.enter(2).await;
    for page in ["/web/nothing", "/web/runs/7", "/nothing", "/nothing/at/all"] {
        let got = browser.send("GET", page, &[("cookie", &cookie)], "").await;
        assert_eq!(
            (got.status, &got.headers["content-type"]),
            (404, &HeaderValue::from_static("text/html; charset=utf-8"))
        );
        assert!(got.text.contains(&format!("there is no page at {page}")), "{}", got.text);
        assert!(got.text.contains("<a href=\"/web/\">Home</a>"), "{}", got.text);
        let stranger = browser.send("GET", page, &[], "").await;
        assert_eq!(stranger.status, 303);
        assert!(stranger.headers["location"].to_str().expect("text").starts_with("/web/login?next="), "{page}");
    }
    for page in ["/web/", "/web/table", "/web/grid.json", "/web/paths.csv"] {
        let of = async |metric: &str| {
            browser.send("GET", &format!("{page}?metric={metric}"), &[("cookie", &cookie)], "").await
        };
        let (known, other) = (of("goodput").await, of("rtt").await);
        let why = "the paths have no metric `rtt` here; there is: goodput";
        assert!((known.status, other.status) == (200, 404) && other.text.contains(why), "{page}: {}", other.text);
    }
}

#[test]
fn the_page_is_announced_where_it_is_bound_or_by_address_and_name() {
    let ip = |word: &str| word.parse::<IpAddr>().expect("an address");
    let at = |bind: Option<&str>, own: Option<&str>| announced(bind.map(ip), own.map(ip), "vm", 7);
    assert_eq!(at(Some("::1"), Some("192.0.2.2")), "its page is at https://[::1]:7/");
    assert_eq!(at(Some("127.0.0.1"), None), "its page is at https://127.0.0.1:7/");
    for all in [None, Some("0.0.0.0"), Some("::")] {
        assert_eq!(at(all, Some("192.0.2.2")), "its page is at https://192.0.2.2:7/ or https://vm:7/");
        assert_eq!(at(all, None), "its page is at https://vm:7/");
    }
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
