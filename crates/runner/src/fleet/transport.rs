//! The transport of an agent's messages to the controller. It may lose and repeat them.

use crate::instruments::LiveInstruments;
use crate::remote::{Options, Remote, RemoteError, TargetSpec};
use narrows_fleet::protocol::{Poll, Reply};
use std::net::IpAddr;
use std::time::Duration;

/// A transport.
pub(super) trait Transport {
    /// Sends a message and waits for the answer: a long poll.
    /// Errors: it did not arrive, or its answer did not.
    fn exchange(&mut self, poll: &Poll) -> Result<Reply, String>;
}

/// The controller answers at least so often.
pub(super) const HOLDS: Duration = Duration::from_secs(25);
/// Beside that.
pub(super) const AROUND: Duration = Duration::from_secs(10);

/// The path of the request, …
pub(super) const PATH: &str = "/v1/fleet/poll";
/// … and of an agent that joins the fleet; its name there and its address follow.
pub(super) const JOIN_PATH: &str = "/v1/fleet/join";

/// An agent of no host in the file.
#[derive(Debug, Clone)]
pub struct Joins {
    pub name: String,
    /// Where the others load it, if the service of its group names that; `None`: where it comes from.
    pub address: Option<IpAddr>,
}

impl Joins {
    fn path(&self) -> String {
        let address = self.address.map_or_else(|| "-".to_owned(), |address| address.to_string());
        format!("{JOIN_PATH}/{}/{address}", self.name)
    }
}

/// Requests over HTTPS; the connection is made anew where it was lost, with the next controller if there are several.
pub(super) struct Https {
    to: Vec<TargetSpec>,
    /// The place of the one that is asked.
    at: usize,
    path: String,
    remote: Option<Remote>,
}

/// Whether an address is that of a bus.
pub fn is_bus(address: &str) -> bool {
    address.starts_with("nats://") || address.starts_with("tls://")
}

impl Transport for Https {
    fn exchange(&mut self, poll: &Poll) -> Result<Reply, String> {
        let mut failed = "there is no controller".to_owned();
        for _ in 0..self.to.len() {
            match self.ask(poll) {
                Ok(reply) => return Ok(reply),
                Err(why) => failed = why,
            }
            self.at = (self.at + 1) % self.to.len();
        }
        Err(failed)
    }
}

/// A connection to the controller of a fleet.
pub(super) fn connected(controller: &TargetSpec) -> Result<Remote, RemoteError> {
    Remote::connect(controller, &Options::new(LiveInstruments::Nothing)).map_err(|error| match error {
        RemoteError::Refused(at) => RemoteError::NoController(at),
        error => error,
    })
}

impl Https {
    fn ask(&mut self, poll: &Poll) -> Result<Reply, String> {
        let remote = match self.remote.take() {
            Some(remote) => remote,
            None => connected(&self.to[self.at]).map_err(|it| it.to_string())?,
        };
        let reply = remote.post(&self.path, poll, HOLDS + AROUND).map_err(|error| error.to_string())?;
        self.remote = Some(remote);
        Ok(reply)
    }
}

