//! The work of a stream's thread, by what carries its transactions.

use super::connections::Socket;
use super::outcome::Leaves;
use super::requester::{Position, Requester};
use super::tally::Tally;
use super::tcp_requester::TcpRequester;
use super::transactor::Transactor;
use super::udp_requester::UdpRequester;
use super::{tcp_responder, udp_responder};
use crate::common::threads::Control;
use narrows_model::{Place, RrPlan};
use narrows_sys::thread;
use narrows_wire::Key;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Instant;

/// What carries the transactions of one stream.
#[derive(Debug, Clone, Copy)]
pub(super) enum Carrier<'a> {
    Tcp(&'a TcpStream),
    Udp(&'a UdpSocket),
    /// A connection for each transaction.
    Connect(SocketAddr, Key),
}

impl<'a> From<&'a Socket> for Carrier<'a> {
    fn from(socket: &'a Socket) -> Self {
        match socket {
            Socket::Tcp(socket) => Self::Tcp(socket),
            Socket::Udp(socket) => Self::Udp(socket),
        }
    }
}

/// One stream's thread.
#[derive(Debug)]
pub(super) struct Worker<'a> {
    pub(super) place: Place,
    pub(super) plan: &'a RrPlan,
    pub(super) control: &'a Control<'a>,
    pub(super) position: Position,
    pub(super) carrier: Carrier<'a>,
    pub(super) tally: &'a Tally,
}

impl Worker<'_> {
    /// The thread's body. `moving` is called by a responder with the time of the first request.
    pub(super) fn run(self, start: Instant, moving: impl FnOnce(Instant)) -> Leaves {
        thread::exact_timers();
        let Self { place, plan, control, position, carrier, tally } = self;
        let requester = || Requester::new(position, plan, tally, control, start);
        match (carrier, place) {
            (Carrier::Tcp(socket), Place::Client) => TcpRequester::new(requester(), socket).run(),
            (Carrier::Tcp(socket), _) => tcp_responder::respond(socket, plan, tally, control, moving),
            (Carrier::Udp(socket), Place::Client) => UdpRequester::new(requester(), socket, start).run(),
            (Carrier::Udp(socket), _) => udp_responder::respond(socket, position.id, plan, tally, control, moving),
            (Carrier::Connect(address, key), _) => Transactor::new(requester(), address, key).run(),
        }
    }
}
