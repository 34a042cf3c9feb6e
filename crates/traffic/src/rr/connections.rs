//! The sockets of one end of a trial.

use super::answer::Answers;
use crate::tcp::Stream;
use narrows_wire::Key;
use std::net::{SocketAddr, TcpStream, UdpSocket};

/// A connected socket of a stream.
#[derive(Debug)]
pub enum Socket {
    /// For [`narrows_model::Transaction::Tcp`]. Its options are the engine's to set.
    Tcp(TcpStream),
    /// For [`narrows_model::Transaction::Udp`], connected to the other end's socket of the same stream.
    Udp(UdpSocket),
}

/// One stream.
#[derive(Debug)]
pub struct RrStream {
    /// From 0, the same on both ends.
    pub id: u32,
    /// Its socket.
    pub socket: Socket,
    /// How long its connection took to be made, in nanoseconds, where that was measured.
    pub connect_ns: Option<u64>,
}

/// What carries the transactions on this end.
#[derive(Debug)]
pub enum Exchange {
    /// Connected sockets, either end: as many as the plan has streams.
    Streams(Vec<RrStream>),
    /// The client's end of [`narrows_model::Transaction::TcpConnect`].
    Connect {
        /// Of the server's one port.
        address: SocketAddr,
        /// Of the trial.
        key: Key,
    },
    /// The server's end of [`narrows_model::Transaction::TcpConnect`]: what the accept path answers.
    Answer(Answers),
}

/// All connections of this end of a trial.
#[derive(Debug)]
pub struct Connections {
    /// What is measured.
    pub exchange: Exchange,
    /// The streams of the plan's load, connected with [`crate::tcp::prepare`] and the load's plan; empty without one.
    pub load: Vec<Stream>,
}
