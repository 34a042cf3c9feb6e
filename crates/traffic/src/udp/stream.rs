//! An opened stream: what the handshake leaves to the engine.

use super::answerer::Answerer;
use super::buffers::Buffers;
use narrows_model::{Flow, Place};
use narrows_wire::Key;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// A socket connected to the other end, and what the handshake found.
#[derive(Debug)]
pub struct UdpStream {
    /// From 0, the same on both ends.
    pub id: u32,
    /// Which way its data goes.
    pub flow: Flow,
    /// The connected socket, to set options of.
    pub socket: UdpSocket,
    pub peer: SocketAddr,
    /// Known to who received the server's answer: the client returns it before the trial.
    pub cookie: u64,
    pub(crate) number: u16,
    pub(crate) key: Key,
    /// The largest datagram that it may send, by handshake or plan, bytes of payload.
    pub datagram_bytes: u32,
    /// Bytes of the IP packet that the path was found to carry in one piece; where the plan has fixed sizes, what the kernel
    /// takes the path to carry.
    pub path_mtu_bytes: Option<u32>,
    pub(crate) buffers: Buffers,
    /// On the server, until the engine takes over.
    pub(crate) answerer: Option<Answerer>,
    /// The number of calls that received data from the other end while the stream runs: it shows that the peer is alive.
    pub heard: Arc<AtomicU64>,
    /// Whether its thread may ask for real-time priority: a server grants that to no client without a token.
    pub real_time: bool,
    pub(crate) dialect: Dialect,
}

/// How the datagrams of a stream are numbered, and what is said beside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// That of narrows: the receiver says when to begin, the sender when it is done ([`narrows_wire::probe`]).
    Probe,
    /// That of iperf3: begin and end are the control connection's ([`narrows_wire::iperf3::datagram`]).
    Iperf3 {
        /// Counters of 64 bits.
        wide: bool,
    },
}

impl UdpStream {
    /// Whether `place` sends on it.
    pub(crate) fn sends(&self, place: Place) -> bool {
        self.flow.sender() == place
    }
}
