//! The engine of raw frames: a generator that keeps a rate to the nanosecond, and a receiver that recognises each frame.
//!
//! - [`generate`]: the best mode that works on the device: frames made inside the kernel ([`live`]), `AF_XDP` rings, a packet
//!   socket. One worker a CPU, each with a stream of its own.
//! - [`Receiver`]: counts per stream what arrived, what was duplicated and reordered; in an XDP program where that works.
//!
//! After a stall a generator never sends a burst: frames that were due and skipped are *unsent*.

mod broadcast;
mod clock;
mod coordinator;
mod counter;
mod cpu_slot;
mod device;
mod error;
mod flows;
mod frame_writer;
mod generator;
#[cfg(feature = "xdp")]
mod live;
mod pace;
mod packet;
mod packet_receiver;
mod receiver;
mod samples;
mod tally;
mod worker;
mod xsk;

pub use error::FrameError;
pub use generator::generate;
pub use receiver::Receiver;
