//! UDP sockets with one peer, and the options that a measurement needs.

use crate::deputy::{self, Wish};
use crate::{Error, Result, net, raw};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Bytes of the IP and UDP headers around a datagram.
pub const fn header_bytes(peer: &SocketAddr) -> u32 {
    if peer.is_ipv4() { 28 } else { 48 }
}

/// A socket with its own port at all addresses of the peer's family, not connected.
/// Errors: out of descriptors or of ports.
pub fn bind_for(peer: SocketAddr) -> Result<UdpSocket> {
    let any = match peer {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    UdpSocket::bind(any).map_err(|error| Error::new("bind a UDP socket for", peer.to_string(), error))
}

/// A socket with its own port, connected to `peer`: it receives datagrams of that peer only, and has a route.
/// Errors: no route to the peer, or out of descriptors.
pub fn connect(peer: SocketAddr) -> Result<UdpSocket> {
    let socket = bind_for(peer)?;
    socket.connect(peer).map_err(|error| Error::new("find a route to", peer.to_string(), error))?;
    Ok(socket)
}

/// A socket at an address that a [`super::UdpListener`] uses too, connected to `peer`: from now on the kernel delivers
/// that peer's datagrams to this socket, and everything else to the listener (`SO_REUSEPORT` on both; the better match
/// wins).
/// Errors: the address, and the kernel's error.
pub fn connect_from(local: SocketAddr, peer: SocketAddr) -> Result<UdpSocket> {
    let socket = open(&local)?;
    net::bind(&socket, &local).or_else(|error| {
        // A port below 1024.
        let denied = error.errno() == Some(libc::EACCES);
        if denied && deputy::ask(&socket, &Wish::Bind(local)) { Ok(()) } else { Err(error) }
    })?;
    let socket = UdpSocket::from(socket);
    socket.connect(peer).map_err(|error| Error::new("find a route to", peer.to_string(), error))?;
    Ok(socket)
}

/// A datagram socket of the address's family with `SO_REUSEPORT`: sockets of the same user share the port. With `SO_REUSEADDR` any user
/// could bind it, too, and receive what is for the listener (socket(7)).
pub(super) fn open(address: &SocketAddr) -> Result<OwnedFd> {
    let family = if address.is_ipv6() { libc::AF_INET6 } else { libc::AF_INET };
    let object = address.to_string();
    let socket = raw::socket(family, libc::SOCK_DGRAM, libc::IPPROTO_UDP, "open a UDP socket for", object)?;
    net::set_flag(&socket, libc::SOL_SOCKET, libc::SO_REUSEPORT, 1, "set SO_REUSEPORT of a socket for", address)?;
    Ok(socket)
}

/// How datagrams above the path MTU are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fragments {
    /// Not fragmented: DF is set, and a send above the path MTU that the kernel knows, from its route or ICMP,
    /// fails with `EMSGSIZE` (`IP_PMTUDISC_DO`; `IP_PMTUDISC_PROBE` would ignore ICMP).
    Refused,
    /// Fragmented here or on the path (`IP_PMTUDISC_DONT`).
    Allowed,
}

/// Sets whether datagrams may be fragmented.
pub fn set_fragments(socket: &UdpSocket, ipv4: bool, fragments: Fragments) -> Result<()> {
    let (level, name, value) = match (ipv4, fragments) {
        (true, Fragments::Refused) => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO),
        (true, Fragments::Allowed) => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DONT),
        (false, Fragments::Refused) => (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO),
        (false, Fragments::Allowed) => (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DONT),
    };
    raw::set_option(socket, level, name, &value, "set IP_MTU_DISCOVER of", || "a UDP socket".to_owned())
}

/// Bytes of the largest IP packet that the kernel would now send unfragmented to the peer of a connected socket
/// (`IP_MTU`).
/// Errors: the socket is not connected, or the route was removed.
pub fn path_mtu(socket: &UdpSocket, ipv4: bool) -> Result<u32> {
    let (level, name) = if ipv4 { (libc::IPPROTO_IP, libc::IP_MTU) } else { (libc::IPPROTO_IPV6, libc::IPV6_MTU) };
    raw::option_u32(socket, level, name, "read IP_MTU of", "a UDP socket")
}

/// Sets a send buffer of `bytes`, above `net.core.wmem_max` if permitted (`SO_SNDBUFFORCE`).
pub fn set_send_buffer(socket: &UdpSocket, bytes: u32) -> Result<()> {
    let names = [(libc::SO_SNDBUFFORCE, "set SO_SNDBUFFORCE of"), (libc::SO_SNDBUF, "set SO_SNDBUF of")];
    raw::set_buffer(socket, names, bytes, "a UDP socket")
}

/// Lets the kernel deliver several datagrams of one size as one (`UDP_GRO`, Linux 5.0), or not.
pub fn set_coalescing(socket: &UdpSocket, on: bool) -> Result<()> {
    super::set(socket, libc::SOL_UDP, libc::UDP_GRO, u32::from(on), "set UDP_GRO of")
}

/// Makes the kernel stamp each datagram with the wall clock when it enters the host (`SO_TIMESTAMPNS`).
pub fn set_receive_stamps(socket: &UdpSocket, on: bool) -> Result<()> {
    super::set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, u32::from(on), "set SO_TIMESTAMPNS of")
}

/// Limits the time that a send blocks (`SO_SNDTIMEO`).
pub fn set_send_limit(socket: &UdpSocket, limit: Duration) -> Result<()> {
    socket.set_write_timeout(Some(limit)).map_err(|error| Error::new("set SO_SNDTIMEO of", "a UDP socket", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connected_socket_has_a_path_mtu_and_refuses_more() {
        let sink = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let socket = connect(sink.local_addr().expect("bound")).expect("a route");
        set_fragments(&socket, true, Fragments::Refused).expect("an option");
        let mtu = path_mtu(&socket, true).expect("a route");
        assert!(mtu >= 1500, "{mtu}");
        set_coalescing(&socket, true).expect("Linux 5.0");
        set_receive_stamps(&socket, true).expect("an option");
        set_send_buffer(&socket, 50_000).expect("a buffer");
        assert_eq!(crate::tcp::send_buffer(&socket).expect("readable"), 100_000);
    }
}
