//! A receiving stream: a plain loop of blocking calls that discards the data in the kernel, or copies it.

use super::application::{Burn, nanos_since};
use super::batch::Batch;
use super::worker::{Left, Worker};
use crate::common::limits::STALL;
use crate::common::outcome::Outcome;
use crate::common::sockets::waits;
use narrows_model::Receive;
use narrows_sys::{clock, tcp};
use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Instant;

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

/// Receives until the trial or the data ends; calls `moving` once, with the time of the first byte.
pub(super) fn run(worker: &Worker<'_>, socket: &TcpStream, moving: impl FnOnce(Instant)) -> Left {
    let mut take = match worker.plan.receive {
        Receive::Discard => Take::Discard,
        Receive::Copy => Take::Copy(vec![0; COPY_BYTES]),
    };
    let outcome = receive(worker, socket.as_fd(), &mut take, moving);
    Left { outcome, method: take.method(), layer: None }
}

fn receive(worker: &Worker<'_>, socket: BorrowedFd<'_>, take: &mut Take, moving: impl FnOnce(Instant)) -> Outcome {
    // Whether bytes end the trial: then a stream without data for STALL ends.
    let until_end_of_data = worker.total_bytes.is_some();
    let portion = worker.pace.map_or(DISCARD_BYTES, |pace| pace.portion(COPY_BYTES));
    let cpu_us_per_mib = worker.plan.application.read_cpu_us_per_mib;
    let mut burn = Burn::new(cpu_us_per_mib);
    // An application that is slow by plan takes what there is: its queue is the evidence.
    let mut batch = (worker.pace.is_none() && cpu_us_per_mib == 0).then(|| Batch::new(clock::now()));
    let mut moving = Some(moving);
    let (mut got, mut calls) = (0u64, 0u64);
    let mut moved_at = clock::now();
    loop {
        if let Some(ended) = worker.control.ended() {
            return ended;
        }
        let taken = match take.take(socket, portion) {
            Ok(0) => return Outcome::Closed,
            Ok(taken) => {
                calls += 1;
                got += taken as u64;
                worker.counters.set(0, [got, calls]);
                if let Some(moving) = moving.take() {
                    moving(clock::now());
                }
                burn.spend(taken, || worker.is_over());
                if let Some(pace) = worker.pace {
                    worker.wait_until(pace.claim(nanos_since(worker.start), taken));
                }
                taken
            }
            Err(error) if waits(&error) => {
                if until_end_of_data && moved_at.elapsed() > STALL {
                    return Outcome::GaveUp(format!("no data received for {} s", STALL.as_secs()));
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
            // The other end on the same core hands over its data by sleeping, and nothing is to be gained by waiting for more.
            let most = if worker.shared.together.load() { 1 } else { u32::MAX };
            batch.moved(socket, taken, (got, calls), most);
        }
        if until_end_of_data {
            moved_at = clock::now();
        }
    }
}
