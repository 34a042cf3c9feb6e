//! The client's end of a `TCP_RR` stream: one thread, several requests on their way, answers in the order of the requests.
//!
//! Sends never wait while answers may come, so that two ends with full buffers cannot lock each other up. With one request
//! at a time it is a `send` and a blocking `recv` each, as netperf does it.

use super::requester::{FILL, Left, Requester};
use crate::common::limits::{CALL_LIMIT, GRACE};
use crate::common::outcome::Outcome;
use crate::common::sockets::waits;
use narrows_stats::Histogram;
use narrows_sys::{clock, exchange, tcp};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Instant;

/// Requests that fit into this many bytes are sent with one call.
const BATCH_BYTES: usize = FILL.len();

pub(super) struct TcpRequester<'a> {
    requester: Requester<'a>,
    socket: BorrowedFd<'a>,
    request_bytes: usize,
    response_bytes: usize,
    outstanding: usize,
    /// When each request on its way began, oldest first.
    begun: VecDeque<Instant>,
    /// Bytes of begun requests that the socket has not taken yet.
    unsent: usize,
    /// Bytes of the response that is coming in.
    got: usize,
}

impl<'a> TcpRequester<'a> {
    pub(super) fn new(requester: Requester<'a>, socket: &'a TcpStream) -> Self {
        let outstanding = requester.worker.plan.outstanding as usize;
        Self {
            socket: socket.as_fd(),
            request_bytes: requester.worker.plan.request_bytes as usize,
            response_bytes: requester.worker.plan.response_bytes as usize,
            outstanding,
            begun: VecDeque::with_capacity(outstanding),
            unsent: 0,
            got: 0,
            requester,
        }
    }

    /// Makes requests until there is a reason not to, and waits for the last answers.
    pub(super) fn run(mut self) -> Left {
        let outcome = self.exchange();
        if !matches!(outcome, Outcome::Complete | Outcome::Stopped) {
            self.requester.worker.tally.fail(self.begun.len() as u64);
        }
        self.requester.leave(outcome, Histogram::new())
    }

    fn exchange(&mut self) -> Outcome {
        // Larger than expected, so that surplus data shows.
        let mut buffer = vec![0; 64 << 10];
        loop {
            if let Some(outcome) = self.requester.ended() {
                return outcome;
            }
            let now = clock::now();
            self.begin(now);
            if let Err(error) = self.hand_over() {
                return Outcome::Broken(error);
            }
            if self.begun.is_empty() && now >= self.requester.deadline {
                return Outcome::Complete;
            }
            if self.requester.is_late(now) {
                let (count, grace) = (self.begun.len(), GRACE.as_secs());
                let what = format!("{count} requests were not answered within {grace} s after the end");
                return Outcome::Incomplete(what);
            }
            match self.receive(&mut buffer, now) {
                Ok(0) => return Outcome::Closed,
                Ok(bytes) => {
                    if let Err(outcome) = self.take(bytes) {
                        return outcome;
                    }
                }
                Err(error) if waits(&error) => {}
                Err(error) => return Outcome::Broken(error),
            }
        }
    }

    /// Begins the requests that may begin now, as many as one call takes.
    fn begin(&mut self, now: Instant) {
        while self.begun.len() < self.outstanding
            && (self.unsent == 0 || self.unsent + self.request_bytes <= BATCH_BYTES)
            && self.requester.is_due(now)
        {
            let origin = self.requester.begin(now);
            self.begun.push_back(origin);
            self.unsent += self.request_bytes;
        }
    }

    fn hand_over(&mut self) -> io::Result<()> {
        while self.unsent > 0 {
            match exchange::send_now(self.socket, &FILL[..self.unsent.min(BATCH_BYTES)]) {
                Ok(taken) => self.unsent -= taken,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits for an answer, but no longer than until something else is to be done.
    fn receive(&self, buffer: &mut [u8], now: Instant) -> io::Result<usize> {
        let wait = if self.unsent > 0 {
            Some(CALL_LIMIT)
        } else if self.begun.len() < self.outstanding {
            self.requester.until_due(now)
        } else {
            None
        };
        match wait {
            Some(limit) => {
                if !exchange::wait(self.socket, self.unsent > 0, limit)?.read {
                    return Err(ErrorKind::WouldBlock.into());
                }
                exchange::receive_now(self.socket, buffer)
            }
            None => tcp::receive(self.socket, buffer),
        }
    }

    fn take(&mut self, bytes: usize) -> Result<(), Outcome> {
        let now = clock::now();
        self.got += bytes;
        while self.got >= self.response_bytes {
            let Some(origin) = self.begun.pop_front() else { break };
            self.got -= self.response_bytes;
            self.requester.complete(origin, now);
        }
        if self.got > 0 && self.begun.is_empty() {
            return Err(Outcome::GaveUp("the peer sent more responses than requests".to_owned()));
        }
        Ok(())
    }
}
