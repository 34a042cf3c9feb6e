//! The server's end of a `TCP_RR` stream: a response for each request, in their order.

use super::budget::AGAIN;
use super::requester::{FILL, Left, Worker};
use crate::common::outcome::Outcome;
use crate::common::sockets::waits;
use narrows_sys::{clock, tcp};
use std::net::TcpStream;
use std::os::fd::AsFd as _;
use std::time::Instant;

/// Answers until the client closes or the trial is over; calls `moving` once, with the time of the first byte.
///
/// Its sends may wait: the client always reads. The answers to all requests that one call brought go with one call, as far as the
/// plan allows so many at once.
pub(super) fn respond(socket: &TcpStream, worker: Worker<'_>, moving: impl FnOnce(Instant)) -> Left {
    Left::of(respond_to_all(socket, worker, moving), Vec::new())
}

fn respond_to_all(socket: &TcpStream, worker: Worker<'_>, moving: impl FnOnce(Instant)) -> Outcome {
    let (request_bytes, response_bytes) = (u64::from(worker.plan.request_bytes), u64::from(worker.plan.response_bytes));
    let socket = socket.as_fd();
    if let Some(bytes_per_s) = worker.budget.bytes_per_s_of_stream()
        && let Err(error) = tcp::set_max_pacing(socket, bytes_per_s)
    {
        return Outcome::GaveUp(error.to_string());
    }
    let mut buffer = vec![0; 64 << 10];
    let mut moving = Some(moving);
    let mut got = 0_u64;
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
        let mut requests = got / request_bytes;
        got %= request_bytes;
        while requests > 0 {
            if let Some(ended) = worker.control.ended() {
                return ended;
            }
            let answers = worker.budget.take(requests, clock::now());
            if answers == 0 {
                clock::sleep(AGAIN);
                continue;
            }
            requests -= answers;
            let mut owed = answers * response_bytes;
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
            worker.tally.answered(answers);
        }
    }
}
