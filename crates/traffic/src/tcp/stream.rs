//! A connected socket of the TCP engine.

use narrows_model::Flow;
use std::net::TcpStream;

/// A connected socket and what it is for.
#[derive(Debug)]
pub struct Stream {
    /// From 0, the same on both ends.
    pub id: u32,
    /// Which way its data goes.
    pub flow: Flow,
    /// Blocking or not: the engine makes it blocking.
    pub socket: TcpStream,
}
