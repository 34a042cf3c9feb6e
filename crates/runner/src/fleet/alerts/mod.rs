//! Alerts of a controller: one thread delivers them. Each target has its own queue, so one that fails holds up no other.

mod carrier;

use super::otlp::Exporter;
use crate::lock;
use crate::remote::Trust;
use carrier::letter;
pub(super) use carrier::{Carrier, Failed};
use narrows_fleet::alert::{self, Alert, Form, Target};
use narrows_fleet::incident::{Incident, Message};
use narrows_model::words::show::plural;
use narrows_sys::clock;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_rustls::TlsConnector;

/// Messages that wait for a target; more are given up.
const WAITING_MAX: usize = 1_000;
/// Pauses before a delivery is tried again.
const AGAIN: [Duration; 5] = [
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_secs(120),
    Duration::from_secs(600),
];
/// An Alertmanager takes for over what does not come again within 5 minutes by default.
const REPEATS: Duration = Duration::from_secs(60);
/// Alerts in a request.
const TOGETHER_MAX: usize = 500;

/// What delivers the messages of a fleet.
pub(super) struct Alerts {
    fleet: String,
    queues: Vec<Queue>,
    /// The last messages, each with what lives as long as it waits for a target.
    sent: VecDeque<(Message, Weak<()>)>,
    /// How often what waited was handed over: who took it delivers it.
    handed_over: Arc<AtomicU64>,
    repeats: Instant,
    /// The trouble that was reported last.
    known: Option<String>,
    /// What sends figures to a collector beside it.
    pub(super) export: Option<Exporter>,
}

/// For connections to what has a certificate of an authority that this host trusts.
/// Errors: it trusts none.
pub(super) fn connector() -> Result<TlsConnector, String> {
    Trust::System.config(&[]).map(TlsConnector::from).map_err(|error| error.to_string())
}

/// What is to be delivered, how often was handed over before it, and what is dropped once that is over.
type Waiting = (Vec<u8>, u64, Arc<()>);

struct Queue {
    target: Target,
    bodies: Sender<Waiting>,
    state: Arc<Mutex<State>>,
    handed_over: Arc<AtomicU64>,
}

/// How deliveries to a target went.
#[derive(Default)]
struct State {
    /// Why the last one failed.
    trouble: Option<String>,
    /// Messages that were given up and not yet reported, and why the last of them.
    lost: u64,
    lost_why: String,
}

impl Alerts {
    /// Starts the thread; it ends when this is dropped and each message that waits was tried.
    /// Errors: a target makes no sense, this host has no authorities to check certificates by, or no thread can be started.
    pub(super) fn start(alerts: &[Alert], fleet: &str) -> Result<Self, String> {
        let targets = alerts.iter().map(Alert::target).collect::<Result<Vec<_>, _>>()?;
        let is_tls = targets.iter().any(|target| target.place().tls);
        let tls = is_tls.then(connector).transpose()?;
        Self::with(targets, fleet, tls.as_ref(), &AGAIN)
    }

    fn with(
        targets: Vec<Target>,
        fleet: &str,
        tls: Option<&TlsConnector>,
        pauses: &'static [Duration],
    ) -> Result<Self, String> {
        let (mut queues, mut tasks) = (Vec::new(), Vec::new());
        let handed_over = Arc::new(AtomicU64::new(0));
        for target in targets {
            let carrier =
                Carrier::of(&target, tls).map_err(|why| format!("cannot use the {}: {why}", target.words()))?;
            let (bodies, waiting) = channel(WAITING_MAX);
            let state = Arc::new(Mutex::new(State::default()));
            tasks.push(deliver(carrier, waiting, state.clone(), (pauses, handed_over.clone())));
            queues.push(Queue { target, bodies, state, handed_over: handed_over.clone() });
        }
        if !tasks.is_empty() {
            let cannot = |error: std::io::Error| format!("cannot start the thread of alerts: {error}");
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
            let work = move || {
                runtime.block_on(async {
                    let mut tasks: JoinSet<()> = tasks.into_iter().collect();
                    while tasks.join_next().await.is_some() {}
                });
            };
            std::thread::Builder::new().name("narrows-alerts".to_owned()).spawn(work).map_err(cannot)?;
        }
        let sent = VecDeque::new();
        let repeats = clock::now();
        Ok(Self { fleet: fleet.to_owned(), queues, sent, handed_over, repeats, known: None, export: None })
    }

