//! An agent: it asks the controller for work, serves the other agents, and keeps what it found until the controller has it.

use super::AGENT_PORT;
use super::spool::Spool;
use super::transport::{Joins, Transport, transport};
use crate::diagnosis::usual::{self, DIAGNOSIS_MS};
use crate::mesh::loads::said;
use crate::mesh::member::{diagnose, load, packets, probe};
use crate::mesh::orders::{LoadOrder, Loaded, ProbeOrder, Probed};
use crate::remote::TargetSpec;
use crate::server::{Admission, Passes, ServeConfig, Server, ServerHandle, StampConfig};
use crate::{Stop, VERSION, instruments::LiveInstruments, lock};
use narrows_fleet::cost::{PROBE_INTERVAL_US, probe_packets};
use narrows_fleet::protocol::{Admits, Agent, Clock, Found, Order, Outcome, Poll, Reply, Settings, Ticket, What};
use narrows_model::run::mesh::{MeshPath, MeshState};
use narrows_model::{Direction, Place};
use narrows_render::metrics::AgentFigures;
use narrows_sys::clock;
use narrows_wire::token::{Secret, Token};
use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, TryLockError};
use std::time::{Duration, Instant};

/// How an agent is started.
#[derive(Debug)]
pub struct AgentSpec {
    /// The controllers, of which one leads, or a bus; with the token of this host.
    pub controllers: Vec<TargetSpec>,
    /// Where the others load this host; its reflector has the next port. 0: free ones.
    pub port: Option<u16>,
    /// Who it is, where its host is in no file.
    pub joins: Option<Joins>,
    /// Where scrapers read its figures, if they may.
    pub metrics: Option<SocketAddr>,
    pub state: PathBuf,
}

/// Tests at one time; more are not taken.
const RUNNING_MAX: usize = 256;
/// That one poll names: of what waits longer than a lease lasts no order comes again.
const WORKING_MAX: usize = 2_000;
/// A test lasts no longer, as its file allows.
const LASTS_MAX_MS: u64 = 600_000;
/// Without the controller nobody is let in for longer: it is longer than a lease.
const ADMITTED: Duration = Duration::from_secs(90);
/// How long a connection to another agent may take.
const CONNECTS: Duration = Duration::from_secs(3);
/// The other host may know of a load a little later.
const ADMITS: Duration = Duration::from_secs(1);
const ADMITS_TRIES: u32 = 4;
/// Pauses before the controller is tried again: each is twice the last.
const AGAIN: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(30)];
/// Settings are read again after so long.
const SETTINGS_STAND: Duration = Duration::from_secs(600);
/// How often a wait looks whether it was stopped.
const LOOKS: Duration = Duration::from_millis(100);

