//! `narrows serve --stamp`: a reflector of STAMP sessions that keeps state (RFC 8762 section 4.3).
//!
//! It answers known peers, or all if told so; never more bytes than came; so many packets a second of one address and of all. A request
//! that is too short for its answer, or forged, gets none.

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
/// Packets a second of all.
const OF_ALL: u32 = 20_000;
/// Sessions that are remembered …
const SESSIONS: usize = 4_096;
/// … of those that no network names, so that the known ones keep their share …
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
    /// How many of them each source has.
    of_source: HashMap<IpAddr, usize>,
    /// Of this second.
    counts: HashMap<IpAddr, u32>,
    count: u32,
    since: Instant,
    clock: ClockError,
    started: Instant,
}

impl Reflector {
    fn new(config: StampConfig, clock: ClockError, now: Instant) -> Self {
        let (sessions, of_source, counts) = (HashMap::new(), HashMap::new(), HashMap::new());
        Self { config, sessions, of_source, counts, count: 0, since: now, clock, started: now }
    }

    fn is_known(&self, ip: IpAddr) -> bool {
        self.config.peers.iter().any(|(network, prefix)| within(ip, *network, *prefix))
    }

    /// Whether a packet of this address is answered.
    fn admits(&mut self, ip: IpAddr, now: Instant) -> bool {
        if !self.config.any && !self.is_known(ip) {
            return false;
        }
        if now.duration_since(self.since) >= SECOND {
            (self.since, self.count) = (now, 0);
            self.counts.clear();
            if self.sessions.len() >= SESSIONS / 2 {
                self.sessions.retain(|_, (_, last)| now.duration_since(*last) < REMEMBERED);
                self.of_source.clear();
                for (address, _) in self.sessions.keys() {
                    *self.of_source.entry(source_of(address.ip())).or_default() += 1;
                }
            }
        }
        if self.count >= OF_ALL {
            return false;
        }
        let of_one = self.counts.entry(ip).or_default();
        *of_one += 1;
        self.count += u32::from(*of_one <= OF_ONE);
        *of_one <= OF_ONE
    }

    fn has_room(&self, source: IpAddr, known: bool) -> bool {
        let of = |of: IpAddr| self.of_source.get(&of).copied().unwrap_or(0);
        let strangers = || self.of_source.iter().filter(|(ip, _)| !self.is_known(**ip)).map(|it| it.1).sum::<usize>();
        self.sessions.len() < SESSIONS && of(source) < OF_SOURCE && (known || strangers() < OF_STRANGERS)
    }

    /// The answer to a packet, with its traffic class.
    fn answer(&mut self, bytes: &[u8], from: &Arrival, now: Instant) -> Option<(Vec<u8>, u8)> {
        let id = (from.source, session_of(bytes, self.config.key.as_ref()));
        let known = self.is_known(from.source.ip());
        // A port of a service, or another reflector: two that answer each other would circulate one packet for ever.
        let port = from.source.port();
        if port < 1024 || port == from.local.port() || Reply::is_one(bytes, self.config.key.as_ref()) {
            return None;
        }
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
            *self.of_source.entry(source_of(id.0.ip())).or_default() += 1;
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
            if reflector.admits(arrival.source.ip(), now)
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

    fn reflector(config: StampConfig) -> (Reflector, Instant) {
        let now = clock::now();
        (Reflector::new(config, ClockError::default(), now), now)
    }

    #[test]
    fn strangers_get_nothing_unless_all_are_answered() {
        let peers = vec![(IpAddr::from([192, 0, 2, 0]), 24)];
        let (mut closed, now) = reflector(StampConfig { peers: peers.clone(), ..StampConfig::default() });
        assert!(closed.admits([192, 0, 2, 9].into(), now) && !closed.admits([198, 51, 100, 9].into(), now));
        let (mut open, now) = reflector(StampConfig { peers, any: true, ..StampConfig::default() });
        assert!(open.admits([198, 51, 100, 9].into(), now));
    }

    #[test]
    fn packets_a_second_are_limited_by_address_and_in_all() {
        let (mut all, now) = reflector(StampConfig { any: true, ..StampConfig::default() });
        let admitted = |all: &mut Reflector, last: u8, now| {
            (0..OF_ONE + 500).filter(|_| all.admits([198, 51, 100, last].into(), now)).count()
        };
        let each: Vec<usize> = (0..12).map(|last| admitted(&mut all, last, now)).collect();
        assert_eq!(each, [vec![OF_ONE as usize; 10], vec![0, 0]].concat());
        assert_eq!(admitted(&mut all, 200, now + SECOND), OF_ONE as usize);
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
    fn reflectors_and_services_get_no_answer() {
        let (mut all, now) = reflector(StampConfig { any: true, ..StampConfig::default() });
        let request = Request::default().encode(None, &[]);
        for port in [7, 19, 53, 123, 862, 1023] {
            assert!(all.answer(&request, &from([192, 0, 2, 7], port), now).is_none(), "port {port}");
        }
        let (reply, _) = all.answer(&request, &from([192, 0, 2, 7], 10_000), now).expect("a reply");
        assert!(all.answer(&reply, &from([192, 0, 2, 7], 10_000), now).is_none(), "a reply");
        let own = Arrival { local: SocketAddr::from(([192, 0, 2, 1], 8_620)), ..from([192, 0, 2, 7], 8_620) };
        assert!(all.answer(&request, &own, now).is_none(), "a reflector at the same port");
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
        assert!(all.admits([192, 0, 0, 7].into(), later));
        assert_eq!(number(&mut all, 60_000, later), Some(0));
    }
}
