//! The server's end of a `TCP_RR` stream: a response for each request, in their order.

use super::filling::FILL;
use super::outcome::{Leaves, Outcome};
use super::tally::Tally;
use crate::common::threads::Control;
use narrows_model::RrPlan;
use narrows_sys::{clock, tcp};
use std::io::ErrorKind;
use std::net::TcpStream;
use std::os::fd::AsFd as _;
use std::time::Instant;

/// Answers until the client closes or the trial is over; calls `moving` once, with the time of the first byte.
///
/// Its sends may wait: the client always reads. The answers to all requests that one call brought go with one call.
pub(super) fn respond(
    socket: &TcpStream,
    plan: &RrPlan,
    tally: &Tally,
    control: &Control<'_>,
    moving: impl FnOnce(Instant),
) -> Leaves {
    let (request_bytes, response_bytes) = (u64::from(plan.request_bytes), u64::from(plan.response_bytes));
    let socket = socket.as_fd();
    let ended = || {
        let end = if control.stop.is_set() { Outcome::Stopped } else { Outcome::Complete };
        (control.is_over()).then(|| Leaves::of(end, Vec::new()))
    };
    let mut buffer = vec![0; 64 << 10];
    let mut moving = Some(moving);
    let mut got = 0_u64;
    loop {
        if let Some(leaves) = ended() {
            return leaves;
        }
        match tcp::receive(socket, &mut buffer) {
            Ok(0) => return Leaves::of(Outcome::Closed, Vec::new()),
            Ok(bytes) => got += bytes as u64,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => continue,
            Err(error) => return Leaves::of(Outcome::Broken(error), Vec::new()),
        }
        if let Some(moving) = moving.take() {
            moving(clock::now());
        }
        let requests = got / request_bytes;
        got %= request_bytes;
        let mut owed = requests * response_bytes;
        while owed > 0 {
            let most = usize::try_from(owed).unwrap_or(usize::MAX).min(FILL.len());
            match tcp::send(socket, &FILL[..most]) {
                Ok(taken) => owed -= taken as u64,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    if let Some(leaves) = ended() {
                        return leaves;
                    }
                }
                Err(error) => return Leaves::of(Outcome::Broken(error), Vec::new()),
            }
        }
        tally.answered(requests);
    }
}