/// Works until it is stopped. `stop` makes what stops it, once privileges are dropped; `watch` gets what a user should know.
/// Errors: it cannot serve, its place on disk cannot be used, or there is nothing to stop it by.
pub fn agent(
    spec: &AgentSpec,
    stop: &dyn Fn() -> Result<Stop, String>,
    watch: &mut dyn FnMut(&str),
) -> Result<(), String> {
    super::warn_of_root("narrows-fleet-agent", watch);
    let (passes, admission) = (Arc::new(Passes::default()), Arc::new(Admission::default()));
    let spool = Spool::open(spec.state.join("spool"))?;
    let figures = Arc::new(Mutex::new(AgentFigures { is_kept: true, ..AgentFigures::default() }));
    let server = serve(spec, &passes, &admission, &figures)?;
    let stop = &stop()?;
    watch(&format!("others load this host at port {} (TCP and UDP)", server.port()));
    if let Some(at) = server.metrics() {
        watch(&format!("scrapers read http://{at}/metrics, without a token"));
    }
    if !spool.is_empty() {
        watch("what an earlier agent found is still to be delivered");
    }
    let me = Agent {
        version: VERSION.to_owned(),
        port: server.port(),
        fingerprint: server.token().map(|token| token.fingerprint.to_string()).unwrap_or_default(),
        stamp: server.stamp_port().unwrap_or_default(),
        started: Secret::new(narrows_sys::random::bytes().map_err(|error| error.to_string())?).reveal(),
    };
    let (found, outcomes) = channel();
    let mut working = Working {
        me,
        spool,
        passes,
        admission,
        admitted: 0,
        running: BTreeSet::new(),
        figures,
        found,
        settings: settings(),
        wanted: false,
        read: clock::now(),
    };
    let (polls, replies) = converse(transport(&spec.controllers, spec.joins.as_ref())?);
    let mut pause = AGAIN[0];
    let (mut connected, mut heard) = (false, clock::now());
    while !stop.is_set() {
        working.take(&outcomes);
        if polls.send(working.poll()).is_err() {
            break;
        }
        match wait(&replies, &outcomes, &mut working, stop) {
            Some(Ok(reply)) => {
                if !connected {
                    watch("the controller answers");
                }
                (connected, pause, heard) = (true, AGAIN[0], clock::now());
                lock(&working.figures).answered_unix_ms = now().at_unix_ms;
                working.handle(reply, stop);
            }
            Some(Err(why)) => {
                if connected || pause == AGAIN[0] {
                    // A refusal and a lost connection come as the same error.
                    watch(&format!("no work from the controller: {why}; it tries again"));
                }
                connected = false;
                if heard.elapsed() > ADMITTED {
                    working.admit(&Admits::default());
                }
                rest(pause, &outcomes, &mut working, stop);
                pause = AGAIN[1].min(pause * 2);
            }
            None => {}
        }
        if let Some(trouble) = working.spool.trouble.take() {
            watch(&format!("what is found stays in memory: {trouble}"));
        }
    }
    working.take(&outcomes);
    server.stop();
    watch(match (working.spool.is_empty(), working.spool.is_kept) {
        (true, _) => "stopped",
        (false, true) => "stopped; what it found and could not deliver stays on disk",
        (false, false) => "stopped; what it found and the disk did not take is lost",
    });
    Ok(())
}

fn serve(
    spec: &AgentSpec,
    passes: &Arc<Passes>,
    admission: &Arc<Admission>,
    figures: &Arc<Mutex<AgentFigures>>,
) -> Result<ServerHandle, String> {
    let port = spec.port.unwrap_or(AGENT_PORT);
    let nobody = Admission::default();
    nobody.seal();
    let stamp_port = if port == 0 { Some(0) } else { port.checked_add(1) };
    let stamp_port = stamp_port.ok_or("the port must be below 65535: the reflector has the next one")?;
    let config = ServeConfig {
        port,
        of_one_run: Some(Arc::new(nobody)),
        passes: passes.clone(),
        metrics: spec.metrics,
        agent: Some(figures.clone()),
        stamp: Some(StampConfig { port: stamp_port, admission: Some(admission.clone()), ..StampConfig::default() }),
        ..ServeConfig::new(spec.state.clone(), LiveInstruments::All)
    };
    Server::start(config).map_err(|error| error.to_string())
}

/// A thread that exchanges messages with the controller: a poll waits there for as long as there is no reply.
fn converse(mut transport: Box<dyn Transport + Send>) -> (Sender<Poll>, Receiver<Result<Reply, String>>) {
    let (polls, asked) = channel::<Poll>();
    let (answered, replies) = channel();
    std::thread::spawn(move || {
        for poll in asked {
            if answered.send(transport.exchange(&poll)).is_err() {
                break;
            }
        }
    });
    (polls, replies)
}

/// What an agent has in hand.
struct Working {
    me: Agent,
    spool: Spool,
    passes: Arc<Passes>,
    admission: Arc<Admission>,
    admitted: u64,
    running: BTreeSet<Ticket>,
    figures: Arc<Mutex<AgentFigures>>,
    found: Sender<Outcome>,
    settings: Settings,
    /// Whether the controller asked for all of them.
    wanted: bool,
    read: Instant,
}

/// Waits for an answer, and takes what tests found meanwhile; `None`: it was stopped.
fn wait(
    replies: &Receiver<Result<Reply, String>>,
    outcomes: &Receiver<Outcome>,
    working: &mut Working,
    stop: &Stop,
) -> Option<Result<Reply, String>> {
    loop {
        match replies.recv_timeout(LOOKS) {
            Ok(answer) => return Some(answer),
            Err(RecvTimeoutError::Disconnected) => return Some(Err("the connection ended".to_owned())),
            Err(RecvTimeoutError::Timeout) if stop.is_set() => return None,
            Err(RecvTimeoutError::Timeout) => working.take(outcomes),
        }
    }
}

