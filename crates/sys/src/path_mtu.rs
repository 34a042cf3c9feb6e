//! The path MTU that the kernel uses towards an address, from its route and exception cache: `IP_MTU`, `IPV6_MTU`.

use crate::error::check;
use crate::{Error, Result};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd as _;

/// Bytes of the largest IP packet that the kernel would send to `peer` in one piece. Sends nothing.
///
/// # Errors
/// No route to the peer.
pub fn towards(peer: IpAddr) -> Result<u32> {
    let object = || peer.to_string();
    let (any, level, option): (IpAddr, _, _) = match peer {
        IpAddr::V4(_) => (std::net::Ipv4Addr::UNSPECIFIED.into(), libc::IPPROTO_IP, libc::IP_MTU),
        IpAddr::V6(_) => (std::net::Ipv6Addr::UNSPECIFIED.into(), libc::IPPROTO_IPV6, libc::IPV6_MTU),
    };
    let socket =
        UdpSocket::bind(SocketAddr::new(any, 0)).map_err(|error| Error::new("bind a socket for", object(), error))?;
    // A connected UDP socket has a route; nothing is sent to the port (discard).
    socket.connect(SocketAddr::new(peer, 9)).map_err(|error| Error::new("find a route to", object(), error))?;
    let mut mtu: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the value is one int that is valid for writing, and its length is given.
    let result = unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, (&raw mut mtu).cast(), &raw mut length) };
    check(result, "ask the path MTU towards", object())?;
    u32::try_from(mtu)
        .map_err(|_| Error::new("ask the path MTU towards", object(), std::io::Error::other("it is negative")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_a_path_mtu() {
        let mtu = towards(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST)).expect("loopback is routed");
        assert!(mtu >= 1280, "{mtu}");
    }
}
