//! The client's end of a `TCP_CRR` stream: each transaction connects, sends the request, reads the response and closes.
//!
//! The server closes first, as soon as it has answered; this end waits for that and closes after it, so both close in order and
//! the one that has to remember the connection for a minute (TIME_WAIT) is the server, whose port is one anyway. Were it the
//! client, its ports (28,232 by default) would be used up after 28,232 transactions a minute. A reset instead of a close
//! would spare both, but it is not what an application does, and firewalls count resets.
//!
//! The latency goes from the beginning of the connection to the last byte of the response; the rate includes the close,
//! as in netperf.

use super::requester::{BACKOFF, FILL, Left, Requester, nanos};
use crate::common::limits::CALL_LIMIT;
use crate::common::outcome::Outcome;
use crate::common::sockets::waits;
use narrows_stats::Histogram;
use narrows_sys::{clock, exchange, net, tcp};
use narrows_wire::hello::{self, MAX_ANSWER_BYTES};
use narrows_wire::{Answer, DataHello, Key, Wanted};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

/// A transaction that takes longer has failed.
const LIMIT: Duration = Duration::from_secs(10);
/// A peer that has answered closes within this time, or is closed upon.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);
/// `EADDRNOTAVAIL`: `connect` found no free port.
const NO_PORT: i32 = 99;

/// Why a transaction did not become one.
enum Failure {
    /// The trial is over.
    Ended(Outcome),
    /// It failed; the next one may do better.
    Failed(String),
    /// None will do better.
    Hopeless(Outcome),
}

pub(super) struct Transactor<'a> {
    requester: Requester<'a>,
    address: SocketAddr,
    request: Vec<u8>,
    response_bytes: u64,
    connect: Histogram,
    failed: u64,
    first_failure: Option<String>,
    /// This end's address, port 0.
    local: Option<String>,
}

impl<'a> Transactor<'a> {
    pub(super) fn new(requester: Requester<'a>, address: SocketAddr, key: Key) -> Self {
        let hello = DataHello { key, wanted: Wanted::Transaction { id: requester.worker.id } }.encode();
        let mut request = vec![FILL[0]; (requester.worker.plan.request_bytes as usize).max(hello::LENGTH)];
        request[..hello::LENGTH].copy_from_slice(&hello);
        Self {
            address,
            request,
            response_bytes: requester.worker.plan.response_bytes.into(),
            connect: Histogram::new(),
            failed: 0,
            first_failure: None,
            local: None,
            requester,
        }
    }

    /// Makes transactions until there is a reason not to.
    pub(super) fn run(mut self) -> Left {
        let outcome = self.exchange();
        if let Some(first) = self.first_failure.take() {
            let what = if self.failed == 1 { "transaction failed" } else { "transactions failed; the first" };
            self.requester.notes.push(format!("{} {what}: {first}", self.failed));
        }
        Left { local: self.local, ..self.requester.leave(outcome, self.connect) }
    }

    fn exchange(&mut self) -> Outcome {
        let mut buffer = vec![0; usize::try_from(self.response_bytes + 1).unwrap_or(usize::MAX).clamp(512, 64 << 10)];
        loop {
            if let Some(outcome) = self.requester.ended() {
                return outcome;
            }
            let now = clock::now();
            if now >= self.requester.deadline {
                return Outcome::Complete;
            }
            if !self.requester.is_due(now) {
                clock::sleep(self.requester.until_due(now).unwrap_or(CALL_LIMIT));
                continue;
            }
            match self.transact(now, &mut buffer) {
                Ok(()) => {}
                Err(Failure::Ended(outcome)) => return outcome,
                Err(Failure::Failed(why)) => {
                    self.failed += 1;
                    let last = why.clone();
                    self.first_failure.get_or_insert(why);
                    if self.requester.fail_immediately() {
                        return Outcome::Lost(format!("all further transactions failed; the last one: {last}"));
                    }
                    clock::sleep(BACKOFF);
                }
                Err(Failure::Hopeless(outcome)) => {
                    self.requester.worker.tally.fail(1);
                    return outcome;
                }
            }
        }
    }

