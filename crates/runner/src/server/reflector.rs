//! `narrows serve --stamp`: a reflector of STAMP sessions that keeps state (RFC 8762 section 4.3).
//!
//! It answers known peers, or everyone if configured; never with more bytes than it received; at a limited rate per address and in
//! total. A request that is forged or too short for its answer is dropped.

use super::config::StampConfig;
use super::datagrams::next;
use super::shared::source_of;
use crate::connections::within;
use narrows_sys::udp::{Arrival, UdpListener};
use narrows_sys::{clock, nanos};
use narrows_wire::stamp::Reply;
use narrows_wire::stamp::clock::{Clock, ClockError};
use narrows_wire::stamp::reflect::{Seen, Session, reflect, session_of};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};
use tokio::net::UdpSocket;

/// Packets a second of one address.
const OF_ONE: u32 = 2_000;
/// Packets a second of all …
const OF_ALL: u32 = 20_000;
/// … and of those that no network names, so that the known ones keep their share.
const OF_ALL_STRANGERS: u32 = OF_ALL / 2;
/// Sessions that are remembered …
const SESSIONS: usize = 4_096;
/// … of those that no network names …
const OF_STRANGERS: usize = SESSIONS / 2;
/// … and of one source.
const OF_SOURCE: usize = SESSIONS / 16;
/// So long after its last packet.
const REMEMBERED: Duration = Duration::from_secs(120);
const SECOND: Duration = Duration::from_secs(1);
/// So many packets are looked at before other tasks have their turn.
const AT_ONCE: usize = 64;
/// A clock may run away by 500 ppm between two corrections (NTP_PHASE_MAX, ntp_adjtime(3)).
const DRIFT: u64 = 2_000;

/// Sessions and limits, with the time as an argument.
#[derive(Debug)]
struct Reflector {
    config: StampConfig,
    sessions: HashMap<(SocketAddr, u16), (Session, Instant)>,
    /// How many of them each source has, and how many strangers have in all.
    of_source: HashMap<IpAddr, usize>,
    strangers: usize,
    /// Of this second: of each address, of all, of strangers.
    counts: HashMap<IpAddr, u32>,
    count: u32,
    count_of_strangers: u32,
    since: Instant,
    clock: ClockError,
    started: Instant,
}

impl Reflector {
    fn new(config: StampConfig, clock: ClockError, now: Instant) -> Self {
        let (sessions, of_source, counts) = (HashMap::new(), HashMap::new(), HashMap::new());
        let (strangers, count, count_of_strangers) = (0, 0, 0);
        let since = now;
        Self { config, sessions, of_source, strangers, counts, count, count_of_strangers, since, clock, started: now }
    }

    fn is_known(&self, ip: IpAddr) -> bool {
        self.config.peers.iter().any(|(network, prefix)| within(ip, *network, *prefix))
            || self.config.admission.as_ref().is_some_and(|it| it.knows(ip))
    }

    /// Whether a packet is answered, as far as its address and what came before it decide that.
    fn admits(&mut self, bytes: &[u8], from: &Arrival, now: Instant) -> bool {
        let ip = from.source.ip();
        let known = self.is_known(ip);
        if !self.config.any && !known {
            return false;
        }
        // A port of a service, or another reflector: two that answer each other would circulate one packet for ever. What gets no answer
        // counts for nobody.
        let port = from.source.port();
        if port < 1024 || port == from.local.port() {
            return false;
        }
        if now.duration_since(self.since) >= SECOND {
            (self.since, self.count, self.count_of_strangers) = (now, 0, 0);
            self.counts.clear();
            // With fewer, no limit of sessions is reached.
            if self.sessions.len() >= OF_SOURCE {
                self.sessions.retain(|_, (_, last)| now.duration_since(*last) < REMEMBERED);
                self.of_source.clear();
                self.strangers = 0;
                let left: Vec<IpAddr> = self.sessions.keys().map(|(address, _)| address.ip()).collect();
                left.into_iter().for_each(|ip| self.count_session(ip, self.is_known(ip)));
            }
        }
        if self.count >= OF_ALL || !known && self.count_of_strangers >= OF_ALL_STRANGERS {
            return false;
        }
        let of_one = self.counts.get(&ip).copied().unwrap_or(0);
        // Last, because verifying a key is expensive.
        if of_one >= OF_ONE || Reply::is_one(bytes, self.config.key.as_ref()) {
            return false;
        }
        self.counts.insert(ip, of_one + 1);
        self.count += 1;
        self.count_of_strangers += u32::from(!known);
        true
    }

    fn count_session(&mut self, ip: IpAddr, known: bool) {
        *self.of_source.entry(source_of(ip)).or_default() += 1;
        self.strangers += usize::from(!known);
    }

