//! The controller: one thread decides, with the store; others carry messages between it and the network.

use super::CONTROLLER_PORT;
use super::alerts::Alerts;
use super::archive::{Archive, noted};
use super::command::{Command, Event, executed, now_ms};
use super::keys::{Hosts, Keys, place};
use super::members::{is_other, look_up};
use super::otlp::Exporter;
use super::page::page;
use super::report::look;
use super::requests::{self, Door};
use super::transport::HOLDS;
use crate::server::AuditTo;
use crate::server::audit::Audit;
use crate::server::listen::{accept_api, acceptor};
use crate::web::PageSpec;
use crate::{Stop, lock};
use narrows_fleet::alert::sentence;
use narrows_fleet::control::{Control, Has, Sessions, joined};
use narrows_fleet::incident::Incident;
use narrows_fleet::join::Members;
use narrows_fleet::plan::Fleet;
use narrows_fleet::protocol::{Reply, Ticket};
use narrows_fleet::truth::Truth;
use narrows_store::Store;
use narrows_sys::{clock, files, net};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};
use tokio::sync::{oneshot, watch};

/// How a controller is started.
#[derive(Debug)]
pub struct ControllerSpec {
    /// The file of the fleet; read again when it is applied.
    pub file: PathBuf,
    /// Where agents and users reach it; `None`: [`CONTROLLER_PORT`]; 0: a free one.
    pub port: Option<u16>,
    pub bind: Option<IpAddr>,
    pub state: PathBuf,
    /// The store: a file, or an address of PostgreSQL.
    pub store: PathBuf,
    /// A bus of agents beside HTTPS: `nats://host:port`.
    pub bus: Option<String>,
    /// The page for browsers, at the same port.
    pub page: Option<PageSpec>,
    /// Where it is written who changed what.
    pub audit: Option<AuditTo>,
}

/// How often it looks what is due.
const TICK: Duration = Duration::from_millis(250);
/// A controller leads for so long, and says so again so often.
const LEADS_MS: u64 = 15_000;
const RENEWS: Duration = Duration::from_secs(5);
/// A clock that goes back by less is one that is set right.
const STEP_MS: u64 = 5_000;
/// Before its first look at what is due.
const FIRST_MS: u64 = 120_000;
/// An agent at work is answered so soon: what it found should not wait.
const WORKS: Duration = Duration::from_secs(1);

/// An agent that waits for something to do.
struct Waiting {
    host: usize,
    has: Has,
    until: Instant,
    answer: oneshot::Sender<Reply>,
}

/// The fleet of a file, with what sends its alerts.
fn applied(file: &Path) -> Result<(Alerts, Fleet), String> {
    let fleet = super::read(file)?;
    Ok((Alerts::start(&fleet.alerts, &fleet.name)?, fleet))
}

/// The fleet of its file, or of one that a user sent, which takes its place.
/// Errors: it cannot be used or written, or changes what only this host may change.
fn taken(asked: &Command, file: &Path, fleet: &Fleet) -> Result<(Alerts, Fleet), String> {
    if let Command::ApplyFile { text } = asked {
        let sent = Fleet::read(text)?;
        if sent.name != fleet.name {
            let [sent, own] = [&sent.name, &fleet.name];
            return Err(format!("the file is of the fleet {sent}, not of {own}: all tokens follow from the name"));
        }
        // The token of users would else make this host send to wherever they want, and read what they name.
        if (&sent.alerts, &sent.otlp) != (&fleet.alerts, &fleet.otlp) {
            return Err(format!("alerts and otlp are changed in {} on the controller's host only", file.display()));
        }
        let place = |error| {
            format!("{error}; put it there on the controller's host, and run `narrows fleet apply` without a file")
        };
        files::write_whole(file, text.as_bytes(), 0o600).map_err(place)?;
    }
    applied(file)
}

/// Why a fleet's thread ends.
enum Ended {
    Stopped,
    /// It leads no more; the incidents that were open.
    Deposed(Vec<Incident>),
    /// Its file was read again, and who gets its alerts is known; with what is known of agents.
    Applied(Box<(Alerts, Fleet)>, Sessions),
    /// Hosts joined the fleet, or left it.
    Joined(Sessions),
    /// The clock was set back: all times that it knows are of another one.
    Stepped(Sessions),
}

