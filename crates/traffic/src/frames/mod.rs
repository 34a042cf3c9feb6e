//! The engine of raw frames: a generator that keeps a rate to the nanosecond, and a receiver that knows each of its frames.
//!
//! - [`generate`]: the best mode that works on the device: frames made inside the kernel ([`live`]), `AF_XDP` rings, a packet
//!   socket. One worker a CPU, each with a stream of its own.
//! - [`Receiver`]: counts per stream what came, what came twice, what came late; in an XDP program where that works.
//!
//! A generator never makes up for a stall with a burst: what was due and given up is *unsent*.

mod author;
mod broadcast;
mod clock;
mod conductor;
mod error;
mod flows;
mod generator;
#[cfg(feature = "xdp")]
mod live;
mod looks;
mod pace;
mod packet;
mod packet_receiver;
mod place;
mod receiver;
mod tally;
mod xsk;

pub use error::FrameError;
pub use generator::generate;
pub use receiver::Receiver;
