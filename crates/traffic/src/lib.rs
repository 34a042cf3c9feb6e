//! Engines that load a path: a plan and connected sockets in, one end's record out.
//!
//! Plain threads and blocking calls, no async: one thread moves the data of one stream, the caller's thread takes the samples. The
//! control plane (another crate) makes the connections: [`prepare`] says what their sockets need before the handshake,
//! [`run`] does the rest.

mod application;
mod awake;
mod batch;
mod conductor;
mod counters;
pub mod engine;
mod error;
pub mod frames;
mod options;
mod outcome;
mod payload;
mod progress;
pub mod reading;
mod receiver;
pub mod rr;
mod sample;
mod schedule;
mod sender;
mod stop;
pub mod udp;
mod worker;

pub use engine::run;
pub use error::TrafficError;
pub use options::prepare;
pub use progress::{Progress, StreamProgress};
pub use stop::Stop;

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
