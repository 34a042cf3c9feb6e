//! The server's end of a `TCP_RR` stream: a response for each request, in their order.

use super::pace::answerable;
use super::requester::{FILL, Left, Worker};
use crate::common::outcome::Outcome;
use crate::common::sockets::waits;
use narrows_sys::{clock, tcp};
use std::net::TcpStream;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

/// Requests that came too fast wait this long before the next look at the clock.
const AGAIN: Duration = Duration::from_millis(1);

/// Answers until the client closes or the trial is over; calls `moving` once, with the time of the first byte.
///
/// Its sends may wait: the client always reads. The answers to all requests that one call brought go with one call.
pub(super) fn respond(socket: &TcpStream, worker: Worker<'_>, moving: impl FnOnce(Instant)) -> Left {
    Left::of(respond_to_all(socket, worker, moving), Vec::new())
}

fn respond_to_all(socket: &TcpStream, worker: Worker<'_>, moving: impl FnOnce(Instant)) -> Outcome {
    let (request_bytes, response_bytes) = (u64::from(worker.plan.request_bytes), u64::from(worker.plan.response_bytes));
    let socket = socket.as_fd();
    let mut buffer = vec![0; 64 << 10];
    let mut moving = Some(moving);
    let (mut got, mut answered, mut first) = (0_u64, 0_u64, None);
    loop {
        if let Some(ended) = worker.control.ended() {
            return ended;
        }
        match tcp::receive(socket, &mut buffer) {
            Ok(0) => return Outcome::Closed,
            Ok(bytes) => got += bytes as u64,
            Err(error) if waits(&error) => continue,
            Err(error) => return Outcome::Broken(error),
        }
        if let Some(moving) = moving.take() {
            moving(clock::now());
        }
        let requests = got / request_bytes;
        got %= request_bytes;
        answered += requests;
        let first = *first.get_or_insert_with(clock::now);
        while answered > answerable(worker.plan, first.elapsed(), 1) {
            if let Some(ended) = worker.control.ended() {
                return ended;
            }
            clock::sleep(AGAIN);
        }
        let mut owed = requests * response_bytes;
        while owed > 0 {
            let most = usize::try_from(owed).unwrap_or(usize::MAX).min(FILL.len());
            match tcp::send(socket, &FILL[..most]) {
                Ok(taken) => owed -= taken as u64,
                Err(error) if waits(&error) => {
                    if let Some(ended) = worker.control.ended() {
                        return ended;
                    }
                }
                Err(error) => return Outcome::Broken(error),
            }
        }
        worker.tally.answered(requests);
    }
}
