//! What somebody can do who has the token of one host's agent: nothing to the tests of others.

use super::*;
use narrows_model::run::fleet::FleetPoint;
use narrows_wire::version::{PROTOCOL_HEADER, protocol_header};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

/// A request as it is on the line, over TLS, and all of the answer. `line`: `POST /path`.
pub(super) fn http(to: &TargetSpec, line: &str, headers: &[(&str, &str)], body: &[u8]) -> String {
    let at: SocketAddr = to.asked.parse().expect("an address");
    let config = crate::remote::any_key(&[b"http/1.1"]).expect("TLS");
    let name = rustls::pki_types::ServerName::from(at.ip());
    let tls = rustls::ClientConnection::new(Arc::new(config), name).expect("TLS");
    let tcp = TcpStream::connect_timeout(&at, Duration::from_secs(5)).expect("a connection");
    tcp.set_read_timeout(Some(Duration::from_secs(60))).expect("a limit");
    let mut stream = rustls::StreamOwned::new(tls, tcp);
    let secret = to.token.as_ref().map(|it| it.secret.reveal()).unwrap_or_default();
    let mut head = format!("{line} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
    let own = [("Authorization", format!("Bearer {secret}")), (PROTOCOL_HEADER, protocol_header(4, "1"))];
    let own = own.iter().map(|(name, value)| (*name, value.as_str()));
    for (name, value) in own.chain(headers.iter().copied()) {
        head += &format!("{name}: {value}\r\n");
    }
    // What is refused early is not read to its end.
    let _ = stream.write_all(&[head.as_bytes(), b"\r\n", body].concat());
    let mut answer = Vec::new();
    let _ = stream.take(16 << 20).read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

const IS_DONE: &str = "HTTP/1.1 200";

/// What nobody else finds.
const FORGED_BPS: f64 = 6.66e8;

fn forged(order: &Order) -> Vec<Outcome> {
    let why = || "forged".to_owned();
    let all = match order.what {
        What::Probe { .. } => {
            let path = MeshPath { rtt_us: Some([666.0; 3]), packets: Some([9, 9, 0]), ..MeshPath::default() };
            vec![Found::Probe(path), Found::Probe(MeshPath { remarks: vec![why()], ..MeshPath::default() })]
        }
        _ => vec![
            Found::Load(MeshState::Measured { goodput_bps: FORGED_BPS, retransmits: None, busy: [None; 2] }),
            Found::Load(MeshState::Failed(why())),
            Found::Load(MeshState::Unreachable(why())),
            Found::Diagnosis(Ok(why())),
        ],
    };
    all.into_iter().map(|found| Outcome { ticket: order.ticket.clone(), found }).collect()
}

/// What was found between b and c, without anything that a said.
fn between(running: &Running) -> Vec<FleetPoint> {
    let hour = Duration::from_secs(3_600);
    let ways = [["b", "c"], ["c", "b"]].map(|[from, to]| history(&running.users, from, to, hour).expect("a series"));
    let points: Vec<FleetPoint> = ways.into_iter().flat_map(|it| it.points).collect();
    for point in &points {
        assert!(point.goodput_bps.is_none_or(|it| it == 1e9), "{point:?}");
        assert!(point.rtt_us.is_none_or(|it| it == [1.0; 3]) && point.diagnosis.is_none(), "{point:?}");
        assert!(!format!("{point:?}").contains("forged"), "{point:?}");
    }
    points
}

#[test]
fn a_stolen_token_reports_nothing_for_others_and_theirs_counts() {
    let place = tempfile::tempdir().expect("a directory");
    let state = place.path();
    let running = run(state, None);
    let mut all = agents(state, &running.users.asked);
    together(&mut all);
    ask(&running.users, &ALL).expect("planned");
    // A load and a probe of b and c stay in the hands of who has them.
    let (until, mut held) = (clock::now() + COMES, Vec::<(usize, Order)>::new());
    let is_probe = |order: &Order| matches!(order.what, What::Probe { .. });
    while [true, false].iter().any(|probe| !held.iter().any(|(_, order)| is_probe(order) == *probe)) {
        for (nth, reply) in together(&mut all).into_iter().enumerate() {
            for order in reply.orders {
                if [&order.ticket.from, &order.ticket.to].iter().any(|host| *host == "a") {
                    all[nth].ends(&order);
                } else if all[nth].held.insert(order.ticket.clone()) {
                    held.push((nth, order));
                }
            }
        }
        assert!(clock::now() < until, "{held:?}");
    }
    assert!(held.iter().all(|(nth, order)| *nth > 0 && order.ticket.fence > 0), "{held:?}");
    let before = between(&running).len();
    for (_, order) in &held {
        all[0].poll.outcomes.extend(forged(order));
        // They need not come again, which is all that becomes of them.
        assert!(!all[0].steady().taken.is_empty());
    }
    assert_eq!(between(&running).len(), before, "nothing of theirs is over");
    let seen = status(&running.users).expect("a status");
    assert!(seen.tests.iter().all(|it| it.failed == 0) && !format!("{seen:?}").contains("forged"), "{seen:?}");
    for (nth, order) in &held {
        all[*nth].ends(order);
    }
    while between(&running).len() < before + held.len() {
        together(&mut all);
        assert!(clock::now() < until, "their own results count: {:?}", between(&running));
    }
    let count = between(&running).len();
    for (_, order) in &held {
        all[0].poll.outcomes.extend(forged(order));
        all[0].steady();
    }
    assert!(between(&running).len() >= count, "what is over stays as it is");
    let seen = status(&running.users).expect("a status");
    assert!(seen.tests.iter().all(|it| it.failed == 0) && !format!("{seen:?}").contains("forged"), "{seen:?}");
}

#[test]
fn a_stolen_token_polls_for_no_other_host_whatever_the_path_and_the_headers_say() {
    let place = tempfile::tempdir().expect("a directory");
    let state = place.path();
    let running = run(state, None);
    let mut all = agents(state, &running.users.asked);
    together(&mut all);
    let thief = target(&running.users.asked, token(state, "a"));
    let mut poll = all[0].poll.clone();
    poll.agent.version = "forged".to_owned();
    let body = serde_json::to_vec(&poll).expect("JSON");
    let about = |headers: &[(&str, &str)], line: &str| http(&thief, line, headers, &body);
    for line in [
        "POST /v1/fleet/poll/b",
        "POST /v1/fleet/b/poll",
        "POST /v1/fleet/join/b/192.0.2.2",
        "POST /v1/fleet/join/a/192.0.2.2",
        "POST /v1/fleet/join/b/-",
        "POST /v1/fleet/join/../poll/b",
        "PUT /v1/fleet/poll",
    ] {
        let answer = about(&[("Host", "fleet")], line);
        assert!(answer.starts_with("HTTP/1.1 4"), "{line}: {answer}");
    }
    let version = |host: usize| {
        let seen = status(&running.users).expect("a status");
        (seen.hosts[host].version.clone().unwrap_or_default(), seen.hosts[host].address.clone().unwrap_or_default())
    };
    let own = ("1".to_owned(), "127.0.0.1".to_owned());
    assert_eq!([version(0), version(1), version(2)], [own.clone(), own.clone(), own.clone()]);
    // It is a whatever else it says.
    let headers = [
        ("Host", "b"),
        ("X-Host", "b"),
        ("X-Forwarded-For", "192.0.2.2"),
        ("X-Real-IP", "192.0.2.2"),
        ("Forwarded", "for=192.0.2.2"),
        ("From", "b"),
        ("X-Forwarded-User", "b"),
    ];
    let answer = about(&headers, "POST /v1/fleet/poll?host=b&name=b");
    assert!(answer.starts_with(IS_DONE), "{answer}");
    assert_eq!(version(0), ("forged".to_owned(), own.1.clone()));
    assert_eq!([version(1), version(2)], [own.clone(), own]);
    // Nor is it a user or a scraper.
    let command = serde_json::to_vec(&Command::Drain { host: "b".to_owned(), back: false }).expect("JSON");
    for (line, body) in [("POST /v1/fleet/command", command.as_slice()), ("GET /metrics", b"")] {
        let answer = http(&thief, line, &[("Host", "fleet")], body);
        assert!(answer.starts_with("HTTP/1.1 4"), "{line}: {answer}");
    }
}
