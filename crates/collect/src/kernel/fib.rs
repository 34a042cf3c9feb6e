//! Whether this host has a specific route to a network: `RTM_GETROUTE` with `RTM_F_FIB_MATCH` (Linux 4.13), which returns the
//! matching entry of the forwarding table. Source: kernel `net/ipv4/route.c`, `inet_rtm_getroute`.

use super::Sockets;
use crate::Missing;
use narrows_sys::netlink::numbers::{RTA_DST, RTM_GETROUTE};
use narrows_sys::netlink::{Builder, Family, Message, attributes};
use std::net::Ipv4Addr;

const RTM_F_FIB_MATCH: u32 = 0x2000;
const HEADER: usize = 12;
const AF_INET: u8 = 2;
/// Errors if no entry matches, or a prohibiting one does: `EHOSTUNREACH`, `ENETUNREACH`, `EACCES`, `EINVAL`
/// (blackhole).
const NO_ROUTE: [i32; 4] = [113, 101, 13, 22];

/// How many of these networks have an entry of exactly that prefix in the forwarding table of the calling thread's
/// network namespace: a default route does not count.
/// Errors: the kernel does not answer.
pub fn networks_known(networks: &[Ipv4Addr], prefix_bits: u8) -> Result<u64, Missing> {
    let sockets = Sockets::default();
    let mut known = 0;
    for network in networks {
        let what = format!("the route to {network} (RTM_GETROUTE)");
        let mut header = [0; HEADER];
        (header[0], header[1]) = (AF_INET, 32);
        header[8..].copy_from_slice(&RTM_F_FIB_MATCH.to_ne_bytes());
        let mut request = Builder::with_header(&header);
        request.bytes(RTA_DST, &network.octets());
        let payload = request.finish().map_err(|error| Missing::netlink(&what, &error))?;
        match sockets.exchange(Family::Route, RTM_GETROUTE, 0, &payload) {
            Ok(replies) => known += u64::from(replies.first().is_some_and(|it| is_entry(it, *network, prefix_bits))),
            Err(error) if error.errno().is_some_and(|errno| NO_ROUTE.contains(&errno)) => {}
            Err(error) => return Err(Missing::netlink(&what, &error)),
        }
    }
    Ok(known)
}

/// Whether the entry is of exactly that network.
pub(super) fn is_entry(message: &Message, network: Ipv4Addr, prefix_bits: u8) -> bool {
    let payload = message.payload.as_slice();
    let destination = |all| attributes(all).find(|it| it.kind == RTA_DST).map(|it| it.payload.to_vec());
    payload.get(1) == Some(&prefix_bits)
        && payload.get(HEADER..).and_then(destination).as_deref() == Some(&network.octets()[..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_an_entry_of_the_exact_prefix_counts() {
        let reply = |bits: u8, address: [u8; 4]| {
            let mut header = [0; HEADER];
            (header[0], header[1]) = (AF_INET, bits);
            let mut route = Builder::with_header(&header);
            route.bytes(RTA_DST, &address);
            Message { kind: 24, payload: route.finish().expect("short") }
        };
        let network = Ipv4Addr::new(203, 0, 113, 8);
        assert!(is_entry(&reply(29, [203, 0, 113, 8]), network, 29));
        assert!(!is_entry(&reply(24, [203, 0, 113, 0]), network, 29));
        assert!(!is_entry(&reply(29, [203, 0, 113, 16]), network, 29));
        assert!(!is_entry(&Message { kind: 24, payload: vec![AF_INET, 0] }, network, 29), "a default route");
    }

    #[test]
    fn this_host_answers() {
        // Subnets for documentation, which nobody routes.
        assert_eq!(networks_known(&[Ipv4Addr::new(203, 0, 113, 248)], 29), Ok(0));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(payload in proptest::collection::vec(any::<u8>(), 0..120)) {
            is_entry(&Message { kind: 24, payload }, Ipv4Addr::UNSPECIFIED, 0);
        }
    }
}
