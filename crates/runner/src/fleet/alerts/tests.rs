//! Deliveries to targets of this host.

use super::*;
use crate::server::listen::acceptor;
use crate::trust::Identity;
use narrows_sys::net;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::mpsc::{self, RecvTimeoutError};

const LIMIT: Duration = Duration::from_secs(20);
const SOON: Patience = (&[Duration::from_millis(5); 3], LIMIT);

fn began(number: u64) -> Message {
    let [element, says] = ["host b1", "loses 4 % of its probe packets"].map(str::to_owned);
    Message::Began(Incident { number, element, says, since_ms: 0, acknowledged: None, verdict: None, reported: true })
}

fn targets(lines: &[String]) -> Vec<Target> {
    let alert = |line: &String| toml::from_str::<Alert>(line).expect("an alert").target().expect("a target");
    lines.iter().map(alert).collect()
}

fn alerts(lines: &[String]) -> Alerts {
    Alerts::with(targets(lines), "site", None, SOON).expect("alerts")
}

/// Looks until something holds; what was reported meanwhile.
fn until(alerts: &mut Alerts, open: &[&Incident], mut is: impl FnMut(&Alerts, &[String]) -> bool) -> Vec<String> {
    let (mut reported, end) = (Vec::new(), clock::now() + LIMIT);
    loop {
        alerts.look(open, &mut |line| reported.push(line.to_owned()));
        if is(alerts, &reported) {
            return reported;
        }
        assert!(clock::now() < end, "{reported:?}");
        clock::sleep(Duration::from_millis(5));
    }
}

