//! A receiving stream: a plain loop of blocking calls that discards the data in the kernel, or copies it.

use super::application::{Burn, Pace, nanos_since};
use super::batch::Batch;
use super::counters::Counters;
use super::outcome::Outcome;
use crate::common::limits::{CALL_LIMIT, STALL};
use crate::common::threads::Control;
use narrows_model::Receive;
use narrows_sys::{clock, tcp};
use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::{Duration, Instant};

/// The maximum of one call when nothing is copied.
const DISCARD_BYTES: usize = 1 << 20;
/// The maximum that one call copies: fits the second-level cache.
const COPY_BYTES: usize = 128 << 10;

/// How received data is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Take {
    /// Discarded by the kernel (`MSG_TRUNC`).
    Discard,
    /// Copied to this buffer.
    Copy(Vec<u8>),
}

impl Take {
    /// The method, for the record.
    pub(super) const fn method(&self) -> &'static str {
        match self {
            Self::Discard => "discard",
            Self::Copy(_) => "recv",
        }
    }

    #[inline]
    fn take(&mut self, socket: BorrowedFd<'_>, most: usize) -> io::Result<usize> {
        match self {
            Self::Discard => tcp::discard(socket, most.min(DISCARD_BYTES)),
            Self::Copy(buffer) => {
                let most = most.min(buffer.len());
                tcp::receive(socket, &mut buffer[..most])
            }
        }
    }
}

/// Everything a receiving thread needs.
pub(super) struct Receiver<'a> {
    pub(super) socket: &'a TcpStream,
    pub(super) counters: &'a Counters,
    pub(super) control: &'a Control<'a>,
    /// Whether bytes end the trial: then a stream without data for [`STALL`] ends.
    pub(super) until_end_of_data: bool,
    pub(super) pace: Option<&'a Pace>,
    pub(super) cpu_us_per_mib: u32,
    pub(super) receive: Receive,
    pub(super) start: Instant,
}

impl Receiver<'_> {
    /// Receives until the trial or the data ends; calls `moving` once, with the time of the first byte.
    pub(super) fn run(&self, moving: impl FnOnce(Instant)) -> (Outcome, &'static str) {
        let mut take = match self.receive {
            Receive::Discard => Take::Discard,
            Receive::Copy => Take::Copy(vec![0; COPY_BYTES]),
        };
        let outcome = self.receive(&mut take, moving);
        (outcome, take.method())
    }

    fn receive(&self, take: &mut Take, moving: impl FnOnce(Instant)) -> Outcome {
        let socket = self.socket.as_fd();
        let portion = self.pace.map_or(DISCARD_BYTES, |pace| pace.portion(COPY_BYTES));
        let mut burn = Burn::new(self.cpu_us_per_mib);
        // An application that is slow by plan takes what there is: its queue is the evidence.
        let mut batch = (self.pace.is_none() && self.cpu_us_per_mib == 0).then(|| Batch::new(clock::now()));
        let mut moving = Some(moving);
        let (mut got, mut calls) = (0u64, 0u64);
        let mut moved_at = clock::now();
        loop {
            if self.control.stop.is_set() {
                return Outcome::Stopped;
            }
            if self.control.over.is_set() {
                return Outcome::Complete;
            }
            let taken = match take.take(socket, portion) {
                Ok(0) => return Outcome::Closed,
                Ok(taken) => {
                    calls += 1;
                    got += taken as u64;
                    self.counters.publish(got, calls);
                    if let Some(moving) = moving.take() {
                        moving(clock::now());
                    }
                    burn.spend(taken, || self.is_over());
                    if let Some(pace) = self.pace {
                        self.wait_until(pace.claim(nanos_since(self.start), taken));
                    }
                    taken
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    if self.until_end_of_data && moved_at.elapsed() > STALL {
                        return Outcome::Stalled(STALL.as_secs());
                    }
                    if let Some(batch) = &mut batch {
                        batch.idle(socket);
                    }
                    continue;
                }
                // A kernel that would copy into the null buffer.
                Err(error) if error.raw_os_error() == Some(14) && *take == Take::Discard => {
                    *take = Take::Copy(vec![0; COPY_BYTES]);
                    continue;
                }
                Err(error) => return Outcome::Broken(error),
            };
            if let Some(batch) = &mut batch {
                batch.moved(socket, taken, got, calls);
            }
            if self.until_end_of_data {
                moved_at = clock::now();
            }
        }
    }

    fn is_over(&self) -> bool {
        self.control.is_over()
    }

    fn wait_until(&self, due_ns: u64) {
        while !self.is_over() {
            let left = Duration::from_nanos(due_ns.saturating_sub(nanos_since(self.start)));
            if left.is_zero() {
                return;
            }
            clock::sleep(left.min(CALL_LIMIT));
        }
    }
}