fn rest(pause: Duration, outcomes: &Receiver<Outcome>, working: &mut Working, stop: &Stop) {
    // Agents that lost one controller do not come back at the same moment.
    let share = narrows_sys::random::bytes::<1>().map_or(128, |[byte]| u32::from(byte));
    let until = clock::now() + pause / 2 + pause * share / 255;
    while !stop.is_set() && clock::now() < until {
        clock::sleep(LOOKS);
        working.take(outcomes);
    }
}

fn settings() -> Settings {
    Settings::of(narrows_collect::inventory(&narrows_collect::Live::new(), None).settings())
}

fn now() -> Clock {
    let (is_set, error_ns) = clock::error();
    Clock { at_unix_ms: clock::unix_us() / 1_000, error_us: is_set.then_some(error_ns / 1_000) }
}

impl Working {
    fn take(&mut self, outcomes: &Receiver<Outcome>) {
        while let Ok(outcome) = outcomes.try_recv() {
            self.running.remove(&outcome.ticket);
            let is_found = match &outcome.found {
                Found::Load(state) => matches!(state, MeshState::Measured { .. }),
                Found::Diagnosis(said) => said.is_ok(),
                Found::Probe(path) => path.rtt_us.is_some() || !path.hops.is_empty(),
            };
            lock(&self.figures).tests[usize::from(!is_found)] += 1;
            self.spool.put(outcome);
        }
        let mut figures = lock(&self.figures);
        (figures.running, figures.waiting) = (self.running.len(), self.spool.tickets().count());
        figures.is_kept = self.spool.is_kept;
    }

    /// The sum of this host's settings, and all of them where the controller asked for that.
    fn settings_to_send(&self) -> Settings {
        let Settings { sum, all } = &self.settings;
        Settings { sum: *sum, all: all.clone().filter(|_| self.wanted) }
    }

    fn poll(&self) -> Poll {
        let working = self.running.iter().chain(self.spool.tickets()).take(WORKING_MAX).cloned().collect();
        Poll {
            agent: self.me.clone(),
            outcomes: self.spool.first(),
            working,
            admitted: self.admitted,
            clock: Some(now()),
            settings: self.settings_to_send(),
        }
    }

    /// Lets in these, and nobody else.
    fn admit(&mut self, admits: &Admits) {
        let bearer = |secret: &String| Secret::from_bearer(&format!("Bearer {secret}"));
        self.passes.of_loads(&admits.passes.iter().filter_map(bearer).collect::<Vec<_>>());
        self.admission.only(&admits.peers);
        self.admitted = admits.version;
    }

    fn handle(&mut self, reply: Reply, stop: &Stop) {
        self.spool.taken(&reply.taken);
        self.wanted = reply.wants_settings;
        if self.read.elapsed() >= SETTINGS_STAND {
            (self.settings, self.read) = (settings(), clock::now());
        }
        if let Some(admits) = reply.admits {
            self.admit(&admits);
        }
        for mut order in reply.orders {
            order.lasts_ms = order.lasts_ms.min(LASTS_MAX_MS);
            let is_known = self.running.contains(&order.ticket) || self.spool.tickets().any(|it| *it == order.ticket);
            if is_known || self.running.len() >= RUNNING_MAX {
                continue;
            }
            self.running.insert(order.ticket.clone());
            let (found, stop) = (self.found.clone(), stop.clone());
            std::thread::spawn(move || {
                let ticket = order.ticket.clone();
                let outcome = Outcome { ticket, found: make(&order, &stop) };
                let _ = found.send(outcome);
            });
        }
    }
}

/// Makes a test when it is due.
fn make(order: &Order, stop: &Stop) -> Found {
    let began = clock::now();
    let (due, ends) = (began + Duration::from_millis(order.in_ms), began + Duration::from_millis(order.ends_in_ms));
    while !stop.is_set() && clock::now() < due {
        clock::sleep(LOOKS.min(due.saturating_duration_since(clock::now())));
    }
    match order.what {
        What::Load { down } => Found::Load(loaded(order, down, ends, stop)),
        What::Diagnose { down } => Found::Diagnosis(diagnosed(order, down)),
        What::Probe { stamp, trace } => Found::Probe(probed(order, SocketAddr::new(order.to.ip(), stamp), trace)),
    }
}

