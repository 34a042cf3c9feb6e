//! Fleets of agents without hosts: a controller as it runs, with agents that answer at once.

#[cfg(feature = "nats")]
mod bus;
mod cut;
mod hostile;
#[cfg(feature = "postgres")]
#[path = "../../../../store/tests/server/mod.rs"]
mod server;
mod stolen;
mod third;

use super::command::Command;
use super::requests::{ask, history, status};
use super::transport::{Joins, Transport, transport};
use super::{ControllerSpec, Holder, controller, token_of};
use crate::Stop;
use crate::remote::TargetSpec;
use cut::Cut;
use narrows_fleet::protocol::{Agent, Found, Order, Outcome, Poll, Reply, Settings, Ticket, What};
use narrows_model::run::fleet::FleetStatus;
use narrows_model::run::mesh::{MeshPath, MeshState};
use narrows_sys::{clock, files};
use narrows_wire::Token;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

const HOSTS: [&str; 3] = ["a", "b", "c"];
/// Loads in both directions and probes, of three pairs.
const TESTS: u64 = 6 + 3;
const FILE: &str = "name = 'three'\nhosts.a = { address = '192.0.2.1' }\nhosts.b = { address = '192.0.2.2' }\n\
    hosts.c = { address = '192.0.2.3' }\n[[mesh]]\nname = 'all'\n[[mesh.test]]\nkind = 'load'\nevery = '1h'\nlasts = '200ms'\n\
    [[mesh.test]]\nkind = 'probe'\nevery = '1h'\nlasts = '200ms'\n";
/// Whatever is waited for comes in this time.
const COMES: Duration = Duration::from_secs(90);
/// Less often than a controller takes polls of a host.
const APART: Duration = Duration::from_millis(60);

/// A controller that runs while the test does.
struct Running {
    stop: Stop,
    thread: Option<std::thread::JoinHandle<()>>,
    users: TargetSpec,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the controller");
        }
    }
}

fn target(at: &str, token: Token) -> TargetSpec {
    TargetSpec { asked: at.to_owned(), family: None, port: 0, token: Some(token) }
}

fn run(state: &Path, bus: Option<&str>) -> Running {
    run_with(state, FILE, bus, state.join("runs.db"))
}

fn run_with(state: &Path, text: &str, bus: Option<&str>, store: PathBuf) -> Running {
    let file = state.join("fleet.toml");
    files::write_whole(&file, text.as_bytes(), 0o600).expect("a file");
    let (bus, state) = (bus.map(str::to_owned), state.to_owned());
    let (page, audit) = (None, None);
    let spec = ControllerSpec { file, port: Some(0), bind: None, state: state.clone(), store, bus, page, audit };
    let (stop, (said, heard)) = (Stop::new(), channel());
    let stopped = stop.clone();
    let thread = std::thread::spawn(move || {
        let mut watch = |line: &str| _ = said.send(line.to_owned());
        controller(&spec, &stopped, &mut watch).expect("a controller");
    });
    let line = heard.recv().expect("its first line");
    let port = line.split_once(" listens on port ").and_then(|(_, rest)| rest.split(';').next()).expect("a port");
    let token = crate::trust::read_token(&state.join("controller/token")).expect("a token");
    Running { stop, thread: Some(thread), users: target(&format!("127.0.0.1:{port}"), token) }
}

/// The token of a host's agent.
fn token(state: &Path, host: &str) -> Token {
    let token = token_of(&state.join("fleet.toml"), Holder::Agent(host), state).expect("a token");
    token.parse().expect("a token")
}

/// The agents of all hosts of [`FILE`], which reach the controller at an address.
fn agents(state: &Path, address: &str) -> Vec<Stub> {
    let agent = |(nth, host): (u64, &&str)| {
        Stub::new(nth, transport(&[target(address, token(state, host))], None).expect("a transport"))
    };
    (1..).zip(&HOSTS).map(agent).collect()
}

/// An agent whose tests are found at once, on a transport that loses, repeats and reorders what it carries.
struct Stub {
    transport: Box<dyn Transport + Send>,
    poll: Poll,
    old: Vec<Poll>,
    done: BTreeSet<Ticket>,
    /// Tests that it has and does not end.
    held: BTreeSet<Ticket>,
    random: u64,
}

