//! The server's end of a `UDP_RR` stream: each request's header comes back, padded to the size of a response.

use super::requester::{Left, Worker, notes};
use super::udp_requester::MAX_BYTES;
use crate::common::limits::CALL_LIMIT;
use crate::common::outcome::Outcome;
use crate::common::sockets::waits;
use narrows_sys::{clock, exchange, tcp};
use narrows_wire::rr::{self, Header, Role};
use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Instant;

/// Answers until the trial is over, for a client does not report its end; calls `moving` once, with the time of the first
/// request. Datagrams of other streams or sizes get no answer.
pub(super) fn respond(socket: &UdpSocket, worker: Worker<'_>, moving: impl FnOnce(Instant)) -> Left {
    let Worker { plan, control, tally, budget, id, .. } = worker;
    let socket = socket.as_fd();
    let mut buffer = vec![0; MAX_BYTES];
    let mut response = vec![0; (plan.response_bytes as usize).max(rr::LENGTH)];
    let mut moving = Some(moving);
    let (mut foreign, mut unsent, mut excess) = (0_u64, 0_u64, 0_u64);
    let outcome = loop {
        if let Some(ended) = control.ended() {
            break ended;
        }
        let datagram = match tcp::receive(socket, &mut buffer) {
            Ok(bytes) => &buffer[..bytes],
            // A client that has closed refuses the answers to its last requests.
            Err(error) if waits(&error) || error.kind() == ErrorKind::ConnectionRefused => continue,
            Err(error) => break Outcome::Broken(error),
        };
        let request = Header::decode(datagram).ok().filter(|header| {
            header.role == Role::Request && header.stream == id && datagram.len() == plan.request_bytes as usize
        });
        let Some(request) = request else {
            foreign += 1;
            continue;
        };
        if let Some(moving) = moving.take() {
            moving(clock::now());
        }
        if budget.take(1, clock::now()) == 0 {
            excess += 1;
            continue;
        }
        let header = Header { role: Role::Response, ..request };
        response[..rr::LENGTH].copy_from_slice(&header.encode());
        match send(socket, &response) {
            Ok(()) => tally.answered(1),
            Err(_) => unsent += 1,
        }
    };
    let counts = [
        (foreign, "datagrams were not requests of this stream and were not answered"),
        (unsent, "responses could not be sent"),
        (excess, "requests came faster than the plan says and were not answered"),
    ];
    Left::of(outcome, notes(counts).collect())
}

/// Sends at the second try at the latest: the first may report the error of an earlier datagram, or wait for room.
fn send(socket: BorrowedFd<'_>, response: &[u8]) -> io::Result<()> {
    match exchange::send_now(socket, response) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            exchange::wait(socket, true, CALL_LIMIT)?;
        }
        Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionRefused) => {}
        done => return done.map(drop),
    }
    exchange::send_now(socket, response).map(drop)
}
