//! The tests that run: which of them expects a connection or a datagram, and whether there is room for one more.

use super::limits::{MAX_OF_SOURCE, MAX_STREAMS, MAX_TESTS};
use crate::lock;
use narrows_sys::udp::Arrival;
use narrows_wire::iperf3::Cookie;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use tokio::net::TcpStream;
use tokio::sync::mpsc::UnboundedSender;

/// What opens a stream.
#[derive(Debug)]
pub(super) enum Opened {
    /// A connection with the cookie of the test.
    Tcp(TcpStream),
    /// A datagram of the client's host, and the reply.
    Udp(Arrival, [u8; 4]),
}

#[derive(Debug)]
struct Entry {
    source: IpAddr,
    peer: IpAddr,
    streams: usize,
    /// What it may carry each way.
    bps: u64,
    /// While streams are expected.
    tcp: Option<UnboundedSender<Opened>>,
    udp: Option<UnboundedSender<Opened>>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Tests(Arc<Mutex<HashMap<Cookie, Entry>>>);

/// The place of one test, left on drop.
#[derive(Debug)]
pub(super) struct Seat {
    tests: Tests,
    cookie: Cookie,
}

impl Tests {
    /// Takes a place; `None`: the server is full.
    pub(super) fn enter(&self, cookie: Cookie, source: IpAddr, peer: IpAddr) -> Option<Seat> {
        let mut tests = lock(&self.0);
        let of_source = tests.values().filter(|entry| entry.source == source).count();
        if tests.len() >= MAX_TESTS || of_source >= MAX_OF_SOURCE || tests.contains_key(&cookie) {
            return None;
        }
        tests.insert(cookie, Entry { source, peer: peer.to_canonical(), streams: 0, bps: 0, tcp: None, udp: None });
        Some(Seat { tests: self.clone(), cookie })
    }

    /// Hands a connection to the test with its cookie. Gives it back where there is no such test.
    pub(super) fn hand(&self, cookie: &Cookie, stream: TcpStream) -> Result<(), Option<TcpStream>> {
        match lock(&self.0).get(cookie) {
            None => Err(Some(stream)),
            Some(Entry { tcp: Some(wants), .. }) => wants.send(Opened::Tcp(stream)).map_err(|_| None),
            Some(_) => Err(None),
        }
    }

    /// Hands a datagram to the test of its host that expects one: at most one does at a time, see [`Seat::expect_udp`].
    pub(super) fn hand_datagram(&self, arrival: Arrival, reply: [u8; 4]) {
        let source = arrival.source.ip().to_canonical();
        let tests = lock(&self.0);
        let wants = tests.values().find_map(|entry| entry.udp.as_ref().filter(|_| entry.peer == source));
        let _ = wants.map(|wants| wants.send(Opened::Udp(arrival, reply)));
    }
}

impl Seat {
    /// Takes room for the streams of the test; false: there is none.
    pub(super) fn take_streams(&self, count: usize) -> bool {
        let mut tests = lock(&self.tests.0);
        let taken: usize = tests.values().map(|entry| entry.streams).sum();
        let entry = tests.get_mut(&self.cookie).filter(|_| taken + count <= MAX_STREAMS);
        entry.map(|entry| entry.streams = count).is_some()
    }

    /// Takes what the other tests leave of the rate of all, each way, up to what is asked for. It is free again with the seat.
    pub(super) fn take_rate(&self, asked_bps: u64, most_bps: u64) -> u64 {
        let mut tests = lock(&self.tests.0);
        let others = tests.iter().filter(|(cookie, _)| **cookie != self.cookie).map(|(_, entry)| entry.bps);
        let left = most_bps.saturating_sub(others.sum());
        let entry = tests.get_mut(&self.cookie);
        entry.map_or(0, |entry| {
            entry.bps = asked_bps.min(left);
            entry.bps
        })
    }

    pub(super) fn expect_tcp(&self, to: Option<UnboundedSender<Opened>>) {
        if let Some(entry) = lock(&self.tests.0).get_mut(&self.cookie) {
            entry.tcp = to;
        }
    }

    /// Expects datagrams; false: another test of this host does so now. Datagrams do not tell which test they are of.
    pub(super) fn expect_udp(&self, to: UnboundedSender<Opened>) -> bool {
        let mut tests = lock(&self.tests.0);
        let Some(peer) = tests.get(&self.cookie).map(|entry| entry.peer) else { return false };
        if tests.values().any(|entry| entry.peer == peer && entry.udp.is_some()) {
            return false;
        }
        tests.get_mut(&self.cookie).map(|entry| entry.udp = Some(to)).is_some()
    }

    pub(super) fn expect_no_udp(&self) {
        if let Some(entry) = lock(&self.tests.0).get_mut(&self.cookie) {
            entry.udp = None;
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        lock(&self.tests.0).remove(&self.cookie);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_cannot_take_all_places_and_streams_are_bounded() {
        let tests = Tests::default();
        let enter = |n: usize, host: u8| {
            let random = std::array::from_fn(|at| if at == 0 { n as u8 % 32 } else { (n / 32) as u8 });
            tests.enter(Cookie::of(random), [192, 0, 2, host].into(), [192, 0, 2, host].into())
        };
        let mut seats: Vec<_> = (0..MAX_OF_SOURCE).map_while(|n| enter(n, 1)).collect();
        assert_eq!((seats.len(), enter(100, 1).is_none()), (MAX_OF_SOURCE, true));
        assert!(enter(0, 2).is_none(), "the cookie is taken");
        seats.extend((MAX_OF_SOURCE..MAX_TESTS).map_while(|n| enter(n, 2)));
        assert_eq!((seats.len(), enter(200, 3).is_none()), (MAX_TESTS, true));
        assert!(seats[0].take_streams(MAX_STREAMS - 1) && !seats[1].take_streams(2) && seats[1].take_streams(1));
        let (to, _from) = tokio::sync::mpsc::unbounded_channel();
        assert!(seats[0].expect_udp(to.clone()) && !seats[1].expect_udp(to.clone()) && seats[127].expect_udp(to));
        drop(seats);
        assert!(enter(0, 1).is_some());
    }

    #[test]
    fn all_tests_together_have_the_rate() {
        const MOST: u64 = 1_000_000_000;
        let tests = Tests::default();
        let enter = |n: u8| tests.enter(Cookie::of([n; 36]), [192, 0, 2, n].into(), [192, 0, 2, n].into());
        let seats: Vec<_> = (1..4).map_while(enter).collect();
        let take = |nth: usize| seats[nth].take_rate(600_000_000, MOST);
        assert_eq!([take(0), take(1), take(2), take(0)], [600_000_000, 400_000_000, 0, 600_000_000]);
        drop(seats);
        assert_eq!(enter(4).expect("a seat").take_rate(MOST, MOST), MOST);
    }
}
