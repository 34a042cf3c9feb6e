//! Results of a hostile agent: they harm neither the controller, nor the tests of others, nor who reads them.

use super::super::requests::asked;
use super::stolen::http;
use super::*;
use narrows_fleet::protocol::{Clock, OUTCOMES_MAX};
use narrows_model::run::fleet::{FleetSeries, FleetSettings};
use narrows_model::run::grid::GridMetric;
use narrows_model::run::mesh::OneWay;
use narrows_render::{Document, Format, Style, fleet_settings, web};
use narrows_wire::token::Secret;
use std::collections::BTreeMap;

/// A title and a page for a terminal, a script for a browser, a statement for a database, a formula for a spreadsheet, another direction.
const WORDS: &str = "\u{1b}]0;mine\u{7}\u{1b}[2J<script>alert(1)</script>\"'); DROP TABLE fleet_tests; --\u{202e}";

fn words() -> String {
    WORDS.to_owned()
}

fn measured(goodput_bps: f64) -> Found {
    Found::Load(MeshState::Measured { goodput_bps, retransmits: Some(u64::MAX), busy: [Some(1e300), Some(-3.0)] })
}

/// Of these nothing can be, so that nothing is stored.
fn impossible(order: &Order) -> Vec<Found> {
    let probe = Found::Probe(MeshPath::default());
    match order.what {
        What::Probe { .. } => vec![measured(1e9), Found::Diagnosis(Ok(words()))],
        _ => [1e300, f64::MAX, -1.0, -1e300, 1e14].map(measured).into_iter().chain([probe, NOT_MADE]).collect(),
    }
}

const NOT_MADE: Found = Found::Load(MeshState::NotMade);

/// What an agent may say, as badly as it can.
fn hostile(order: &Order, nth: usize) -> Found {
    if matches!(order.what, What::Probe { .. }) {
        let hop = ["192.0.2.254", WORDS, "2001:db8::1", "999.1.1.1"].map(str::to_owned);
        return Found::Probe(MeshPath {
            from: usize::MAX,
            to: usize::MAX,
            rtt_us: Some([[1e300; 3], [-1.0; 3], [1.0, 1e8, 1e8]][nth % 3]),
            packets: Some([[u64::MAX, 1, 1], [1, u64::MAX, u64::MAX], [999_999, 999_999, 0]][nth % 3]),
            one_way: Some(OneWay { median_us: [1e300, -1e300], error_us: 1e300 }),
            mtu_bytes: Some([0, u32::MAX, 1_500][nth % 3]),
            hops: hop.into_iter().cycle().take(2_000).collect(),
            remarks: vec![WORDS.repeat(20); 100],
        });
    }
    match nth % 4 {
        0 => Found::Load(MeshState::Failed(WORDS.repeat(1_000))),
        1 => Found::Diagnosis(Ok(words())),
        2 => Found::Diagnosis(Err(words())),
        _ => Found::Load(MeshState::Unreachable(words())),
    }
}

/// What it says of itself; another one each time.
fn describe(poll: &mut Poll, nth: u64) {
    // Without control characters, which make a poll invalid.
    let word = "\"}<script>alert(1)</script>\\'";
    (poll.agent.version, poll.agent.fingerprint) = (word.to_owned(), word.to_owned());
    (poll.agent.port, poll.agent.stamp) = (0, 0);
    let at_unix_ms = if nth.is_multiple_of(2) { u64::MAX } else { 0 };
    poll.clock = Some(Clock { at_unix_ms, error_us: Some(u64::MAX) });
    let setting = |of: u64| (format!("<script>alert(1)</script>{of}"), format!("{nth}{WORDS}"));
    poll.settings = Settings { sum: nth, all: Some((0..4_000).map(setting).collect::<BTreeMap<_, _>>()) };
}

/// No reader's program obeys what is shown: no control characters, and in a page no element.
fn is_harmless(what: &str, shown: &str, is_page: bool) {
    let wrong = shown.chars().find(|c| c.is_control() && !"\n\r\t".contains(*c) || *c == '\u{202e}');
    assert!(wrong.is_none(), "{what} has {wrong:?}");
    assert!(!is_page || !shown.contains("<script>alert"), "{what} has a script");
}