/// Runs a fleet until it is stopped. `watch` gets what a user should know.
/// Errors: its file makes no sense, its store cannot be opened, or its port is taken.
pub fn controller(spec: &ControllerSpec, stop: &Stop, watch: &mut dyn FnMut(&str)) -> Result<(), String> {
    let mut fleet = super::read(&spec.file)?;
    let mut archive = Archive::default();
    let mut alerts = Alerts::start(&fleet.alerts, &fleet.name)?;
    let keys = Keys::of(&spec.state)?;
    let place = place(&spec.state);
    let _held = files::try_lock(&place.join("lock")).map_err(|error| error.to_string())?.ok_or_else(|| {
        let state = spec.state.display();
        format!(
            "another controller works with {state}; a second one needs a state directory of its own (NARROWS_STATE)"
        )
    })?;
    let mut store = Store::open(&spec.store).map_err(|error| error.to_string())?;
    let hosts = Arc::new(RwLock::new(Hosts::of(&keys, &fleet)));
    let members = Arc::new(Mutex::new(Members::default()));
    lock(&members).apply(&fleet);
    look_up(members.clone(), stop.clone());
    let port = spec.port.unwrap_or(CONTROLLER_PORT);
    let at = spec.bind.map(|address| SocketAddr::new(address, port));
    let listener = at.map_or_else(|| net::listen(port), net::listen_at);
    let listener = listener.map_err(|error| format!("cannot listen for agents: {error}"))?;
    let listens = listener.local_addr().map_err(|error| error.to_string())?;
    let port = listens.port();
    listener.set_nonblocking(true).map_err(|error| error.to_string())?;
    let (ask, events) = channel();
    let leads = watch::Sender::new(false);
    let to_bus = spec.bus.clone().map(|bus| (bus, ask.clone()));
    let sink = spec.audit.as_ref().map(AuditTo::sink).transpose().map_err(|error| error.to_string())?;
    let door = Arc::new(Door::new(&keys, (hosts.clone(), members.clone(), leads.subscribe()), ask, Audit::of(sink)));
    let figures = door.clone();
    let page = spec.page.as_ref().map(|of| page(&keys, &fleet.name, door.clone(), of)).transpose()?;
    let has_page = page.is_some();
    let router = requests::router(door);
    let router = page.into_iter().fold(router, axum::Router::merge);
    let acceptor = acceptor(&keys.identity).map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(|error| format!("cannot start the controller: {error}"))?;
    runtime.spawn(async move {
        if let Ok(listener) = tokio::net::TcpListener::from_std(listener) {
            accept_api(listener, Some(acceptor), router).await;
        }
    });
    if let Some((bus, ask)) = to_bus {
        on_bus(&runtime, &bus, &keys, (hosts.clone(), leads.subscribe()), ask)?;
    }
    watch(&format!("the controller of {} listens on port {port}; key {}", fleet.name, keys.identity.token.fingerprint));
    watch(&format!("its users' token is in {}", keys.identity.token_file.display()));
    if has_page {
        watch(&crate::web::announcement(spec.bind, port));
    }
    super::warn_of_root("narrows-fleet-controller", watch);
    // A name and a path may be those of another one, too.
    let (boot, inode) = (narrows_sys::process::boot_id().unwrap_or_default(), files::inode(&place).unwrap_or_default());
    alerts.export = Exporter::start(&runtime, fleet.collector()?, &figures)?;
    let me = format!("{} {} {inode} {boot}", narrows_sys::process::host_name(), spec.state.display());
    let mut sessions = Sessions::default();
    'leads: while let Some(waited) =
        stands_by(&fleet, &mut store, &me, &events, stop, (&mut archive, &mut alerts), watch)
    {
        let mut read = None;
        if waited {
            // Meanwhile the file may have been applied to the one that led.
            match applied(&spec.file) {
                Ok(found) => read = Some(found),
                Err(why) => watch(&format!("the fleet stays as it was: {why}")),
            }
        }
        let mut trouble = None;
        let Some(kept) = noted(store.tests_of(&fleet).kept(), &mut trouble, watch) else {
            archive.fails(trouble.as_deref(), &mut alerts, watch);
            clock::sleep(RENEWS / 5);
            continue;
        };
        // It leads, so the store answered.
        archive.works(&mut alerts);
        let file = read.as_ref().map_or(&fleet, |(_, found)| found);
        lock(&members).restore(file, joined(&kept.unwrap_or_default()));
        loop {
            if let Some((started, found)) = read.take() {
                *hosts.write().unwrap_or_else(std::sync::PoisonError::into_inner) = Hosts::of(&keys, &found);
                (alerts, fleet) = (started, found);
                lock(&members).apply(&fleet);
                watch("the file was read again");
                match fleet.collector().and_then(|to| Exporter::start(&runtime, to, &figures)) {
                    Ok(export) => alerts.export = export,
                    Err(why) => watch(&format!("figures are not sent: {why}")),
                }
            }
            leads.send_replace(true);
            let whole = lock(&members).fleet(&fleet);
            let of = (&whole, spec.file.as_path(), std::mem::take(&mut sessions), &*members);
            let ended = decide(of, &mut store, (&keys, &me), &events, stop, (&mut archive, &mut alerts), watch);
            match ended {
                Ended::Applied(found, known) => (read, sessions) = (Some(*found), known),
                Ended::Joined(known) => sessions = known,
                Ended::Stepped(known) => {
                    sessions = known;
                    watch("the clock of this host went back: the controller begins anew");
                }
                Ended::Deposed(open) => {
                    archive.open = open;
                    watch("another controller leads the fleet now, or the store does not answer");
                    break;
                }
                Ended::Stopped => break 'leads,
            }
        }
        leads.send_replace(false);
    }
    runtime.shutdown_timeout(Duration::from_millis(100));
    Ok(())
}

