//! The UDP engine: datagrams at a rate, counted one by one.
//!
//! - [`open()`], [`accept()`]: the two ends of the handshake of a stream, which finds the datagram size that the path carries.
//! - [`run`]: moves data on all streams of an end; one end's record out.
//!
//! One thread a stream moves the data. A sender never makes up for a stall with a burst ([`pacer`]); what its socket refused
//! was never sent, and its sequence number goes to the next datagram, so that it cannot look lost. A receiver tells loss,
//! duplication and reordering apart by a window over the sequence numbers ([`window`]).

mod accept;
mod answerer;
mod arrivals;
mod buffers;
mod conductor;
mod counters;
mod departures;
mod engine;
mod error;
mod load;
mod nap;
mod open;
mod outcome;
mod pacer;
mod precedence;
mod progress;
mod receiver;
mod receiving;
mod sender;
mod sending;
mod size;
mod stream;
pub(crate) mod window;
mod worker;

pub use accept::{accept, refuse};
pub use engine::{GRACE, run};
pub use error::UdpError;
pub use open::open;
pub use progress::{UdpProgress, UdpStreamProgress};
pub use stream::UdpStream;