/// Routers answer a host once a second: one trace at a time.
static TRACES: Mutex<()> = Mutex::new(());

fn probed(order: &Order, to: SocketAddr, trace: bool) -> MeshPath {
    let (interval_us, count) = (PROBE_INTERVAL_US, probe_packets(order.lasts_ms));
    let packets_of = ProbeOrder { to: Vec::new(), packets: u32::try_from(count).unwrap_or(u32::MAX), interval_us };
    // Where another path has its turn, this one has it the next time.
    let turn = trace.then(|| match TRACES.try_lock() {
        Ok(turn) => Some(turn),
        Err(TryLockError::Poisoned(turn)) => Some(turn.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    });
    let turn = turn.flatten();
    let mut seen = if turn.is_some() {
        let to = vec![(to.ip(), None)];
        probe(&ProbeOrder { to, packets: 0, interval_us }).pop().unwrap_or_default()
    } else {
        Probed::default()
    };
    drop(turn);
    if let Err(why) = packets(to, &packets_of, &mut seen) {
        seen.remarks.push(why);
    }
    let Probed { rtt_us, packets, one_way, mtu_bytes, hops, remarks } = seen;
    MeshPath { from: 0, to: 0, rtt_us, packets, one_way, mtu_bytes, hops, remarks }
}

fn load_of(order: &Order, down: bool, lasts_ms: u64) -> LoadOrder {
    let plan = usual::load(1, if down { Direction::Down } else { Direction::Up }, lasts_ms);
    LoadOrder { to: order.to, token: order.token.clone(), plan }
}

/// What limits a load, in a sentence whose places are the hosts of the fleet.
fn diagnosed(order: &Order, down: bool) -> Result<String, String> {
    let mut run = diagnose(load_of(order, down, DIAGNOSIS_MS * 2 / 5));
    // The other host may know of it a little later.
    if run.is_err() {
        clock::sleep(ADMITS);
        run = diagnose(load_of(order, down, DIAGNOSIS_MS * 2 / 5));
    }
    let run = run?;
    let report = narrows_diagnose::report(&run).ok_or("nothing was measured")?;
    let Ticket { from, to, .. } = &order.ticket;
    let [opener, other] = if down { [to, from] } else { [from, to] };
    let (says, _, fix) = said(&report.verdict, |place| match place {
        Place::Path => "on the path".to_owned(),
        Place::Client => format!("at {opener}"),
        Place::Server => format!("at {other}"),
    });
    // Of what is bad nobody reads that it is healthy.
    let says = says.strip_prefix("healthy: ").map_or(says.clone(), |says| format!("no host holds it back: {says}"));
    Ok(fix.map_or_else(|| says.clone(), |fix| format!("{says}; {fix}")))
}

fn is_of_path(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionRefused, ConnectionReset, HostUnreachable, NetworkUnreachable, TimedOut};
    let of_path = [ConnectionRefused, ConnectionReset, HostUnreachable, NetworkUnreachable, TimedOut];
    of_path.contains(&error.kind())
}

fn loaded(order: &Order, down: bool, ends: Instant, stop: &Stop) -> MeshState {
    let lasts = Duration::from_millis(order.lasts_ms);
    let mut failed = "it was stopped".to_owned();
    for _ in 0..ADMITS_TRIES {
        if stop.is_set() {
            break;
        }
        if clock::now() + lasts > ends {
            failed = "there was no time left for it".to_owned();
            break;
        }
        if let Err(error) = TcpStream::connect_timeout(&order.to, CONNECTS) {
            let why = error.to_string();
            let why = why.split(" (os error").next().unwrap_or_default().to_owned();
            // What this host lacks, such as a port or a descriptor, says nothing of the path.
            return if is_of_path(&error) { MeshState::Unreachable(why) } else { MeshState::Failed(why) };
        }
        if order.token.parse::<Token>().is_err() {
            return MeshState::Failed("invalid token of the other host".to_owned());
        }
        match load(load_of(order, down, order.lasts_ms)) {
            Ok(Loaded { goodput_bps, retransmits, busy }) => {
                return MeshState::Measured { goodput_bps, retransmits, busy };
            }
            Err(why) => failed = why,
        }
        clock::sleep(ADMITS);
    }
    MeshState::Failed(failed)
}
