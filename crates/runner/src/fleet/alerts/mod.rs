//! Alerts of a controller: one thread delivers them. Each target has its own queue, so one that fails holds up no other.

mod carrier;

use super::otlp::Exporter;
use crate::lock;
use crate::remote::Trust;
use carrier::{Again, letter};
pub(super) use carrier::{Carrier, Failed};
use narrows_fleet::alert::{self, Alert, Form, Target};
use narrows_fleet::incident::{Incident, Message, Unsaid};
use narrows_model::words::show::plural;
use narrows_sys::clock;
use ring::digest::{SHA256, digest};
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
/// Pauses before a delivery is tried again; the last one again and again while the target is away.
const AGAIN: [Duration; 5] = [
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_secs(120),
    Duration::from_secs(600),
];
/// An outage that cuts off the controller, too, is no longer than that as a rule, and older messages help nobody.
const GIVEN_UP: Duration = Duration::from_secs(24 * 3_600);
/// An Alertmanager takes for over what does not come again within 5 minutes by default.
const REPEATS: Duration = Duration::from_secs(60);
/// Alerts in a request.
const TOGETHER_MAX: usize = 500;

/// What delivers the messages of a fleet.
pub(super) struct Alerts {
    fleet: String,
    queues: Vec<Queue>,
    /// The last messages, each with what lives as long as it waits, by target; `None`: that had it before.
    sent: VecDeque<(Message, Vec<Option<Weak<()>>>)>,
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

/// What is to be delivered, since when, how often was handed over before it, and what is dropped once that is over.
type Waiting = (Vec<u8>, Instant, u64, Arc<()>);

/// Pauses before a delivery is tried again, and when it is given up.
type Patience = (&'static [Duration], Duration);

struct Queue {
    target: Target,
    /// What it is known by after a restart.
    name: String,
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
        Self::with(targets, fleet, tls.as_ref(), (&AGAIN, GIVEN_UP))
    }

    fn with(targets: Vec<Target>, fleet: &str, tls: Option<&TlsConnector>, patience: Patience) -> Result<Self, String> {
        let (mut queues, mut tasks) = (Vec::new(), Vec::new());
        let handed_over = Arc::new(AtomicU64::new(0));
        for target in targets {
            let carrier =
                Carrier::of(&target, tls).map_err(|why| format!("cannot use the {}: {why}", target.words()))?;
            let (bodies, waiting) = channel(WAITING_MAX);
            let state = Arc::new(Mutex::new(State::default()));
            tasks.push(deliver(carrier, waiting, state.clone(), (patience, handed_over.clone())));
            let name = name_of(&target);
            queues.push(Queue { target, name, bodies, state, handed_over: handed_over.clone() });
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
        self.send_to_others(message, &[]);
    }

    /// Sends a message and its end, which say that they are none.
    /// Errors: nobody gets alerts.
    pub(super) fn try_all(&mut self, now_ms: u64) -> Result<String, String> {
        if self.queues.is_empty() {
            return Err("the file of the fleet has no [[alert]]".to_owned());
        }
        let incident = Incident {
            number: 0,
            element: "nothing (a test of alerts)".to_owned(),
            says: "this message was asked for, to see whether it arrives".to_owned(),
            since_ms: now_ms,
            acknowledged: None,
            verdict: None,
            reported: true,
        };
        self.send(&Message::Began(incident.clone()));
        self.send(&Message::Over { incident, after_ms: 0 });
        let targets: Vec<String> = self.queues.iter().map(|queue| queue.target.words()).collect();
        let to = targets.join(", ");
        Ok(format!("two messages are on their way to: {to}; what does not arrive is in `narrows fleet status`"))
    }

    /// The same of what an earlier controller sent, which may have been this one before its file was applied; `had`: who had it from there.
    pub(super) fn send_unless_known(&mut self, message: &Message, had: &[String]) {
        if !self.sent.iter().any(|(known, _)| known == message) {
            self.send_to_others(message, had);
        }
    }

    fn send_to_others(&mut self, message: &Message, had: &[String]) {
        let put = |queue: &Queue| {
            let waits = Arc::new(());
            queue.put(std::slice::from_ref(message), &self.fleet, &waits);
            Arc::downgrade(&waits)
        };
        let waits = self.queues.iter().map(|queue| (!had.contains(&queue.name)).then(|| put(queue))).collect();
        if self.sent.len() >= WAITING_MAX {
            self.sent.pop_front();
        }
        self.sent.push_back((message.clone(), waits));
    }

    /// What waits is kept, and the next controller sends it: it is not sent from here.
    pub(super) fn hand_over(&mut self) {
        self.handed_over.fetch_add(1, Relaxed);
        // Should this one go on, it has to send them again.
        self.sent.retain(|(_, of)| !of.iter().flatten().any(|it| it.strong_count() > 0));
    }

    /// Messages that not all targets took or refused yet, and those who did. Who is in the file later, and is not one of them, gets it.
    pub(super) fn waiting(&self) -> Vec<Unsaid> {
        let waits = |of: &Option<Weak<()>>| of.as_ref().is_some_and(|it| it.strong_count() > 0);
        let unsaid = |(message, of): &(Message, Vec<Option<Weak<()>>>)| {
            let had = self.queues.iter().zip(of).filter(|(_, it)| !waits(it));
            (message.clone(), had.map(|(queue, _)| queue.name.clone()).collect())
        };
        self.sent.iter().filter(|(_, of)| of.iter().any(waits)).map(unsaid).collect()
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
                .try_send((body, clock::now(), self.handed_over.load(Relaxed), waits.clone()))
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

/// A name of a target that tells nothing of the secrets of its URL: two may differ in those alone.
fn name_of(target: &Target) -> String {
    let digest = digest(&SHA256, format!("{target:?}").as_bytes());
    digest.as_ref()[..12].iter().fold(String::new(), |name, byte| format!("{name}{byte:02x}"))
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
    ((pauses, gives_up), handed_over): (Patience, Arc<AtomicU64>),
) {
    while let Some((body, began, since, _waits)) = waiting.recv().await {
        let mut tries = 0;
        while handed_over.load(Relaxed) == since {
            let Err(Failed { why, again }) = carrier.carry(&body).await else {
                lock(&state).trouble = None;
                break;
            };
            // Once nobody sends any more, what waits is tried once.
            let next = pauses.get(tries).or_else(|| pauses.last().filter(|_| again == Again::Long));
            let is_hopeless = again == Again::Never || waiting.is_closed() || began.elapsed() >= gives_up;
            let pause = next.filter(|_| !is_hopeless);
            tries += 1;
            lock(&state).fails(why, pause.is_none());
            let Some(pause) = pause else { break };
            sleep(*pause).await;
        }
    }
}

#[cfg(test)]
mod tests;