fn documents<D: Document>(what: &str, document: &D) {
    for format in D::formats() {
        let shown = document.write(format, Style::default()).expect("written").expect("a format of it");
        is_harmless(&format!("{what} as {format:?}"), &shown, format == Format::Html);
    }
}

fn series(running: &Running, from: &str, to: &str) -> FleetSeries {
    history(&running.users, from, to, Duration::from_secs(3_600)).expect("a series")
}

/// Goes on until so many tests of b and c are over; a does its worst with its own.
fn go_on(running: &Running, all: &mut [Stub], said: &mut usize, until_done: usize) {
    let (until, mut done) = (clock::now() + COMES, 0);
    ask(&running.users, &ALL).expect("planned");
    while done < until_done || all[1..].iter().any(|it| !it.poll.outcomes.is_empty()) {
        for (nth, reply) in together(all).into_iter().enumerate() {
            for order in reply.orders {
                if nth > 0 {
                    let is_new = all[nth].ends(&order);
                    let is_theirs = [&order.ticket.from, &order.ticket.to].iter().all(|host| *host != "a");
                    done += usize::from(is_new && is_theirs);
                } else if all[0].done.insert(order.ticket.clone()) {
                    let mut found = impossible(&order);
                    found.push(hostile(&order, *said));
                    *said += 1;
                    let ticket = || order.ticket.clone();
                    let sql = Ticket { mesh: words(), from: words(), ..ticket() };
                    all[0].poll.outcomes.push(Outcome { ticket: sql, found: hostile(&order, 0) });
                    let outcomes = found.into_iter().map(|found| Outcome { ticket: ticket(), found });
                    all[0].poll.outcomes.extend(outcomes);
                }
            }
            if nth == 0 {
                let again = all[0].poll.settings.sum + 1;
                describe(&mut all[0].poll, again);
            }
        }
        assert!(clock::now() < until, "{:?}", status(&running.users).map(|it| it.tests));
    }
}

/// Messages that are too large, or are none.
fn flood(running: &Running, state: &Path, own: &mut Stub) {
    let mut many = own.poll.clone();
    let tests = status(&running.users).expect("a status").tests;
    let test = tests.into_iter().map(|it| it.test).find(|it| it.starts_with("load")).expect("a test");
    let [mesh, from, to] = ["all", "a", "b"].map(str::to_owned);
    let ticket =
        |slot| Ticket { mesh: mesh.clone(), test: test.clone(), slot, from: from.clone(), to: to.clone(), fence: 1 };
    many.settings = Settings::default();
    many.outcomes = (0..10_000).map(|slot| Outcome { ticket: ticket(slot), found: measured(777.0) }).collect();
    many.working = (0..10_000).map(ticket).collect();
    let reply = own.transport.exchange(&many).expect("a reply");
    assert_eq!(reply.taken.len(), OUTCOMES_MAX, "the others wait");
    let mut large = own.poll.clone();
    large.agent.version = "x".repeat(5 << 20);
    own.transport.exchange(&large).expect_err("it is too large");
    let mut seen = own.poll.clone();
    seen.agent.version = words();
    own.transport.exchange(&seen).expect_err("no program has such a version");
    let thief = target(&running.users.asked, token(state, "a"));
    let mut plain = own.poll.clone();
    plain.settings = Settings::default();
    plain.outcomes = vec![Outcome { ticket: ticket(0), found: measured(123_456.0) }];
    let text = serde_json::to_string(&plain).expect("JSON");
    let with = |word: &str| text.replace("123456.0", word).into_bytes();
    assert_ne!(with("1.0"), with("2.0"));
    let deep = "[".repeat(1 << 20).into_bytes();
    for (what, body) in ["NaN", "Infinity", "-Infinity", "1e999", "null"]
        .map(|word| (word, with(word)))
        .into_iter()
        .chain([("deep", deep), ("none", Vec::new()), ("bytes", vec![0xff; 1 << 10])])
    {
        let answer = http(&thief, "POST /v1/fleet/poll", &[("Host", "fleet")], &body);
        assert!(answer.starts_with("HTTP/1.1 4"), "{what}: {answer}");
        clock::sleep(APART);
    }
}