impl Stub {
    fn new(nth: u64, transport: Box<dyn Transport + Send>) -> Self {
        let agent = Agent {
            version: "1".to_owned(),
            port: 5221,
            fingerprint: narrows_wire::token::Fingerprint([7; 32]).to_string(),
            stamp: 5222,
            started: nth.to_string(),
        };
        let (outcomes, working, settings) = (Vec::new(), Vec::new(), Settings::default());
        let poll = Poll { agent, outcomes, working, admitted: 0, clock: None, settings };
        let (done, held, random) = (BTreeSet::new(), BTreeSet::new(), 88_172_645_463_325_252 + nth);
        Self { transport, poll, old: Vec::new(), done, held, random }
    }

    /// Xorshift64 (G. Marsaglia 2003).
    fn one_in(&mut self, many: u64) -> bool {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random.is_multiple_of(many)
    }

    /// Says what it has. Something to say makes the controller answer soon.
    fn works(&mut self) {
        self.poll.working = self.poll.outcomes.iter().map(|it| it.ticket.clone()).chain(self.held.clone()).collect();
        if self.poll.working.is_empty() {
            let [mesh, test, from, to] = ["none"; 4].map(str::to_owned);
            self.poll.working.push(Ticket { mesh, test, slot: 0, from, to, fence: 0 });
        }
    }

    fn hears(&mut self, reply: &Reply) {
        self.poll.outcomes.retain(|it| !reply.taken.contains(&it.ticket));
        if let Some(admits) = &reply.admits {
            self.poll.admitted = admits.version;
        }
    }

    /// Ends a test; whether it was another one.
    fn ends(&mut self, order: &Order) -> bool {
        let is_new = self.done.insert(order.ticket.clone());
        if is_new {
            self.held.remove(&order.ticket);
            self.poll.outcomes.push(Outcome { ticket: order.ticket.clone(), found: found(order) });
        }
        is_new
    }

    fn exchange(&mut self) {
        self.works();
        if self.one_in(5)
            && let Some(old) = self.old.pop()
        {
            let _ = self.transport.exchange(&old);
        }
        if self.one_in(4) {
            self.old.push(self.poll.clone());
        }
        let (is_lost, is_repeated) = (self.one_in(4), self.one_in(4));
        if is_repeated {
            let _ = self.transport.exchange(&self.poll);
        }
        let Ok(reply) = self.transport.exchange(&self.poll) else { return };
        if is_lost {
            return;
        }
        self.hears(&reply);
        for order in reply.orders {
            self.ends(&order);
        }
    }

    /// A poll that is answered. What becomes of its orders is for who calls.
    fn steady(&mut self) -> Reply {
        let until = clock::now() + COMES;
        loop {
            clock::sleep(APART);
            self.works();
            match self.transport.exchange(&self.poll) {
                Ok(reply) => {
                    self.hears(&reply);
                    return reply;
                }
                // A fleet that begins anew, since hosts joined it.
                Err(why) => assert!(clock::now() < until, "{why}"),
            }
        }
    }
}

/// A poll of each agent, all at once.
fn together(agents: &mut [Stub]) -> Vec<Reply> {
    std::thread::scope(|scope| {
        let polls: Vec<_> = agents.iter_mut().map(|agent| scope.spawn(move || agent.steady())).collect();
        polls.into_iter().map(|it| it.join().expect("a reply")).collect()
    })
}

fn found(order: &Order) -> Found {
    match order.what {
        What::Load { .. } | What::Diagnose { .. } => {
            Found::Load(MeshState::Measured { goodput_bps: 1e9, retransmits: None, busy: [None; 2] })
        }
        What::Probe { .. } => {
            Found::Probe(MeshPath { rtt_us: Some([1.0; 3]), packets: Some([9, 0, 0]), ..MeshPath::default() })
        }
    }
}

const ALL: Command = Command::Run { mesh: None, between: None };

/// What carries the messages of a fleet, and keeps its results.
#[derive(Default)]
struct Over<'a> {
    bus: Option<&'a str>,
    /// The agents reach the controller through it.
    cut: Option<&'a Cut>,
    /// `None`: a file.
    store: Option<PathBuf>,
}