    fn has_room(&self, source: IpAddr, known: bool) -> bool {
        let of_source = self.of_source.get(&source).copied().unwrap_or(0);
        self.sessions.len() < SESSIONS && of_source < OF_SOURCE && (known || self.strangers < OF_STRANGERS)
    }

    /// The answer to a packet, with its traffic class.
    fn answer(&mut self, bytes: &[u8], from: &Arrival, now: Instant) -> Option<(Vec<u8>, u8)> {
        let id = (from.source, session_of(bytes, self.config.key.as_ref()));
        let known = self.is_known(from.source.ip());
        let session = self.sessions.get(&id).map(|(session, _)| *session);
        if session.is_none() && !self.has_room(source_of(id.0.ip()), known) {
            return None;
        }
        let mut session = session.unwrap_or_default();
        let marks = from.marks;
        let seen = Seen {
            at_ns: marks.at_ns.unwrap_or_else(nanos::real),
            ttl: marks.ttl.unwrap_or(0),
            class: marks.class.unwrap_or(0),
            // Only known peers choose how their packets are treated on the way back.
            may_mark: known,
        };
        let elapsed_ns = u64::try_from(now.duration_since(self.started).as_nanos()).unwrap_or(u64::MAX);
        let clock = ClockError { bound_ns: self.clock.bound_ns.saturating_add(elapsed_ns / DRIFT), ..self.clock };
        let answer = reflect(bytes, self.config.key.as_ref(), seen, &mut session, clock, nanos::real).ok()?;
        if self.sessions.insert(id, (session, now)).is_none() {
            self.count_session(id.0.ip(), known);
        }
        Some((answer.bytes, answer.dscp.unwrap_or(0) << 2))
    }

    fn has_left(&mut self, bytes: &[u8], from: &Arrival) {
        let id = (from.source, session_of(bytes, self.config.key.as_ref()));
        if let Some((session, _)) = self.sessions.get_mut(&id) {
            session.last_ns = Some(nanos::real());
        }
    }
}

/// What this host's clock says of itself.
pub(super) fn own_clock() -> ClockError {
    let (synchronised, bound_ns) = clock::error();
    ClockError { synchronised, clock: Clock::Ntp, bound_ns }
}