    /// Sends a message to all targets, without waiting for any.
    pub(super) fn send(&mut self, message: &Message) {
        let waits = Arc::new(());
        for queue in &self.queues {
            queue.put(std::slice::from_ref(message), &self.fleet, &waits);
        }
        if self.sent.len() >= WAITING_MAX {
            self.sent.pop_front();
        }
        self.sent.push_back((message.clone(), Arc::downgrade(&waits)));
    }

    /// The same of what an earlier controller sent, which may have been this one before its file was applied.
    pub(super) fn send_unless_known(&mut self, message: &Message) {
        if !self.sent.iter().any(|(known, _)| known == message) {
            self.send(message);
        }
    }

    /// What waits is kept, and the next controller sends it: it is not sent from here.
    pub(super) fn hand_over(&self) {
        self.handed_over.fetch_add(1, Relaxed);
    }

    /// Messages that not all targets took or refused yet.
    pub(super) fn waiting(&self) -> Vec<Message> {
        let waiting = self.sent.iter().filter(|(_, waits)| waits.strong_count() > 0);
        waiting.map(|(message, _)| message.clone()).collect()
    }

    /// Why messages do not arrive, by target; `None`: the last of each did.
    pub(super) fn trouble(&self) -> Option<String> {
        let of = |queue: &Queue| Some(format!("{}: {}", queue.target.words(), lock(&queue.state).trouble.as_ref()?));
        let all: Vec<String> = self.queues.iter().filter_map(of).collect();
        (!all.is_empty()).then(|| format!("alerts do not arrive: {}", all.join("; ")))
    }

    /// To be called each second or so. `open` are the incidents that are neither over nor muted; `watch` gets what a user should know.
    pub(super) fn look(&mut self, open: &[&Incident], watch: &mut dyn FnMut(&str)) {
        let trouble = self.trouble();
        if trouble != self.known {
            watch(trouble.as_deref().unwrap_or("alerts arrive again"));
            self.known = trouble;
        }
        self.export.iter_mut().for_each(|it| it.look(watch));
        for Queue { target, state, .. } in &self.queues {
            let mut state = lock(state);
            let lost = std::mem::take(&mut state.lost);
            if lost > 0 {
                let (count, why) = (plural(lost, "message"), &state.lost_why);
                watch(&format!("{count} for the {} given up: {why}", target.words()));
            }
        }
        let now = clock::now();
        if now >= self.repeats {
            self.repeats = now + REPEATS;
            self.repeat(open);
        }
    }

    /// Sends what is open to each Alertmanager again.
    fn repeat(&self, open: &[&Incident]) {
        // Where messages wait, they come first; the next time is soon.
        let is_free = |queue: &&Queue| queue.bodies.capacity() == queue.bodies.max_capacity();
        let managers = self.queues.iter().filter(|queue| matches!(queue.target, Target::Alertmanager(_)));
        for queue in managers.filter(is_free) {
            for part in open.chunks(TOGETHER_MAX) {
                let part: Vec<Message> = part.iter().map(|incident| Message::Began((*incident).clone())).collect();
                queue.put(&part, &self.fleet, &Arc::default());
            }
        }
    }
}

impl Queue {
    fn put(&self, messages: &[Message], fleet: &str, waits: &Arc<()>) {
        let put = body(&self.target, messages, fleet).and_then(|body| {
            self.bodies
                .try_send((body, self.handed_over.load(Relaxed), waits.clone()))
                .map_err(|_| "too many messages wait for it".to_owned())
        });
        if let Err(why) = put {
            lock(&self.state).fails(why, true);
        }
    }
}

impl State {
    fn fails(&mut self, why: String, is_lost: bool) {
        if is_lost {
            self.lost += 1;
            self.lost_why.clone_from(&why);
        }
        self.trouble = Some(why);
    }
}