/// Each planned test ends once, whatever the transport to the controller loses, repeats or reorders. `break_it` is
/// called in the middle.
fn conforms(state: &Path, over: Over<'_>, break_it: &mut dyn FnMut()) {
    let running = run_with(state, FILE, over.bus, over.store.unwrap_or_else(|| state.join("runs.db")));
    let through = over.cut.map(|cut| cut.leads_to(&running.users.asked));
    let address = over.bus.map(str::to_owned).or(through).unwrap_or_else(|| running.users.asked.clone());
    let mut agents = agents(state, &address);
    let mut asked = 0;
    let until = clock::now() + Duration::from_secs(60);
    let ends = |it: &FleetStatus| it.tests.iter().map(|it| it.done + it.failed + it.missed).sum::<u64>();
    loop {
        std::thread::scope(|scope| agents.iter_mut().for_each(|agent| _ = scope.spawn(move || agent.exchange())));
        let status = status(&running.users).expect("a status");
        if ends(&status) == TESTS * asked {
            if asked == 3 {
                assert!(status.tests.iter().all(|it| it.failed + it.missed == 0), "{:?}", status.tests);
                break;
            }
            if asked == 1 {
                break_it();
            }
            ask(&running.users, &ALL).expect("planned");
            asked += 1;
        }
        assert!(clock::now() < until && ends(&status) <= TESTS * asked, "{:?}", status.tests);
    }
}

/// The hosts of a fleet, as its controller tells.
fn hosts(of: &Running) -> Vec<String> {
    status(&of.users).expect("a status").hosts.into_iter().map(|it| it.name).collect()
}

#[test]
fn https_conforms() {
    conforms(tempfile::tempdir().expect("a directory").path(), Over::default(), &mut || {});
}

#[test]
fn https_conforms_where_the_network_is_cut_for_seconds() {
    let (place, cut) = (tempfile::tempdir().expect("a directory"), Cut::new());
    let over = Over { cut: Some(&cut), ..Over::default() };
    conforms(place.path(), over, &mut || cut.lasts(Duration::from_secs(3)));
    assert!(cut.refused() > 0, "somebody polled meanwhile");
}

#[test]
fn agents_join_are_tested_and_are_still_known_to_the_next_controller() {
    let place = tempfile::tempdir().expect("a directory");
    let state = place.path();
    // No host has an address in the file: by a loopback address none is tested. The service names that which agents say.
    let text = "name = 'three'\n[[join]]\ngroup = 'pods'\nservice = '192.0.2.9'\nmost = 2\n[[mesh]]\nname = 'all'\n\
        [[mesh.test]]\nkind = 'load'\nevery = '1h'\nlasts = '200ms'\n";
    let running = run_with(state, text, None, state.join("runs.db"));
    let token = token_of(&state.join("fleet.toml"), Holder::Group("pods"), state).expect("a token");
    let address = Some(std::net::IpAddr::from([192, 0, 2, 9]));
    let agent = |nth: u64, name: &str| {
        let joins = Joins { name: name.to_owned(), address };
        let to = target(&running.users.asked, token.parse().expect("a token"));
        Stub::new(nth, transport(&[to], Some(&joins)).expect("a transport"))
    };
    let mut agents = [agent(1, "p1"), agent(2, "p2")];
    let until = clock::now() + Duration::from_secs(60);
    let mut is_asked = false;
    loop {
        std::thread::scope(|scope| agents.iter_mut().for_each(|agent| _ = scope.spawn(move || agent.exchange())));
        let status = status(&running.users).expect("a status");
        if !is_asked && status.hosts.len() == 2 {
            is_asked = ask(&running.users, &ALL).is_ok();
        }
        if status.tests.iter().map(|it| it.done).sum::<u64>() >= 2 {
            break;
        }
        assert!(clock::now() < until, "{status:?}");
    }
    assert_eq!(hosts(&running), ["p1", "p2"]);
    let refused = |nth: u64, name: &str| {
        let mut agent = agent(nth, name);
        let poll = agent.poll.clone();
        agent.transport.exchange(&poll).expect_err("refused")
    };
    assert!(refused(3, "p3").contains("2 hosts joined the group pods"), "{}", refused(3, "p3"));
    assert!(refused(3, "p/3").contains("404") || !refused(3, "p/3").is_empty());
    let own = target(&running.users.asked, token.parse().expect("a token"));
    let mut nameless = transport(&[own], None).expect("a transport");
    let why = nameless.exchange(&agents[0].poll).expect_err("no name");
    assert!(why.contains("--name"), "{why}");
    drop(running);
    let again = run_with(state, text, None, state.join("runs.db"));
    while hosts(&again) != ["p1", "p2"] {
        assert!(clock::now() < until, "{:?}", hosts(&again));
        clock::sleep(Duration::from_millis(100));
    }
}