pub(super) async fn listen(listener: UdpListener, config: StampConfig, own: ClockError) {
    let Ok(Ok(ready)) = listener.watched().map(UdpSocket::from_std) else { return };
    let mut reflector = Reflector::new(config, own, clock::now());
    let mut buffer = vec![0; 65_536];
    while ready.readable().await.is_ok() {
        for _ in 0..AT_ONCE {
            let Ok(arrival) = next(&ready, &listener, &mut buffer) else { break };
            let Some(arrival) = arrival else { continue };
            let now = clock::now();
            let bytes = &buffer[..arrival.bytes.min(buffer.len())];
            if reflector.admits(bytes, &arrival, now)
                && let Some((answer, class)) = reflector.answer(bytes, &arrival, now)
                && listener.answer_marked(&answer, &arrival, class).is_ok()
            {
                reflector.has_left(bytes, &arrival);
            }
        }
        tokio::task::yield_now().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_sys::udp::Marks;
    use narrows_wire::stamp::Request;

    fn from(ip: [u8; 4], port: u16) -> Arrival {
        let local = SocketAddr::from(([192, 0, 2, 1], 862));
        Arrival { bytes: 44, source: SocketAddr::from((ip, port)), local, marks: Marks::default() }
    }

    fn admits(all: &mut Reflector, ip: [u8; 4], now: Instant) -> bool {
        all.admits(&Request::default().encode(None, &[]), &from(ip, 10_000), now)
    }

    fn reflector(config: StampConfig) -> (Reflector, Instant) {
        let now = clock::now();
        (Reflector::new(config, ClockError::default(), now), now)
    }

    #[test]
    fn strangers_get_nothing_unless_all_are_answered() {
        let peers = vec![(IpAddr::from([192, 0, 2, 0]), 24)];
        let (mut closed, now) = reflector(StampConfig { peers: peers.clone(), ..StampConfig::default() });
        assert!(admits(&mut closed, [192, 0, 2, 9], now) && !admits(&mut closed, [198, 51, 100, 9], now));
        let (mut open, now) = reflector(StampConfig { peers, any: true, ..StampConfig::default() });
        assert!(admits(&mut open, [198, 51, 100, 9], now));
    }

    #[test]
    fn packets_a_second_are_limited_by_address_and_in_all() {
        let peers = vec![(IpAddr::from([192, 0, 2, 0]), 24)];
        let (mut all, now) = reflector(StampConfig { any: true, peers, ..StampConfig::default() });
        let admitted = |all: &mut Reflector, ip, now| (0..OF_ONE + 500).filter(|_| admits(all, ip, now)).count() as u32;
        let strangers: Vec<u32> = (0..7).map(|last| admitted(&mut all, [198, 51, 100, last], now)).collect();
        assert_eq!(strangers, [vec![OF_ONE; 5], vec![0, 0]].concat());
        let known: Vec<u32> = (0..6).map(|last| admitted(&mut all, [192, 0, 2, last], now)).collect();
        assert_eq!(known, [vec![OF_ONE; 5], vec![0]].concat(), "known peers keep their share");
        assert_eq!(admitted(&mut all, [198, 51, 100, 200], now + SECOND), OF_ONE);
    }

    #[test]
    fn known_peers_keep_their_share_of_sessions_and_no_source_takes_all() {
        let peers = vec![(IpAddr::from([192, 0, 2, 0]), 24)];
        let (mut all, now) = reflector(StampConfig { any: true, peers, ..StampConfig::default() });
        let request = Request::default().encode(None, &[]);
        let mut answered =
            |ip, ports: u16| (0..ports).filter(|n| all.answer(&request, &from(ip, 10_000 + n), now).is_some()).count();
        assert_eq!(answered([198, 51, 100, 1], 5_000), OF_SOURCE);
        assert_eq!((2..40).map(|last| answered([198, 51, 100, last], 300)).sum::<usize>(), OF_STRANGERS - OF_SOURCE);
        assert_eq!(answered([192, 0, 2, 1], 300), OF_SOURCE, "a known peer");
    }

    #[test]
    fn a_source_that_had_all_its_sessions_has_room_when_they_are_over() {
        let (mut all, now) = reflector(StampConfig { any: true, ..StampConfig::default() });
        let request = Request::default().encode(None, &[]);
        let mut answered = |port, now| {
            let from = from([192, 0, 2, 7], port);
            all.admits(&request, &from, now) && all.answer(&request, &from, now).is_some()
        };
        assert_eq!((0..300).filter(|n| answered(10_000 + n, now)).count(), OF_SOURCE);
        assert!(!answered(20_000, now + REMEMBERED / 2) && answered(20_000, now + REMEMBERED + SECOND));
    }

    #[test]
    fn reflectors_and_services_get_no_answer() {
        let (mut all, now) = reflector(StampConfig { any: true, ..StampConfig::default() });
        let request = Request::default().encode(None, &[]);
        for port in [7, 19, 53, 123, 862, 1023] {
            assert!(!all.admits(&request, &from([192, 0, 2, 7], port), now), "port {port}");
        }
        let (reply, _) = all.answer(&request, &from([192, 0, 2, 7], 10_000), now).expect("a reply");
        assert!(!all.admits(&reply, &from([192, 0, 2, 7], 10_000), now), "a reply");
        let own = Arrival { local: SocketAddr::from(([192, 0, 2, 1], 8_620)), ..from([192, 0, 2, 7], 8_620) };
        assert!(!all.admits(&request, &own, now), "a reflector at the same port");
        assert_eq!((all.count, all.counts.len()), (0, 0), "they count for nobody");
    }

    #[test]
    fn sessions_are_counted_apart_and_forgotten() {
        let (mut all, now) = reflector(StampConfig { any: true, ..StampConfig::default() });
        let request = Request::default().encode(None, &[]);
        let number = |all: &mut Reflector, port, now| {
            let [high, low] = u16::to_be_bytes(port);
            let (bytes, class) = all.answer(&request, &from([192, 0, high, low], 10_000), now)?;
            assert_eq!((bytes.len(), class), (44, 0));
            Some(Reply::decode(&bytes, None).expect("a reply").0.sequence)
        };
        assert_eq!([1, 1, 2, 1].map(|port| number(&mut all, port, now)), [Some(0), Some(1), Some(0), Some(2)]);
        for port in 3..u16::try_from(OF_STRANGERS).expect("small") + 1 {
            assert_eq!(number(&mut all, port, now), Some(0));
        }
        assert_eq!(number(&mut all, 60_000, now), None, "no room");
        assert_eq!(number(&mut all, 1, now), Some(3), "a session that runs goes on");
        let later = now + REMEMBERED + SECOND;
        assert_eq!(all.strangers, OF_STRANGERS);
        assert!(admits(&mut all, [192, 0, 0, 7], later));
        assert_eq!((all.strangers, all.of_source.len()), (0, 0));
        assert_eq!(number(&mut all, 60_000, later), Some(0));
    }
}