/// A server with these answers, one for each request; the requests come back.
fn server(answers: &'static [&'static str]) -> (u16, mpsc::Receiver<String>) {
    let listener = net::listen(0).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (requests, got) = mpsc::channel();
    std::thread::spawn(move || {
        for answer in answers {
            let (stream, _) = listener.accept().expect("a connection");
            let mut reader = BufReader::new(stream);
            let (mut request, mut length) = (String::new(), 0);
            while !request.ends_with("\r\n\r\n") {
                let from = request.len();
                assert!(reader.read_line(&mut request).expect("a line") > 0, "{request}");
                let line = request[from..].to_ascii_lowercase();
                if let Some(value) = line.strip_prefix("content-length:") {
                    length = value.trim().parse().expect("a length");
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).expect("a body");
            let answer = format!("HTTP/1.1 {answer}\r\ncontent-length: 3\r\n\r\nno\n");
            reader.get_mut().write_all(answer.as_bytes()).expect("sent");
            requests.send(request + &String::from_utf8(body).expect("text")).expect("taken");
        }
    });
    (port, got)
}

fn number(request: &str) -> Option<u64> {
    let (_, body) = request.split_once("\r\n\r\n").expect("a body");
    serde_json::from_str::<serde_json::Value>(body).expect("JSON")["number"].as_u64()
}

#[test]
fn what_fails_for_a_moment_is_sent_again_until_it_was_taken_once() {
    let (port, requests) = server(&["500 Internal Server Error", "200 OK", "204 No Content"]);
    let mut alerts = alerts(&[format!("webhook = 'http://127.0.0.1:{port}/hook?key=secret'")]);
    alerts.send(&began(1));
    alerts.send(&began(2));
    alerts.send_unless_known(&began(1), &[]);
    assert_eq!(alerts.waiting().last(), Some(&(began(2), vec![])));
    let got: Vec<String> = (0..3).map(|_| requests.recv_timeout(LIMIT).expect("a request")).collect();
    assert!(got[0].starts_with("POST /hook?key=secret HTTP/1.1\r\n"), "{}", got[0]);
    assert!(got[0].to_ascii_lowercase().contains(&format!("host: 127.0.0.1:{port}\r\n")), "{}", got[0]);
    assert_eq!(got.iter().map(|request| number(request)).collect::<Vec<_>>(), [Some(1), Some(1), Some(2)]);
    assert_eq!(requests.recv_timeout(LIMIT), Err(RecvTimeoutError::Disconnected));
    let reported = until(&mut alerts, &[], |alerts, _| alerts.trouble().is_none());
    assert!(!reported.iter().any(|line| line.contains("given up")), "{reported:?}");
    until(&mut alerts, &[], |alerts, _| alerts.waiting().is_empty());
}

#[test]
fn each_target_can_be_tried() {
    let (port, requests) = server(&["200 OK"; 2]);
    let mut alerts = alerts(&[format!("webhook = 'http://127.0.0.1:{port}/secret'")]);
    let says = alerts.try_all(7).expect("a target");
    assert!(says.contains(&format!("webhook 127.0.0.1:{port}")) && !says.contains("secret"), "{says}");
    let got: Vec<String> = (0..2).map(|_| requests.recv_timeout(LIMIT).expect("a request")).collect();
    assert!(got.iter().all(|it| it.contains("was asked for")), "{got:?}");
    assert!(Alerts::with(Vec::new(), "site", None, SOON).expect("alerts").try_all(7).is_err());
}

#[test]
fn what_was_handed_over_is_sent_by_somebody_else() {
    const LONG: Patience = (&[Duration::from_millis(300)], LIMIT);
    let (port, requests) = server(&["500 Internal Server Error", "200 OK"]);
    let lines = [format!("webhook = 'http://127.0.0.1:{port}/hook'")];
    let mut alerts = Alerts::with(targets(&lines), "site", None, LONG).expect("alerts");
    alerts.send(&began(1));
    assert_eq!(number(&requests.recv_timeout(LIMIT).expect("a request")), Some(1));
    alerts.hand_over();
    alerts.send(&began(2));
    assert_eq!(number(&requests.recv_timeout(LIMIT).expect("a request")), Some(2));
    until(&mut alerts, &[], |alerts, _| alerts.waiting().is_empty());
}

#[test]
fn who_had_a_message_does_not_get_it_again_after_a_restart_and_a_mended_target_does() {
    let silent = net::listen(0).expect("a port");
    let nowhere = silent.local_addr().expect("an address").port();
    let (port, requests) = server(&["200 OK"; 2]);
    let of = |ports: [u16; 2]| ports.map(|port| format!("webhook = 'http://127.0.0.1:{port}/'"));
    let mut before = alerts(&of([nowhere, port]));
    before.send(&began(1));
    assert_eq!(number(&requests.recv_timeout(LIMIT).expect("a request")), Some(1));
    until(&mut before, &[], |alerts, _| alerts.waiting().first().is_some_and(|(_, had)| had.len() == 1));
    let (message, had) = before.waiting().pop().expect("it waits for the other one");
    let (mended, later) = server(&["200 OK"]);
    let mut after = alerts(&of([mended, port]));
    after.send_unless_known(&message, &had);
    assert_eq!(number(&later.recv_timeout(LIMIT).expect("a request")), Some(1));
    after.send(&began(2));
    assert_eq!(number(&requests.recv_timeout(LIMIT).expect("a request")), Some(2));
}

#[test]
fn a_redirect_is_not_followed_and_what_is_refused_is_given_up_at_once() {
    let (port, requests) = server(&["302 Found\r\nlocation: /elsewhere", "404 Not Found", "200 OK"]);
    let mut alerts = alerts(&[format!("webhook = 'http://127.0.0.1:{port}/secret'")]);
    (1..=3).for_each(|number| alerts.send(&began(number)));
    for expected in 1..=3 {
        let request = requests.recv_timeout(LIMIT).expect("a request");
        assert!(request.starts_with("POST /secret ") && number(&request) == Some(expected), "{request}");
    }
    let is_over = |alerts: &Alerts, lines: &[String]| {
        alerts.trouble().is_none() && lines.iter().any(|line| line.contains("given up"))
    };
    let reported = until(&mut alerts, &[], is_over).join("\n");
    assert!(reported.contains("2 messages for the webhook 127.0.0.1") && reported.contains("404"), "{reported}");
    assert!(!reported.contains("secret"), "{reported}");
}

#[test]
fn a_target_that_says_nothing_holds_up_no_other_and_nobody_waits() {
    let silent = net::listen(0).expect("a port");
    let nowhere = silent.local_addr().expect("an address").port();
    let (port, requests) = server(&["200 OK"; 2]);
    let lines = [nowhere, port].map(|port| format!("webhook = 'http://127.0.0.1:{port}/'"));
    let mut alerts = alerts(&lines);
    let began_at = clock::now();
    (0..2).for_each(|number| alerts.send(&began(number)));
    for expected in 0..2 {
        assert_eq!(number(&requests.recv_timeout(LIMIT).expect("a request")), Some(expected));
    }
    // More than a queue holds, and nobody takes any.
    (0..2_100).for_each(|number| alerts.send(&began(number)));
    assert!(clock::now() < began_at + LIMIT / 2, "it waited");
    until(&mut alerts, &[], |_, lines| lines.iter().any(|line| line.contains("too many messages wait")));
}

#[test]
fn an_alertmanager_hears_again_of_what_is_open() {
    let (port, requests) = server(&["200 OK"]);
    let mut alerts = alerts(&[format!("alertmanager = 'http://127.0.0.1:{port}'")]);
    let Message::Began(open) = began(1) else { panic!("an incident") };
    alerts.look(&[&open], &mut |_| {});
    alerts.look(&[&open], &mut |_| {});
    let request = requests.recv_timeout(LIMIT).expect("a request");
    assert!(request.starts_with("POST /api/v2/alerts ") && request.contains("NarrowsIncident"), "{request}");
    assert_eq!(requests.recv_timeout(LIMIT), Err(RecvTimeoutError::Disconnected));
}

/// A server with a certificate that nobody signed, as long as its runtime lives.
fn tls_server() -> (tokio::runtime::Runtime, u16) {
    let place = tempfile::tempdir().expect("a directory");
    let acceptor = acceptor(&Identity::load_or_make(place.path(), None).expect("a key")).expect("TLS");
    let listener = net::listen(0).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    listener.set_nonblocking(true).expect("not blocking");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    runtime.spawn(async move {
        let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
        while let Ok((stream, _)) = listener.accept().await {
            let _ = acceptor.accept(stream).await;
        }
    });
    (runtime, port)
}

#[test]
fn a_certificate_of_an_unknown_authority_is_refused() {
    let (_runtime, port) = tls_server();
    let target = targets(&[format!("webhook = 'https://127.0.0.1:{port}/'")]);
    let other = tempfile::tempdir().expect("a directory");
    Identity::load_or_make(other.path(), None).expect("another key");
    let tls = Trust::Ca(other.path().join("server.pem")).config(&[]).map(TlsConnector::from).expect("TLS");
    let mut alerts = Alerts::with(target, "site", Some(&tls), (&[], LIMIT)).expect("alerts");
    alerts.send(&began(1));
    let reported = until(&mut alerts, &[], |_, lines| lines.iter().any(|line| line.contains("given up")));
    assert!(reported.iter().any(|line| line.contains("certificate")), "{reported:?}");
}

/// A mail server that takes one mail, which comes back.
fn mail_server() -> (u16, mpsc::Receiver<String>) {
    let listener = net::listen(0).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (mails, got) = mpsc::channel();
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a connection");
        let mut reader = BufReader::new(stream);
        let (mut mail, mut is_mail) = (String::new(), false);
        reader.get_mut().write_all(b"220 mail ready\r\n").expect("sent");
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                break;
            }
            if is_mail && line != ".\r\n" {
                mail += &line;
                continue;
            }
            if is_mail {
                mails.send(std::mem::take(&mut mail)).expect("taken");
            }
            is_mail = line.starts_with("DATA");
            let answer = if is_mail { "354 go on\r\n" } else { "250 yes\r\n" };
            reader.get_mut().write_all(answer.as_bytes()).expect("sent");
        }
    });
    (port, got)
}

