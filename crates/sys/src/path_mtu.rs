//! The path MTU that the kernel uses towards an address, from its route and exception cache: `IP_MTU`, `IPV6_MTU`.

use crate::Result;
use crate::udp::socket;
use std::net::{IpAddr, SocketAddr};

/// Bytes of the largest IP packet that the kernel would send to `peer` in one piece. Sends nothing.
/// Errors: no route to the peer.
pub fn towards(peer: IpAddr) -> Result<u32> {
    // A connected UDP socket has a route; nothing is sent to the port (discard).
    let socket = socket::connect(SocketAddr::new(peer, 9))?;
    socket::path_mtu(&socket, peer.is_ipv4())
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
