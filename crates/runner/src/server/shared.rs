//! What all connections of a server share: its sessions, who may load the path, and the trials that wait for connections.

use super::admission::Passes;
use super::audit::Audit;
use super::config::ServeConfig;
use super::events::Events;
use super::frames::Uses;
use super::gate::{Gate, Turn};
use super::holder::Holder;
use super::limits::Standing;
use super::refusal::Refused;
use super::running::Expected;
use super::session::Session;
use super::tally::Tally;
use super::turns::Turns;
use super::unauthenticated::Unauthenticated;
use crate::helper::{Deputies, Reading, Tuning};
use crate::tokens::Tokens;
use crate::{Stop, lock};
use narrows_render::metrics::ServerFigures;
use narrows_sys::{sysctl, tcp};
use narrows_wire::Key;
use narrows_wire::api::{Reason, SessionUse};
use narrows_wire::token::Secret;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};

/// The source of an address, for limits: of IPv6 a network of 64 bits is one host's.
pub(crate) fn source_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
        address => address,
    }
}

/// Sessions that only look, with the token and without it, are not queued, but not without number either.
const MAX_LOOKING: usize = 32;

/// The server as each of its connections sees it.
pub(super) struct Shared {
    pub(super) config: ServeConfig,
    pub(super) port: u16,
    pub(super) secret: Option<Secret>,
    pub(super) tokens: Arc<Tokens>,
    pub(super) passes: Arc<Passes>,
    pub(super) audit: Arc<Audit>,
    pub(super) unauthenticated: Unauthenticated,
    pub(super) tally: Tally,
    pub(super) tuner: Tuning,
    pub(super) reading: Reading,
    /// Devices that send or count frames, over all sessions.
    pub(super) uses: Uses,
    /// Inventories that are read at one time: each takes a thread, and the roll-back must have one.
    pub(super) inventories: Turns,
    pub(super) links: Turns,
    /// Traces back to clients at a time.
    pub(super) traces: Arc<Semaphore>,
    /// Readings of the host's connections at a time.
    pub(super) connections: Semaphore,
    /// What browsers are shown.
    pub(super) page: Option<axum::Router>,
    /// The one port, where it is one.
    listening: OnceLock<std::net::TcpListener>,
    stop: watch::Sender<bool>,
    table: Mutex<Table>,
    /// Told when a session is gone for good.
    left: watch::Sender<usize>,
}

struct Table {
    gate: Gate,
    next: u64,
    /// Those that may still be used, by id.
    sessions: HashMap<String, Arc<Session>>,
    /// Those that are being closed as well, and a load of this host itself.
    alive: usize,
    /// Ends the load of this host itself.
    own: Option<Stop>,
    expected: HashMap<Key, Expected>,
}

impl Table {
    /// A load is over: the next one may begin.
    fn leave(&mut self, number: u64) {
        self.gate.leave(number);
        for other in self.sessions.values().filter(|other| other.wanted == SessionUse::Load) {
            if let Some(turn) = self.gate.turn(other.number) {
                other.set_turn(turn);
            }
        }
    }
}

/// The turn of a load of this host itself, until it is dropped.
pub(super) struct OwnTurn(Arc<Shared>, u64);

impl Drop for OwnTurn {
    fn drop(&mut self) {
        let mut table = lock(&self.0.table);
        table.leave(self.1);
        table.own = None;
        table.alive -= 1;
        self.0.left.send_replace(table.alive);
    }
}

impl Shared {
    pub(super) fn new(
        config: ServeConfig,
        port: u16,
        secret: Option<Secret>,
        (tokens, audit): (Tokens, Audit),
        Deputies { tuning, reading }: Deputies,
        stop: watch::Sender<bool>,
    ) -> Self {
        let gate = Gate::new(config.parallel, config.queue);
        let table = Table { gate, next: 0, sessions: HashMap::new(), alive: 0, own: None, expected: HashMap::new() };
        Self {
            passes: config.passes.clone(),
            config,
            port,
            secret,
            tokens: Arc::new(tokens),
            audit: Arc::new(audit),
            unauthenticated: Unauthenticated::default(),
            tally: Tally::new(),
            tuner: tuning,
            reading,
            uses: Uses::default(),
            inventories: Turns::default(),
            links: Turns::default(),
            traces: Arc::new(Semaphore::new(2)),
            connections: Semaphore::new(1),
            page: None,
            listening: OnceLock::new(),
            stop,
            table: Mutex::new(table),
            left: watch::Sender::new(0),
        }
    }

    /// Remembers the listening socket.
    pub(super) fn listens(&self, listener: &std::net::TcpListener) {
        let _ = listener.try_clone().map(|listener| self.listening.set(listener));
    }

    /// Lets the connections of the next trial begin with the buffers that this host now gives to new sockets.
    pub(super) fn renew_buffers(&self) {
        let initial = |key: &str| sysctl::read(key).ok()?.split_whitespace().nth(1)?.parse().ok();
        if let (Some(listener), Some(receive), Some(send)) =
            (self.listening.get(), initial("net.ipv4.tcp_rmem"), initial("net.ipv4.tcp_wmem"))
        {
            let _ = tcp::set_initial_buffers(listener, receive, send);
        }
    }