#[test]
fn a_mail_has_the_headers_of_a_program_and_no_others() {
    let (port, mails) = mail_server();
    let line =
        format!("smtp = 'smtp://127.0.0.1:{port}'\nfrom = 'n@example.org'\nto = ['a@example.org', 'b@example.org']");
    let mut alerts = Alerts::with(targets(&[line]), "Zürich\r\nBcc: c@example.org", None, SOON).expect("alerts");
    alerts.send(&began(1));
    let mail = mails.recv_timeout(LIMIT).expect("a mail");
    let (headers, text) = mail.split_once("\r\n\r\n").expect("headers");
    for header in ["From: n@example.org", "Auto-Submitted: auto-generated", "MIME-Version: 1.0", "Subject: ", "Date: "]
    {
        assert!(headers.lines().any(|line| line.starts_with(header)), "{header}: {mail}");
    }
    assert!(headers.contains("=?utf-8?b?") && headers.contains(".1.began@example.org>"), "{mail}");
    assert!(!headers.lines().any(|line| line.to_ascii_lowercase().starts_with("bcc")), "{mail}");
    assert!(text.contains("host b1") && mail.lines().all(|line| line.len() < 998 && line.is_ascii()), "{mail}");
    until(&mut alerts, &[], |alerts, _| alerts.trouble().is_none());
}