/// The transport to controllers of one fleet: each as `host[:port]`, or one bus as `nats://host:port`.
/// Errors: the address is invalid, or an agent joins over a bus.
pub(super) fn transport(to: &[TargetSpec], joins: Option<&Joins>) -> Result<Box<dyn Transport + Send>, String> {
    let buses: Vec<&TargetSpec> = to.iter().filter(|it| is_bus(&it.asked)).collect();
    if buses.is_empty() {
        let path = joins.map_or_else(|| PATH.to_owned(), Joins::path);
        return Ok(Box::new(Https { to: to.to_vec(), at: 0, path, remote: None }));
    }
    if joins.is_some() {
        return Err("no agent joins a fleet over a bus, whose users are those of its file".to_owned());
    }
    #[cfg(feature = "nats")]
    {
        let token = buses.iter().find_map(|it| it.token.as_ref()).ok_or("an agent needs its token")?;
        let servers: Vec<&str> = buses.iter().map(|it| it.asked.as_str()).collect();
        Ok(Box::new(super::nats::Nats::new(&servers.join(","), &token.secret)?))
    }
    #[cfg(not(feature = "nats"))]
    Err(super::NO_NATS.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stop;
    use crate::fleet::command::Command;
    use crate::fleet::requests::{ask, status};
    use crate::fleet::{ControllerSpec, Holder, controller, token_of};
    use narrows_fleet::protocol::{Agent, Found, Order, Outcome, Poll, Settings, Ticket, What};
    use narrows_model::run::mesh::{MeshPath, MeshState};
    use narrows_sys::{clock, files};
    use narrows_wire::Token;
    use std::collections::BTreeSet;
    use std::path::Path;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    const HOSTS: [&str; 3] = ["a", "b", "c"];
    /// Loads in both directions and probes, of three pairs.
    const TESTS: u64 = 6 + 3;
    const FILE: &str = "name = 'three'\nhosts.a = { address = '192.0.2.1' }\nhosts.b = { address = '192.0.2.2' }\n\
        hosts.c = { address = '192.0.2.3' }\n[[mesh]]\nname = 'all'\n[[mesh.test]]\nkind = 'load'\nevery = '1h'\nlasts = '200ms'\n\
        [[mesh.test]]\nkind = 'probe'\nevery = '1h'\nlasts = '200ms'\n";

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

    fn run(state: &Path, bus: Option<String>) -> Running {
        run_with(state, bus, FILE)
    }

    fn run_with(state: &Path, bus: Option<String>, text: &str) -> Running {
        let file = state.join("fleet.toml");
        files::write_whole(&file, text.as_bytes(), 0o600).expect("a file");
        let (state, store) = (state.to_owned(), state.join("runs.db"));
        let (state, page, audit) = (state.clone(), None, None);
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

    /// An agent whose tests are found at once, on a transport that loses, repeats and reorders what it carries.
    struct Stub {
        transport: Box<dyn Transport + Send>,
        poll: Poll,
        old: Vec<Poll>,
        done: BTreeSet<Ticket>,
        random: u64,
    }

    impl Stub {
        fn new(nth: u64, transport: Box<dyn Transport + Send>) -> Self {
            let word = str::to_owned;
            let fingerprint = Token {
                fingerprint: narrows_wire::token::Fingerprint([7; 32]),
                secret: narrows_wire::token::Secret::new([0; 24]),
            };
            let agent = Agent {
                version: word("1"),
                port: 5221,
                fingerprint: fingerprint.fingerprint.to_string(),
                stamp: 5222,
                started: nth.to_string(),
            };
            let poll = Poll {
                agent,
                outcomes: Vec::new(),
                working: Vec::new(),
                admitted: 0,
                clock: None,
                settings: Settings::default(),
            };
            Self { transport, poll, old: Vec::new(), done: BTreeSet::new(), random: 88_172_645_463_325_252 + nth }
        }

        /// Xorshift64 (G. Marsaglia 2003).
        fn one_in(&mut self, many: u64) -> bool {
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            self.random.is_multiple_of(many)
        }

        fn exchange(&mut self) {
            self.poll.working = self.poll.outcomes.iter().map(|it| it.ticket.clone()).collect();
            // Something to say makes the controller answer at once.
            if self.poll.working.is_empty() {
                let [mesh, test, from, to] = ["none"; 4].map(str::to_owned);
                self.poll.working.push(Ticket { mesh, test, slot: 0, from, to, fence: 0 });
            }
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
            self.poll.outcomes.retain(|it| !reply.taken.contains(&it.ticket));
            if let Some(admits) = reply.admits {
                self.poll.admitted = admits.version;
            }
            for order in reply.orders {
                if self.done.insert(order.ticket.clone()) {
                    self.poll.outcomes.push(Outcome { ticket: order.ticket.clone(), found: found(&order) });
                }
            }
        }
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

    /// Each planned test ends once, whatever the transport to the controller loses, repeats or reorders. `break_it` is
    /// called in the middle.
    fn conforms(state: &Path, bus: Option<&str>, break_it: &mut dyn FnMut()) {
        let running = run(state, bus.map(str::to_owned));
        let address = bus.unwrap_or(&running.users.asked).to_owned();
        let agent = |(nth, host): (u64, &&str)| {
            let token = token_of(&state.join("fleet.toml"), Holder::Agent(host), state).expect("a token");
            Stub::new(nth, transport(&[target(&address, token.parse().expect("a token"))], None).expect("a transport"))
        };
        let mut agents: Vec<Stub> = (1..).zip(&HOSTS).map(agent).collect();
        let mut asked = 0;
        let until = clock::now() + Duration::from_secs(60);
        let ends = |it: &narrows_model::run::fleet::FleetStatus| {
            it.tests.iter().map(|it| it.done + it.failed + it.missed).sum::<u64>()
        };
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
                ask(&running.users, &Command::Run { mesh: None, between: None }).expect("planned");
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
    fn agents_join_are_tested_and_are_still_known_to_the_next_controller() {
        let place = tempfile::tempdir().expect("a directory");
        let state = place.path();
        // No host has an address in the file: by a loopback address none is tested. The service names that which agents say.
        let text = "name = 'three'\n[[join]]\ngroup = 'pods'\nservice = '192.0.2.9'\nmost = 2\n[[mesh]]\nname = 'all'\n\
            [[mesh.test]]\nkind = 'load'\nevery = '1h'\nlasts = '200ms'\n";
        let running = run_with(state, None, text);
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
                is_asked = ask(&running.users, &Command::Run { mesh: None, between: None }).is_ok();
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
        let again = run_with(state, None, text);
        while hosts(&again) != ["p1", "p2"] {
            assert!(clock::now() < until, "{:?}", hosts(&again));
            clock::sleep(Duration::from_millis(100));
        }
    }

    #[test]
    fn https_conforms() {
        conforms(tempfile::tempdir().expect("a directory").path(), None, &mut || {});
    }

    /// A nats-server for the users of a fleet, where there is one; it ends with this thread.
    #[cfg(feature = "nats")]
    fn bus(state: &Path, port: u16) -> Option<std::process::Child> {
        let users = crate::fleet::users_of(&state.join("fleet.toml"), state).expect("users");
        let file = state.join("nats.conf");
        files::write_whole(&file, format!("listen: 127.0.0.1:{port}\n{users}\n").as_bytes(), 0o600).expect("a file");
        let mut server = narrows_sys::process::bound_command("nats-server");
        server.arg("-c").arg(&file).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let server = server.spawn().ok()?;
        let until = clock::now() + Duration::from_secs(10);
        let at = std::net::SocketAddr::from(([127, 0, 0, 1], port));
        while std::net::TcpStream::connect_timeout(&at, Duration::from_secs(1)).is_err() {
            assert!(clock::now() < until, "no nats-server");
            clock::sleep(Duration::from_millis(20));
        }
        Some(server)
    }

    #[cfg(feature = "nats")]
    #[test]
    fn nats_conforms_where_its_server_is_killed_and_comes_back() {
        let place = tempfile::tempdir().expect("a directory");
        let state = place.path();
        files::write_whole(&state.join("fleet.toml"), FILE.as_bytes(), 0o600).expect("a file");
        crate::fleet::keys::Keys::of(state).expect("a key");
        let port = narrows_sys::net::listen(0).expect("a port").local_addr().expect("its address").port();
        let Some(mut server) = bus(state, port) else {
            // The gate names what it could not check.
            return;
        };
        conforms(state, Some(&format!("nats://127.0.0.1:{port}")), &mut || {
            server.kill().and_then(|()| server.wait()).expect("its end");
            server = bus(state, port).expect("a server");
        });
        server.kill().and_then(|()| server.wait()).expect("its end");
    }
}
