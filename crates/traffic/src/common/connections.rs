//! The connected sockets of one end of a trial, whatever the engine.

use crate::rr::Answers;
use crate::udp::UdpStream;
use narrows_model::{Flow, TcpInfo};
use narrows_wire::Key;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;

/// What carries a stream.
#[derive(Debug)]
pub enum Socket {
    /// A data connection, blocking.
    Tcp(TcpStream),
    /// The same, with a protocol between it and the data.
    Layered(TcpStream, Box<dyn Layer>),
    /// A transport of this process, as QUIC is, with what tells of it.
    Own(Arc<dyn Witness>, Box<dyn Layer>),
    /// A pair of connected sockets, after their handshake.
    Udp(UdpStream),
}

/// A protocol between a connection and the data of a load, as WebSocket over TLS is, which holds the connection as well. Its calls return
/// with `WouldBlock` at the time limit of the socket, so that a trial can end.
pub trait Layer: std::fmt::Debug + Send + Sync {
    /// What it is, for the record.
    fn method(&self) -> &'static str;

    /// Hands a message on; its bytes of data.
    fn send(&mut self) -> io::Result<usize>;

    /// Takes a message; its bytes of data, 0 where the other end says that there are no more.
    fn receive(&mut self) -> io::Result<usize>;

    /// Ends the connection in the protocol's way, within a second.
    fn close(&mut self);
}

/// What tells of a connection that the kernel does not know, from any thread.
pub trait Witness: std::fmt::Debug + Send + Sync {
    /// Of this end, and of the other.
    fn addresses(&self) -> [SocketAddr; 2];

    fn congestion_control(&self) -> &'static str;

    /// What the kernel says of TCP, as far as this transport has the same.
    fn info(&self) -> TcpInfo;
}

/// One connected stream of a trial.
#[derive(Debug)]
pub struct DataStream {
    /// From 0, the same on both ends.
    pub id: u32,
    /// Which way its data goes.
    pub flow: Flow,
    pub socket: Socket,
    /// How long connecting took, in nanoseconds, on the end that connected.
    pub connect_ns: Option<u64>,
}

/// The connections that a trial makes while it runs: one for each transaction of `TCP_CRR`.
#[derive(Debug, Clone)]
pub enum PerTransaction {
    Nothing,
    /// This end makes them.
    Connect {
        /// The server's one port.
        address: SocketAddr,
        key: Key,
    },
    /// The server's accept path answers them.
    Answer(Answers),
}

#[derive(Debug)]
pub struct Connections {
    /// Those that are made before it begins.
    pub streams: Vec<DataStream>,
    /// Those that are made while it runs.
    pub per_transaction: PerTransaction,
    /// Both ends are on one machine, and may use the same CPUs.
    pub beside: bool,
}

impl Connections {
    pub const fn of(streams: Vec<DataStream>) -> Self {
        Self { streams, per_transaction: PerTransaction::Nothing, beside: false }
    }

    /// The same of ends on one machine.
    pub const fn beside(streams: Vec<DataStream>) -> Self {
        Self { streams, per_transaction: PerTransaction::Nothing, beside: true }
    }

    /// The address of the other end, where a stream knows it.
    pub fn peer(&self) -> Option<IpAddr> {
        let peer = match &self.streams.first()?.socket {
            Socket::Tcp(socket) | Socket::Layered(socket, _) => socket.peer_addr().ok()?,
            Socket::Own(witness, _) => witness.addresses()[1],
            Socket::Udp(stream) => stream.peer,
        };
        Some(peer.ip().to_canonical())
    }
}