#[test]
fn a_login_is_sent_over_tls_only_and_its_password_is_nowhere() {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("password");
    narrows_sys::files::write_whole(&file, b"geheim\n", 0o600).expect("a file");
    let line = |url: String, file: &std::path::Path| {
        let login = format!("user = 'me'\npassword-file = '{}'", file.display());
        format!("smtp = '{url}'\nfrom = 'n@example.org'\nto = ['a@example.org']\n{login}")
    };
    // It offers no STARTTLS.
    let (port, mails) = mail_server();
    let mut of_login =
        Alerts::with(targets(&[line(format!("smtp://127.0.0.1:{port}"), &file)]), "site", None, (&[], LIMIT))
            .expect("alerts");
    of_login.send(&began(1));
    let reported = until(&mut of_login, &[], |_, lines| lines.iter().any(|line| line.contains("given up"))).join("\n");
    assert!(reported.contains("no STARTTLS") && !reported.contains("geheim"), "{reported}");
    assert_eq!(mails.recv_timeout(LIMIT), Err(RecvTimeoutError::Disconnected));

    let refused = |url: &str, file: &std::path::Path| {
        let refused = Alerts::with(targets(&[line(url.to_owned(), file)]), "site", None, SOON);
        refused.err().expect("it makes no sense")
    };
    let why = refused("smtp://127.0.0.1", &place.path().join("none"));
    assert!(why.contains("mail server 127.0.0.1") && why.contains("none"), "{why}");
    for (text, mode, says) in
        [("geheim\n", 0o644, "chmod 600"), ("\n", 0o600, "only line"), ("geheim\nb", 0o600, "only line")]
    {
        narrows_sys::files::write_whole(&file, text.as_bytes(), 0o600).expect("a file");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("owned");
        let why = refused("smtps://127.0.0.1", &file);
        assert!(why.contains(says) && !why.contains("geheim"), "{why}");
    }
}

#[test]
fn smtps_wants_a_certificate_of_an_authority_that_this_host_trusts() {
    let (_runtime, port) = tls_server();
    let line = format!("smtp = 'smtps://127.0.0.1:{port}'\nfrom = 'n@example.org'\nto = ['a@example.org']");
    let mut alerts = Alerts::with(targets(&[line]), "site", None, (&[], LIMIT)).expect("alerts");
    alerts.send(&began(1));
    let reported = until(&mut alerts, &[], |_, lines| lines.iter().any(|line| line.contains("given up")));
    assert!(reported.iter().any(|line| line.contains("certificate")), "{reported:?}");
}
