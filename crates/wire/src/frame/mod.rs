//! The frames of `narrows generate` and `narrows receive`, as bytes:
//!
//! ```text
//! | Ethernet 14 | 802.1Q 0 or 4 | IPv4 20 or IPv6 40 | UDP 8 or TCP 20 | signature 16 | zeros | (FCS 4, by the device)
//! ```
//!
//! - [`template`]: a prebuilt frame, with the constant part of its checksums.
//! - [`flow`]: the addresses and ports of the frame of each number.
//! - [`signature`]: identifies a frame for its receiver.
//! - [`checksum`]: the Internet's sum, in parts.
//! - `write`: turns a copy into the next frame in place ([`Template::write_flow`]).
//! - [`parse`]: the fields of a received frame.

pub mod checksum;
pub mod flow;
pub mod parse;
pub mod signature;
pub mod template;
#[cfg(test)]
mod testing;
mod write;

pub use flow::{FlowKey, Flows};
pub use parse::Seen;
pub use signature::Signature;
pub use template::Template;
