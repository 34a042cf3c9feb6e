//! UDP sockets beyond the standard library: many datagrams per call, large buffers, the path MTU. Source: udp(7), socket(7),
//! ip(7), ipv6(7).
//!
//! - [`listener`]: one socket for all peers, which knows the local address of each datagram.
//! - [`marked`]: TTL, DSCP, ECN and time of arrival of each.
//! - [`socket`]: sockets with one peer, and their options.
//! - [`send`], [`receive`]: many datagrams per call.

pub mod listener;
pub mod marked;
pub mod receive;
pub mod send;
pub mod socket;

pub use listener::{Arrival, UdpListener};
pub use marked::Marks;
pub use receive::ReceiveBatch;
pub use send::{Outgoing, SendBatch};

use crate::raw::{set_buffer, set_option};
use crate::{Error, Result};
use std::net::UdpSocket;

/// `EMSGSIZE`: the datagram is larger than the path MTU that the kernel knows.
pub const TOO_BIG: i32 = libc::EMSGSIZE;
/// `ENOBUFS`: a queue of this host was full.
pub const NO_BUFFERS: i32 = libc::ENOBUFS;

/// Whether an error means that a batch cannot be segmented here: `EINVAL` and `ENOPROTOOPT` of old kernels, `EIO` of
/// devices without checksums and of IPsec routes, `EOPNOTSUPP` of tunnels.
pub const fn is_no_segmentation(errno: i32) -> bool {
    matches!(errno, libc::EINVAL | libc::EIO | libc::EOPNOTSUPP | libc::ENOPROTOOPT)
}

fn set(socket: &UdpSocket, level: libc::c_int, option: libc::c_int, value: u32, operation: &'static str) -> Result<()> {
    let number = libc::c_int::try_from(value)
        .map_err(|_| Error::new(operation, "a UDP socket", std::io::Error::from_raw_os_error(libc::EINVAL)))?;
    set_option(socket, level, option, &number, operation, || "a UDP socket".to_owned())
}

/// Makes the kernel split each send into datagrams of `bytes` of payload, the last one with the rest (`UDP_SEGMENT`,
/// Linux 4.18).
/// Errors: an older kernel; a size above 65,535.
pub fn set_segment_bytes(socket: &UdpSocket, bytes: u32) -> Result<()> {
    set(socket, libc::SOL_UDP, libc::UDP_SEGMENT, bytes, "set UDP_SEGMENT of")
}

/// Sets a receive buffer of `bytes`, above `net.core.rmem_max` if permitted (`SO_RCVBUFFORCE`).
pub fn set_receive_buffer(socket: &UdpSocket, bytes: u32) -> Result<()> {
    let names = [(libc::SO_RCVBUFFORCE, "set SO_RCVBUFFORCE of"), (libc::SO_RCVBUF, "set SO_RCVBUF of")];
    set_buffer(socket, names, bytes, "a UDP socket")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_send_is_several_datagrams() {
        let receiver = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        set_receive_buffer(&receiver, 1 << 20).expect("a buffer");
        let sender = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        set_segment_bytes(&sender, 1000).expect("Linux 4.18");
        sender.send_to(&[7; 2500], receiver.local_addr().expect("bound")).expect("sent");
        let mut buffer = [0; 4000];
        let sizes = [(); 3].map(|()| receiver.recv(&mut buffer).expect("a datagram"));
        assert_eq!(sizes, [1000, 1000, 500]);
    }
}