/// What a target gets. More than one message at a time is for an Alertmanager only.
fn body(target: &Target, messages: &[Message], fleet: &str) -> Result<Vec<u8>, String> {
    let first = messages.first().ok_or("there is no message")?;
    let value = match target {
        Target::Webhook(_, Form::Json) => alert::json(first, fleet),
        Target::Webhook(_, Form::Chat) => alert::chat(first, fleet),
        Target::Webhook(_, Form::Teams) => alert::teams(first, fleet),
        Target::Alertmanager(_) => alert::alertmanager(messages, fleet),
        Target::Collector(_) => return Err("a collector takes figures".to_owned()),
        Target::Mail { from, to, .. } => return letter(&alert::mail(first, fleet, from), from, to),
    };
    serde_json::to_vec(&value).map_err(|error| error.to_string())
}

/// Delivers what waits for a target, in its order.
async fn deliver(
    carrier: Carrier,
    mut waiting: Receiver<Waiting>,
    state: Arc<Mutex<State>>,
    (pauses, handed_over): (&'static [Duration], Arc<AtomicU64>),
) {
    while let Some((body, since, _waits)) = waiting.recv().await {
        let mut pauses = pauses.iter();
        while handed_over.load(Relaxed) == since {
            let Err(Failed { why, again }) = carrier.carry(&body).await else {
                lock(&state).trouble = None;
                break;
            };
            // Once nobody sends any more, what waits is tried once.
            let pause = pauses.next().filter(|_| again && !waiting.is_closed());
            lock(&state).fails(why, pause.is_none());
            let Some(pause) = pause else { break };
            sleep(*pause).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::listen::acceptor;
    use crate::trust::Identity;
    use narrows_sys::net;
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::sync::mpsc::{self, RecvTimeoutError};

    const LIMIT: Duration = Duration::from_secs(20);
    const SOON: &[Duration] = &[Duration::from_millis(5); 3];

    fn began(number: u64) -> Message {
        let [element, says] = ["host b1", "loses 4 % of its probe packets"].map(str::to_owned);
        Message::Began(Incident {
            number,
            element,
            says,
            since_ms: 0,
            acknowledged: None,
            verdict: None,
            reported: true,
        })
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
        alerts.send_unless_known(&began(1));
        assert_eq!(alerts.waiting().last(), Some(&began(2)));
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
    fn what_was_handed_over_is_sent_by_somebody_else() {
        const LONG: &[Duration] = &[Duration::from_millis(300)];
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

    #[test]
    fn a_certificate_of_an_unknown_authority_is_refused() {
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
        let target = targets(&[format!("webhook = 'https://127.0.0.1:{port}/'")]);
        let other = tempfile::tempdir().expect("a directory");
        Identity::load_or_make(other.path(), None).expect("another key");
        let tls = Trust::Ca(other.path().join("server.pem")).config(&[]).map(TlsConnector::from).expect("TLS");
        let mut alerts = Alerts::with(target, "site", Some(&tls), &[]).expect("alerts");
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
        let line = format!(
            "smtp = 'smtp://127.0.0.1:{port}'\nfrom = 'n@example.org'\nto = ['a@example.org', 'b@example.org']"
        );
        let mut alerts = Alerts::with(targets(&[line]), "Zürich\r\nBcc: c@example.org", None, SOON).expect("alerts");
        alerts.send(&began(1));
        let mail = mails.recv_timeout(LIMIT).expect("a mail");
        let (headers, text) = mail.split_once("\r\n\r\n").expect("headers");
        for header in
            ["From: n@example.org", "Auto-Submitted: auto-generated", "MIME-Version: 1.0", "Subject: ", "Date: "]
        {
            assert!(headers.lines().any(|line| line.starts_with(header)), "{header}: {mail}");
        }
        assert!(headers.contains("=?utf-8?b?") && headers.contains(".1.began@example.org>"), "{mail}");
        assert!(!headers.lines().any(|line| line.to_ascii_lowercase().starts_with("bcc")), "{mail}");
        assert!(text.contains("host b1") && mail.lines().all(|line| line.len() < 998 && line.is_ascii()), "{mail}");
        until(&mut alerts, &[], |alerts, _| alerts.trouble().is_none());
    }
}
