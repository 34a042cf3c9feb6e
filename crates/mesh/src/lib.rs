//! Many hosts: which pairs are loaded and when, and which element explains what is slow. Pure: no IO, no clock.
//!
//! Hosts are numbered from 0; a [`Load`] goes from one to another.

pub mod blame;
pub mod design;
pub mod differs;
pub mod losing;
pub mod record;
pub mod rounds;

/// A load from one host to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Load {
    pub from: usize,
    pub to: usize,
}

/// A probe (RFC 8762) and its reply as IPv4 packets of an Ethernet.
pub const PROBE_BITS: u64 = 2 * 8 * (44 + 28 + 14);