/// Waits until this controller leads its fleet, and tells whether another one led meanwhile; `None`: it was stopped before.
fn stands_by(
    fleet: &Fleet,
    store: &mut Store,
    me: &str,
    events: &Receiver<Event>,
    stop: &Stop,
    (archive, alerts): (&mut Archive, &mut Alerts),
    watch: &mut dyn FnMut(&str),
) -> Option<bool> {
    let (mut trouble, mut is_second) = (None, false);
    while !stop.is_set() {
        let leads = store.tests_of(fleet).lead(me, now_ms(), now_ms() + LEADS_MS);
        match noted(leads, &mut trouble, watch) {
            Some(true) => return Some(is_second),
            Some(false) => {
                if !is_second {
                    watch("another controller leads the fleet: this one stands by");
                }
                is_second = true;
                archive.is_led(alerts);
            }
            None => archive.fails(trouble.as_deref(), alerts, watch),
        }
        let until = clock::now() + RENEWS / 5;
        // However much agents ask, it tries again in time.
        while clock::now() < until {
            let Ok(event) = events.recv_timeout(until.saturating_duration_since(clock::now())) else { break };
            let why = trouble.as_ref().map(|why| format!("the store fails: {why}"));
            let why = why.unwrap_or_else(|| "another controller leads the fleet: this one stands by".to_owned());
            match event {
                // It asks the next one.
                Event::Poll { .. } => {}
                // What it knew when it led last is no secret, and why the store fails must be seen.
                Event::Look(_, answer) => _ = answer.send(archive.looked(trouble.as_deref()).ok_or(why)),
                Event::Command(_, answer) => _ = answer.send(Err(why)),
            }
        }
    }
    None
}

/// Who and where agents are, and whether this controller leads them.
type Agents = (Arc<RwLock<Hosts>>, watch::Receiver<bool>);

/// Takes messages of agents from a bus, too.
/// Errors: this build knows none, or there is no such address.
#[cfg(feature = "nats")]
fn on_bus(
    runtime: &tokio::runtime::Runtime,
    bus: &str,
    keys: &Keys,
    agents: Agents,
    ask: std::sync::mpsc::Sender<Event>,
) -> Result<(), String> {
    let client = runtime.block_on(super::nats::connect(bus, &keys.of_bus()))?;
    runtime.spawn(super::nats::listen(client, keys.of_bus(), agents, ask));
    Ok(())
}

