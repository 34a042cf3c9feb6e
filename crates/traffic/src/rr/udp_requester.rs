//! The client's end of a `UDP_RR` stream: as many requests on their way as there are slots. A request's sequence is its slot plus
//! a multiple of the number of slots, so an answer finds its request at once, and one that comes after its slot was
//! freed, or a second time, finds none.

use super::requester::{BACKOFF, Left, Requester, notes};
use crate::common::limits::CALL_LIMIT;
use crate::common::outcome::Outcome;
use crate::common::sockets::waits;
use narrows_model::RrPlan;
use narrows_stats::Histogram;
use narrows_sys::{clock, exchange, tcp};
use narrows_wire::rr::{self, Header, Role};
use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::{Duration, Instant};

/// A response that takes longer is lost.
const TIMEOUT: Duration = Duration::from_millis(RrPlan::UDP_TIMEOUT_MS);
/// Room for the largest datagram, and one byte more that shows a larger one.
pub(super) const MAX_BYTES: usize = (1 << 16) + 1;
/// `ENOBUFS`: the queue of the interface is full for about this time.
const QUEUE_FULL: Duration = Duration::from_millis(1);

/// A request on its way.
#[derive(Debug, Clone, Copy)]
struct Asked {
    /// From when its latency counts.
    origin: Instant,
    sent: Instant,
}

/// A place for one request at a time.
#[derive(Debug)]
struct Slot {
    /// Of its request on the way, or of its next one.
    sequence: u64,
    asked: Option<Asked>,
}

pub(super) struct UdpRequester<'a> {
    requester: Requester<'a>,
    socket: BorrowedFd<'a>,
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// No request in flight expires before.
    expiry: Instant,
    /// No request is sent before.
    rest_until: Instant,
    /// The request as it is sent; its header changes.
    request: Vec<u8>,
    late: u64,
    foreign: u64,
    refused_here: u64,
}

impl<'a> UdpRequester<'a> {
    pub(super) fn new(requester: Requester<'a>, socket: &'a UdpSocket, start: Instant) -> Self {
        let count = requester.worker.plan.outstanding as usize;
        Self {
            socket: socket.as_fd(),
            slots: (0..count as u64).map(|sequence| Slot { sequence, asked: None }).collect(),
            free: (0..count).rev().collect(),
            expiry: start + TIMEOUT,
            rest_until: start,
            request: vec![0; (requester.worker.plan.request_bytes as usize).max(rr::LENGTH)],
            late: 0,
            foreign: 0,
            refused_here: 0,
            requester,
        }
    }

    /// Makes requests until there is a reason not to, and waits for the last answers or their time-outs.
    pub(super) fn run(mut self) -> Left {
        let outcome = self.exchange();
        if !matches!(outcome, Outcome::Complete | Outcome::Stopped) {
            self.requester.worker.tally.fail(self.in_flight() as u64);
        }
        let counts = [
            (self.late, "responses were late or duplicate"),
            (self.foreign, "datagrams did not belong to this stream"),
            (self.refused_here, "requests were refused by this host's queue (ENOBUFS) and sent later"),
        ];
        self.requester.notes.extend(notes(counts));
        self.requester.leave(outcome, Histogram::new())
    }

    fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    fn exchange(&mut self) -> Outcome {
        let mut buffer = vec![0; MAX_BYTES];
        loop {
            if let Some(outcome) = self.requester.ended() {
                return outcome;
            }
            let now = clock::now();
            if now >= self.expiry {
                self.expire(now);
            }
            let full = match self.ask(now) {
                Ok(full) => full,
                Err(outcome) => return outcome,
            };
            // The last time-outs are over before the time for the last answers is; this is for a clock that jumps.
            if now >= self.requester.deadline && (self.in_flight() == 0 || self.requester.is_late(now)) {
                return Outcome::Complete;
            }
            match self.receive(&mut buffer, now, full) {
                Ok(bytes) => self.take(&buffer[..bytes]),
                Err(error) if waits(&error) => {}
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    if let Some(outcome) = self.refused(&error) {
                        return outcome;
                    }
                }
                Err(error) => return Outcome::Broken(error),
            }
        }
    }

    /// Sends the requests that may begin now; true where the socket's buffer is full.
    fn ask(&mut self, now: Instant) -> Result<bool, Outcome> {
        while now >= self.rest_until && self.requester.is_due(now) {
            let Some(&at) = self.free.last() else { break };
            let header =
                Header { role: Role::Request, stream: self.requester.worker.id, sequence: self.slots[at].sequence };
            self.request[..rr::LENGTH].copy_from_slice(&header.encode());
            let sent = clock::now();
            match exchange::send_now(self.socket, &self.request) {
                Ok(_) => {
                    self.free.pop();
                    let origin = self.requester.begin(sent);
                    self.slots[at].asked = Some(Asked { origin, sent });
                }
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock => return Ok(true),
                    // The error of an earlier one; this one was not sent.
                    ErrorKind::ConnectionRefused => return self.refused(&error).map_or(Ok(false), Err),
                    // A filter of this host.
                    ErrorKind::PermissionDenied => {
                        self.requester.begin(sent);
                        self.rest_until = now + BACKOFF;
                        if self.requester.fail_immediately() {
                            return Err(Outcome::Lost(format!("cannot send any request: {error}")));
                        }
                    }
                    _ if error.raw_os_error() == Some(105) => {
                        self.refused_here += 1;
                        self.rest_until = now + QUEUE_FULL;
                    }
                    _ => {
                        let size = self.request.len();
                        return Err(Outcome::Lost(format!("cannot send a request of {size} bytes: {error}")));
                    }
                },
            }
        }
        Ok(false)
    }

    /// Waits for an answer, but no longer than until something else is to be done.
    fn receive(&self, buffer: &mut [u8], now: Instant, full: bool) -> io::Result<usize> {
        let wait = if full {
            Some(CALL_LIMIT)
        } else if self.free.is_empty() {
            None
        } else {
            let rest = self.rest_until.saturating_duration_since(now).min(CALL_LIMIT);
            self.requester.until_due(now).map(|due| due.max(rest))
        };
        match wait {
            Some(limit) => {
                if !exchange::wait(self.socket, full, limit)?.read {
                    return Err(ErrorKind::WouldBlock.into());
                }
                exchange::receive_now(self.socket, buffer)
            }
            None => tcp::receive(self.socket, buffer),
        }
    }

    fn take(&mut self, datagram: &[u8]) {
        let now = clock::now();
        let header = match Header::decode(datagram) {
            Ok(header)
                if header.role == Role::Response
                    && header.stream == self.requester.worker.id
                    && datagram.len() == self.requester.worker.plan.response_bytes as usize =>
            {
                header
            }
            _ => {
                self.foreign += 1;
                return;
            }
        };
        let count = self.slots.len();
        let at = (header.sequence % count as u64) as usize;
        match self.slots[at].asked.filter(|_| self.slots[at].sequence == header.sequence) {
            Some(asked) => {
                self.free(at);
                self.requester.complete(asked.origin, now);
            }
            None => self.late += 1,
        }
    }

    /// The request of a slot is not waited for any more.
    fn free(&mut self, at: usize) {
        self.slots[at].asked = None;
        self.slots[at].sequence += self.slots.len() as u64;
        self.free.push(at);
    }

    /// Counts expired requests as lost, and finds the next expiry.
    fn expire(&mut self, now: Instant) {
        let mut next = now + TIMEOUT;
        for at in 0..self.slots.len() {
            let Some(asked) = self.slots[at].asked else { continue };
            if asked.sent + TIMEOUT <= now {
                self.free(at);
                self.requester.worker.tally.fail(1);
            } else {
                next = next.min(asked.sent + TIMEOUT);
            }
        }
        self.expiry = next;
    }

    /// The peer's host reported a closed port: the oldest request in flight has failed.
    fn refused(&mut self, error: &io::Error) -> Option<Outcome> {
        self.rest_until = clock::now() + BACKOFF;
        let in_flight = self.slots.iter().enumerate();
        let oldest = in_flight.filter_map(|(at, slot)| Some((slot.asked?.sent, at))).min();
        if let Some((_, at)) = oldest {
            self.free(at);
            if self.requester.fail_immediately() {
                return Some(Outcome::Lost(format!("no listener on the peer's port: {error}")));
            }
        }
        None
    }
}