    fn transact(&mut self, now: Instant, buffer: &mut [u8]) -> Result<(), Failure> {
        let due = self.requester.begin(now);
        let socket = exchange::open(self.address, CALL_LIMIT).map_err(|error| Failure::Failed(error.to_string()))?;
        let start = clock::now();
        let origin = if self.requester.pace.is_some() { due } else { start };
        while !exchange::connect_on(&socket, self.address).map_err(|error| self.not_connected(&error))? {
            self.go_on(start, "connected")?;
        }
        let connected = clock::now();
        if self.local.is_none() {
            let address = socket.local_addr().ok();
            self.local = address.map(|at| SocketAddr::new(net::canonical(at).ip(), 0).to_string());
        }
        self.send(&socket, start)?;
        self.read_response(&socket, start, buffer)?;
        let end = clock::now();
        if origin >= self.requester.counted_from {
            self.connect.record(nanos(connected.saturating_duration_since(start)));
        }
        self.requester.complete(origin, end);
        self.await_close(&socket, end, buffer)
    }

    fn not_connected(&self, error: &io::Error) -> Failure {
        let why = if error.raw_os_error() == Some(NO_PORT) {
            "; no free local port: widen net.ipv4.ip_local_port_range, or lower --rate"
        } else {
            ""
        };
        Failure::Failed(format!("cannot connect to {}: {error}{why}", self.address))
    }

    /// Whether to go on with what a call did not finish.
    fn go_on(&self, start: Instant, what: &str) -> Result<(), Failure> {
        if let Some(outcome) = self.requester.ended() {
            return Err(Failure::Ended(outcome));
        }
        let now = clock::now();
        if now.saturating_duration_since(start) < LIMIT && !self.requester.is_late(now) {
            return Ok(());
        }
        let waited = now.saturating_duration_since(start).as_secs_f64();
        Err(Failure::Failed(format!("not {what} within {waited:.1} s")))
    }

    fn send(&self, socket: &TcpStream, start: Instant) -> Result<(), Failure> {
        let mut left = self.request.as_slice();
        while !left.is_empty() {
            match tcp::send(socket.as_fd(), left) {
                Ok(taken) => left = &left[taken..],
                Err(error) if waits(&error) => self.go_on(start, "taken whole")?,
                Err(error) => return Err(Failure::Failed(format!("cannot send the request: {error}"))),
            }
        }
        Ok(())
    }

    fn read_response(&self, socket: &TcpStream, start: Instant, buffer: &mut [u8]) -> Result<(), Failure> {
        let mut got = 0_u64;
        while got < self.response_bytes {
            match tcp::receive(socket.as_fd(), buffer) {
                Ok(0) => {
                    let all = self.response_bytes;
                    return Err(Failure::Failed(format!("the peer closed after {got} of {all} bytes of its response")));
                }
                Ok(bytes) if got == 0 && buffer[0] != FILL[0] => {
                    return Err(self.read_refusal(socket, start, &buffer[..bytes]));
                }
                Ok(bytes) => got += bytes as u64,
                Err(error) if waits(&error) => self.go_on(start, "answered")?,
                Err(error) => return Err(Failure::Failed(format!("no response: {error}"))),
            }
        }
        if got > self.response_bytes {
            return Err(surplus());
        }
        Ok(())
    }

    /// Data that does not begin as a response is the server's refusal, or comes from another program.
    fn read_refusal(&self, socket: &TcpStream, start: Instant, first: &[u8]) -> Failure {
        let mut line = first.to_vec();
        let mut more = [0; MAX_ANSWER_BYTES];
        while line.len() < MAX_ANSWER_BYTES && !line.contains(&b'\n') {
            match tcp::receive(socket.as_fd(), &mut more) {
                Ok(0) => break,
                Ok(bytes) => line.extend_from_slice(&more[..bytes]),
                Err(error) if waits(&error) => {
                    if let Err(failure) = self.go_on(start, "answered") {
                        return failure;
                    }
                }
                Err(_) => break,
            }
        }
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
        Failure::Hopeless(match Answer::decode(line) {
            Some(Answer::No(why)) => Outcome::Lost(format!("the server refused: {why}")),
            _ => Outcome::GaveUp("the listener is not a narrows server with transactions".to_owned()),
        })
    }

    /// The peer closes first. If it resets or does not close in time, the transaction is still complete.
    fn await_close(&self, socket: &TcpStream, end: Instant, buffer: &mut [u8]) -> Result<(), Failure> {
        while clock::now().saturating_duration_since(end) < CLOSE_LIMIT {
            match tcp::receive(socket.as_fd(), buffer) {
                Ok(1..) => return Err(surplus()),
                Err(error) if waits(&error) => {
                    if let Some(outcome) = self.requester.ended() {
                        return Err(Failure::Ended(outcome));
                    }
                }
                Ok(0) | Err(_) => break,
            }
        }
        Ok(())
    }
}

fn surplus() -> Failure {
    Failure::Hopeless(Outcome::GaveUp("the peer sent more responses than requests".to_owned()))
}