#[test]
fn hostile_results_harm_neither_readers_nor_the_tests_of_others() {
    let place = tempfile::tempdir().expect("a directory");
    let state = place.path();
    let running = run(state, None);
    let mut all = agents(state, &running.users.asked);
    together(&mut all);
    let mut said = 0;
    // Two loads and a probe of b and c each time.
    go_on(&running, &mut all, &mut said, 3);
    go_on(&running, &mut all, &mut said, 3);
    assert!(said >= 4, "{said} results");
    flood(&running, state, &mut all[0]);
    let before = series(&running, "b", "c").points.len();
    go_on(&running, &mut all, &mut said, 3);

    let seen = status(&running.users).expect("a status");
    assert!(seen.trouble.is_none(), "{:?}", seen.trouble);
    assert_eq!(seen.hosts[0].version.as_deref(), Some("\"}<script>alert(1)</script>\\'"));
    documents("the status", &seen);
    for [from, to] in [["a", "b"], ["b", "a"], ["a", "c"], ["b", "c"]] {
        documents("a series", &series(&running, from, to));
    }
    let raw = serde_json::to_string(&seen).expect("JSON");
    is_harmless("the status", &raw, false);
    let scraper = token_of(&state.join("fleet.toml"), Holder::Scraper, state).expect("a token");
    let secret = Secret::from_bearer(&format!("Bearer {scraper}")).expect("a secret");
    let fingerprint = token(state, "a").fingerprint;
    let scraper = target(&running.users.asked, Token { fingerprint, secret });
    let metrics = http(&scraper, "GET /metrics", &[("Host", "fleet")], b"");
    assert!(metrics.starts_with("HTTP/1.1 200") && metrics.contains("narrows_fleet_store_up 1"), "{metrics}");
    is_harmless("metrics", &metrics, false);
    let reader = web::Reader { site: "fleet", name: "reader", key: Some("key"), out: None, said: None };
    let front = web::of_fleet(&seen);
    for metric in GridMetric::ALL {
        let grid = narrows_views::grid::of_mesh(&seen.mesh, metric, None);
        is_harmless("the page", &web::front(&reader, &front, &grid, &GridMetric::ALL), true);
    }
    let settings = |host: &str| {
        let command = Command::Settings { host: host.to_owned() };
        let known: Option<FleetSettings> = asked(&running.users, &command).expect("settings");
        fleet_settings::page(host, Ok(&known.expect("a host of it")))
    };
    assert!(settings("a").contains("2000 more are not shown"), "{}", settings("a"));
    assert!(settings("b").contains("b has not sent its settings yet"), "{}", settings("b"));
    let of_a = web::Host {
        name: "a",
        of_fleet: seen.hosts.first(),
        troubles: front.troubles.iter().collect(),
        connections: None,
        settings: Some(settings("a")),
        runs: None,
        changes: Vec::new(),
        paths: Vec::new(),
    };
    is_harmless("the page of the host", &web::host(&reader, &of_a), true);

    // What b and c find is theirs, and goes on.
    let after = series(&running, "b", "c").points;
    assert!(after.len() > before, "{before} before, {after:?}");
    assert!(after.iter().all(|it| it.failure.is_none()), "{after:?}");
    assert!(after.iter().all(|it| it.goodput_bps.is_none_or(|bps| bps == 1e9)), "{after:?}");
    // Of a only what can be is stored.
    for it in series(&running, "a", "b").points.iter().chain(&series(&running, "a", "c").points) {
        assert!(it.goodput_bps.is_none_or(|bps| bps == 1e9), "{it:?}");
        assert!(it.hops.iter().all(|hop| hop.parse::<std::net::IpAddr>().is_ok()) && it.hops.len() <= 64, "{it:?}");
        assert!(it.failure.as_ref().is_none_or(|why| why.chars().count() <= 300), "{it:?}");
    }
    println!("accused by hostile results: {:?}; {:?}", seen.incidents, seen.mesh.headline);
}