    pub(super) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Opens a session, or says why not.
    pub(super) fn open(
        &self,
        address: Option<IpAddr>,
        holder: Holder,
        wanted: SessionUse,
        events: Events,
    ) -> Result<Arc<Session>, Refused> {
        let standing = holder.standing();
        let id: [u8; 16] = narrows_sys::random::bytes().map_err(Refused::failed)?;
        let id = id.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let mut table = lock(&self.table);
        let source = address.map(source_of);
        let same = |other: &&Arc<Session>| other.standing == Standing::Open && other.address.map(source_of) == source;
        if standing == Standing::Open && table.sessions.values().any(|other| same(&other)) {
            return Err(Refused::new(
                Reason::Busy,
                "without a token this server runs one session for each client address",
            ));
        }
        let number = table.next;
        table.next += 1;
        let turn = match wanted {
            SessionUse::Load => table.gate.enter(number, standing),
            SessionUse::Look => {
                let same = |other: &&Arc<Session>| other.wanted == SessionUse::Look && other.standing == standing;
                let looking = table.sessions.values().filter(same).count();
                (looking < MAX_LOOKING).then_some(Turn::Admitted)
            }
        };
        let turn = turn
            .ok_or_else(|| Refused::new(Reason::Busy, "the server is busy and its queue is full; try again later"))?;
        let session = Arc::new(Session::new(number, id.clone(), address, holder, wanted, turn, events));
        table.sessions.insert(id, session.clone());
        table.alive += 1;
        let in_the_way = table.gate.in_the_way();
        for guest in table.sessions.values().filter(|other| in_the_way.contains(&other.number)) {
            guest.end.raise("a client with the token needs the server");
        }
        Ok(session)
    }

    pub(super) fn session(&self, id: &str) -> Option<Arc<Session>> {
        lock(&self.table).sessions.get(id).filter(|session| !session.end.is_raised()).cloned()
    }

    /// Why the holder of a session is let in no more; `None`: it still is.
    pub(super) fn ended(&self, holder: &Holder) -> Option<&'static str> {
        match holder {
            Holder::Named(token) => self.tokens.ended(token),
            Holder::Pass(pass) => {
                let ended = !self.passes.knows(pass);
                ended.then_some("the mesh that let it in has ended")
            }
            Holder::Stdio | Holder::Server | Holder::Guest => None,
        }
    }

    /// What scrapers read.
    pub(super) fn figures(&self) -> ServerFigures {
        let mut sessions = [0; 3];
        let table = lock(&self.table);
        for session in table.sessions.values() {
            let state = match session.wanted {
                SessionUse::Look => 2,
                SessionUse::Load => usize::from(!table.gate.runs(session.number)),
            };
            sessions[state] += 1;
        }
        let Tally { started_unix_ms, done, failed, bytes, last_unix_ms, refused } = &self.tally;
        ServerFigures {
            started_unix_ms: *started_unix_ms,
            sessions,
            loads: [done, failed].map(|count| count.load(Relaxed)),
            load_bytes: bytes.load(Relaxed),
            last_load_unix_ms: last_unix_ms.load(Relaxed),
            refused: refused.load(Relaxed),
        }
    }

    /// Whether another session loads the path.
    pub(super) fn others_run(&self, session: &Session) -> bool {
        lock(&self.table).gate.others_run(session.number)
    }

    /// Why a session waits, in a sentence.
    pub(super) fn why_queued(&self, standing: Standing) -> String {
        let table = lock(&self.table);
        let running = |session: &&Arc<Session>| table.gate.runs(session.number);
        let who = table.sessions.values().filter(running).find_map(|session| session.address);
        // Who else uses the server is no guest's business.
        let who = who.filter(|_| standing == Standing::Trusted);
        let who =
            who.map_or_else(|| "another client".to_owned(), |address| format!("the client {}", address.to_canonical()));
        match table.gate.parallel() {
            1 => format!("{who} is measuring; this server runs one load at a time"),
            many => format!("{who} and others are measuring; this server runs {many} loads at a time"),
        }
    }

    /// Takes no more requests for a session.
    pub(super) fn forget(&self, session: &Session) {
        lock(&self.table).sessions.remove(&session.id);
    }

    /// A session is over with all that it did: the next one may begin.
    pub(super) fn leave(&self, session: &Session) {
        let mut table = lock(&self.table);
        table.leave(session.number);
        table.alive -= 1;
        self.left.send_replace(table.alive);
    }

    /// The turn of a load that this host makes itself, which ends with the server; `None`: a client's is under way, or waits.
    pub(super) fn own_turn(self: &Arc<Self>, stop: &Stop) -> Option<OwnTurn> {
        let mut table = lock(&self.table);
        let number = table.next;
        table.next += 1;
        table.gate.enter_alone(number).then(|| {
            table.own = Some(stop.clone());
            table.alive += 1;
            OwnTurn(self.clone(), number)
        })
    }

    /// Ends all sessions, and a load of this host itself, and waits until they are closed.
    pub(super) async fn end_all(&self, why: &'static str) {
        let alive = {
            let table = lock(&self.table);
            table.sessions.values().for_each(|session| session.end.raise(why));
            table.own.iter().for_each(Stop::stop);
            table.alive
        };
        self.left.send_replace(alive);
        let mut left = self.left.subscribe();
        let _ = tokio::time::timeout(Duration::from_secs(10), left.wait_for(|alive| *alive == 0)).await;
        // A last moment for the words of goodbye.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    pub(super) fn expect(&self, key: Key, expected: Expected) {
        lock(&self.table).expected.insert(key, expected);
    }

    pub(super) fn expect_no_more(&self, key: &Key) {
        lock(&self.table).expected.remove(key);
    }

    pub(super) fn with_expected<T>(&self, key: &Key, act: impl FnOnce(&mut Expected) -> T) -> Option<T> {
        lock(&self.table).expected.get_mut(key).map(act)
    }
}
