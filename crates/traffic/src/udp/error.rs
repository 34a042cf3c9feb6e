//! Why a stream of datagrams was not opened.

use std::net::SocketAddr;
use thiserror::Error;

/// What went wrong with the handshake of a stream.
#[derive(Debug, Error)]
pub enum UdpError {
    /// A socket could not be made, or did not take an option.
    #[error("stream {stream}: {source}")]
    Socket {
        stream: u32,
        /// The operation and the kernel's error.
        #[source]
        source: narrows_sys::Error,
    },
    /// Stream numbers are 16 bits wide on the wire.
    #[error("stream {0}: streams of datagrams are numbered from 0 to 65535")]
    Number(u32),
    /// The datagrams would be fragmented.
    #[error(
        "datagrams of {bytes} bytes are too large: the path MTU to {peer} is {path_mtu_bytes} bytes, at most {most} \
        of payload; use a smaller --size, or --fragments"
    )]
    TooLarge {
        peer: SocketAddr,
        /// The size in the plan.
        bytes: u32,
        /// As the kernel knows it by its route and by ICMP.
        path_mtu_bytes: u32,
        /// The largest datagram that it carries.
        most: u32,
    },
    /// Large datagrams are dropped silently, small ones are not.
    #[error(
        "datagrams of {bytes} bytes are lost on the path to {peer} without an ICMP error, while {works} bytes arrive; \
        use a smaller --size, or the largest"
    )]
    Vanish {
        peer: SocketAddr,
        /// The size in the plan.
        bytes: u32,
        works: u32,
    },
    /// The server does not want the stream.
    #[error("{peer} refused stream {stream}: {why}")]
    Refused { peer: SocketAddr, stream: u32, why: String },
    #[error(
        "no UDP answer from {peer} within {} s{}; check that `narrows serve` runs there and that firewalls allow UDP \
        port {}", waited_ms.div_ceil(1000), if *unreachable { " (ICMP port unreachable)" } else { "" }, peer.port()
    )]
    Silent {
        peer: SocketAddr,
        /// How long the client waited.
        waited_ms: u64,
        /// Whether ICMP reported a closed port.
        unreachable: bool,
    },
}