#[cfg(not(feature = "nats"))]
fn on_bus(
    _: &tokio::runtime::Runtime,
    _: &str,
    _: &Keys,
    _: Agents,
    _: std::sync::mpsc::Sender<Event>,
) -> Result<(), String> {
    Err(super::NO_NATS.to_owned())
}

/// Decides for a fleet as its file is now.
fn decide(
    (fleet, file, sessions, members): (&Fleet, &Path, Sessions, &Mutex<Members>),
    store: &mut Store,
    (keys, me): (&Keys, &str),
    events: &Receiver<Event>,
    stop: &Stop,
    (archive, alerts): (&mut Archive, &mut Alerts),
    watch: &mut dyn FnMut(&str),
) -> Ended {
    let mut control = Control::new(fleet, store.tests_of(fleet), now_ms());
    control.resume(sessions);
    let secrets = |of: &str| keys.secret(of).reveal();
    let mut waiting: HashMap<usize, Waiting> = HashMap::new();
    let mut trouble: Option<String> = None;
    let mut next_tick = clock::now();
    let mut has_looked = false;
    let (mut renews, mut led, mut last_ms) = (clock::now() + RENEWS, clock::now(), now_ms());
    // The first tick reads the results of hours.
    if noted(control.lead(me, now_ms(), now_ms() + FIRST_MS), &mut trouble, watch) == Some(false) {
        return Ended::Deposed(std::mem::take(&mut archive.open));
    }
    while !stop.is_set() {
        // Whatever agents say in between, it looks what is due.
        if clock::now() >= next_tick {
            next_tick = clock::now() + TICK;
            if now_ms() + STEP_MS < last_ms {
                keep(&mut control, alerts, &mut trouble, watch);
                return Ended::Stepped(control.sessions());
            }
            last_ms = now_ms();
            let messages = noted(control.tick(last_ms), &mut trouble, watch);
            has_looked |= messages.is_some();
            match (&messages, &trouble) {
                (None, Some(why)) => {
                    let open: Vec<Incident> = control.judge().incidents().known().into_iter().cloned().collect();
                    // Before its first look it knows of none.
                    if !open.is_empty() {
                        archive.open = open;
                    }
                    archive.fails(Some(why.as_str()), alerts, watch);
                }
                _ => archive.works(alerts),
            }
            // Whoever was stopped for long, or had to wait for the store, may lead no more; then another one reports it.
            if clock::now() >= renews {
                let asked = clock::now();
                match noted(control.lead(me, now_ms(), now_ms() + LEADS_MS), &mut trouble, watch) {
                    Some(true) => led = asked,
                    None if led.elapsed() < Duration::from_millis(LEADS_MS) => {}
                    _ => {
                        // Before its first look it knows nothing.
                        let mut open = std::mem::take(&mut archive.open);
                        if has_looked {
                            open = control.judge().incidents().known().into_iter().cloned().collect();
                        }
                        if trouble.is_some() && has_looked {
                            archive.status = Some(look(&mut control, fleet, false, [None, None])().0);
                        }
                        if trouble.is_none() {
                            alerts.hand_over();
                        }
                        return Ended::Deposed(open);
                    }
                }
                renews = clock::now() + RENEWS;
            }
            for message in messages.into_iter().flatten() {
                watch(&sentence(&message));
                alerts.send(&message);
            }
            control.unsaid().iter().for_each(|(message, had)| alerts.send_unless_known(message, had));
            alerts.look(&control.judge().incidents().known(), watch);
            keep(&mut control, alerts, &mut trouble, watch);
            // What is not in the store would be lost.
            if trouble.is_none() && is_other(&control, members, last_ms, watch) {
                // They poll again, on the connections that they have.
                waiting.drain().for_each(|(_, it)| _ = it.answer.send(Reply::default()));
                return Ended::Joined(control.sessions());
            }
            release(&control, &mut waiting, &secrets);
        }
        match events.recv_timeout(next_tick.saturating_duration_since(clock::now())) {
            Ok(Event::Poll { host, from, poll, answer }) => {
                // It may have left the file meanwhile.
                let Some(host) = control.host(&host) else { continue };
                let works = !poll.working.is_empty();
                let polled = control.poll(host, from, poll, now_ms());
                // Without a reply it polls again.
                let Some(Some((has, taken))) = noted(polled, &mut trouble, watch) else { continue };
                let until = clock::now() + if works { WORKS } else { HOLDS };
                let waits = Waiting { host, has, until, answer };
                // One poll of an agent waits at a time.
                waiting.remove(&host);
                waiting.extend(answered(&control, waits, taken, &secrets).map(|waits| (host, waits)));
            }
            // Who asked has given up.
            Ok(Event::Command(_, answer)) if answer.is_closed() => {}
            Ok(Event::Command(asked @ (Command::Apply | Command::ApplyFile { .. }), answer)) => {
                match taken(&asked, file, fleet) {
                    Ok(read) => {
                        keep(&mut control, alerts, &mut trouble, watch);
                        if trouble.is_none() {
                            alerts.hand_over();
                        }
                        waiting.drain().for_each(|(_, it)| _ = it.answer.send(Reply::default()));
                        let _ = answer.send(Ok(serde_json::json!("the file was read again")));
                        return Ended::Applied(Box::new(read), control.sessions());
                    }
                    Err(why) => _ = answer.send(Err(format!("the fleet stays as it was: {why}"))),
                }
            }
            Ok(Event::Command(Command::TryAlerts, answer)) => {
                let _ = answer.send(alerts.try_all(now_ms()).map(serde_json::Value::String));
            }
            Ok(Event::Command(command, answer)) => {
                let _ = answer.send(executed(&mut control, fleet, command));
            }
            Ok(Event::Look(_, answer)) if answer.is_closed() => {}
            Ok(Event::Look(with_paths, answer)) => {
                let _ = answer.send(Ok(look(&mut control, fleet, with_paths, [trouble.clone(), alerts.trouble()])));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ended::Stopped,
        }
        wake(&mut control, &mut waiting, &secrets);
    }
    keep(&mut control, alerts, &mut trouble, watch);
    // Another one need not wait.
    let _ = control.lead(me, now_ms(), now_ms());
    Ended::Stopped
}

/// Keeps what the next controller has to know, with what is still on its way to people.
fn keep<T: Truth<Error = narrows_store::Error>>(
    control: &mut Control<'_, T>,
    alerts: &Alerts,
    trouble: &mut Option<String>,
    watch: &mut dyn FnMut(&str),
) {
    control.on_their_way(alerts.waiting());
    // Where there is nothing to keep, that it works says nothing of the store.
    if let kept @ Err(_) = control.keep() {
        noted(kept, trouble, watch);
    }
}

/// Answers those that waited long enough.
fn release<T: Truth>(
    control: &Control<'_, T>,
    waiting: &mut HashMap<usize, Waiting>,
    secrets: &dyn Fn(&str) -> String,
) {
    let now = clock::now();
    let is_over = |(_, it): &(&usize, &Waiting)| it.until <= now || it.answer.is_closed();
    let over: Vec<usize> = waiting.iter().filter(is_over).map(|(host, _)| *host).collect();
    for host in over {
        let waits = waiting.remove(&host);
        waits.map(|waits| answered(control, waits, Vec::new(), secrets));
    }
}

/// Answers those that wait and have something else to do now.
fn wake<T: Truth>(
    control: &mut Control<'_, T>,
    waiting: &mut HashMap<usize, Waiting>,
    secrets: &dyn Fn(&str) -> String,
) {
    for host in control.changed() {
        let waits = waiting.remove(&host);
        let on = waits.and_then(|waits| answered(control, waits, Vec::new(), secrets));
        waiting.extend(on.map(|waits| (host, waits)));
    }
}

/// Answers an agent if there is something to say; else it waits on.
fn answered<T: Truth>(
    control: &Control<'_, T>,
    waiting: Waiting,
    taken: Vec<Ticket>,
    secrets: &dyn Fn(&str) -> String,
) -> Option<Waiting> {
    let reply = control.reply(waiting.host, &waiting.has, secrets, now_ms());
    if reply.is_none() && taken.is_empty() && clock::now() < waiting.until {
        return (!waiting.answer.is_closed()).then_some(waiting);
    }
    let _ = waiting.answer.send(Reply { taken, ..reply.unwrap_or_default() });
    None
}
