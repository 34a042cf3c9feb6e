//! The UDP engine: datagrams at a rate, counted one by one.
//!
//! - [`open()`], [`accept()`]: the two ends of the handshake of a stream, which finds the datagram size that the path carries.
//! - [`iperf3()`]: a stream whose other end is iperf3.
//!
//! One thread per stream moves the data. After a stall a sender skips datagrams rather than send a burst ([`pacer`]). What its
//! socket refused was never sent, and its sequence number goes to the next datagram, so that it cannot look lost. A receiver
//! separates loss, duplication and reordering by a window over the sequence numbers.

mod accept;
mod answerer;
mod arrivals;
mod buffers;
mod departures;
mod engine;
pub(crate) mod error;
mod feedback;
mod iperf3;
mod load;
mod nap;
mod open;
mod pacer;
mod priority;
mod receiving;
mod sender;
mod sending;
mod size;
mod stream;
mod streams;
mod worker;

pub use accept::{accept, refuse};
pub use error::UdpError;
pub use iperf3::iperf3;
pub use open::open;
pub use stream::UdpStream;
