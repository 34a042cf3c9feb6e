//! Tunnels: where one leads to and what it adds to each packet (`IFLA_INFO_DATA`).
//! Source: kernel `include/uapi/linux/{if_link,if_tunnel}.h`, `include/net/vxlan.h`, `net/ipv4/ip_gre.c`, `net/ipv6/ip6_tunnel.c`.

use narrows_sys::netlink::{address, find};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// A tunnel that the kernel makes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Tunnel {
    /// Its other end; none where a forwarding table or a program selects it for each packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<IpAddr>,
    /// The interface that it is bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// What it adds to an IP packet of the overlay, IP header of the underlay included, in bytes.
    pub overhead_bytes: u32,
    /// Whether its packets leave through another network namespace.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub elsewhere: bool,
}

const IPV4: u32 = 20;
const IPV6: u32 = 40;
const ETHERNET: u32 = 14;
/// Headers of UDP and of VXLAN or, without options, Geneve: RFC 7348 section 5, RFC 8926 section 3.1.
const UDP_AND_VNI: u32 = 8 + 8;
/// `ip6_tnl_dev_init_gen` leaves room for the tunnel encapsulation limit, RFC 2473 section 4.1.1.
const ENCAPSULATION_LIMIT: u32 = 8;
const IGNORE_ENCAPSULATION_LIMIT: u32 = 1;
/// Headers of WireGuard with UDP: "WireGuard: Next Generation Kernel Network Tunnel", section 5.4.6.
const WIREGUARD: u32 = 8 + 32;

impl Tunnel {
    /// The tunnel, and the index of the interface that it is bound to; `None` for other kinds of interfaces.
    pub(super) fn decode(kind: &str, data: &[u8]) -> Option<(Self, Option<u32>)> {
        let text = |at: u16| find(data, at).map(|attribute| attribute.payload);
        let number = |at: u16| find(data, at).and_then(|attribute| attribute.u32());
        let end =
            |family: u8, at: u16| text(at).and_then(|bytes| address(family, bytes)).filter(|it| !it.is_unspecified());
        let (v4, v6) = (2, 10); // AF_INET, AF_INET6
        let by_family = |remote: Option<IpAddr>| if remote.is_some_and(|it| it.is_ipv6()) { IPV6 } else { IPV4 };
        let gre = || {
            let flags = text(3).and_then(|flags| flags.first()).copied().unwrap_or(0); // IFLA_GRE_OFLAGS, big-endian
            4 + 4 * [0x80, 0x20, 0x10].iter().fold(0, |fields, flag| fields + u32::from(flags & flag != 0))
        };
        let limit = |at: u16| match number(at) {
            Some(flags) if flags & IGNORE_ENCAPSULATION_LIMIT != 0 => 0,
            _ => ENCAPSULATION_LIMIT,
        };
        let (remote, bound, overhead_bytes) = match kind {
            "vxlan" => {
                let remote = end(v4, 2).or_else(|| end(v6, 16));
                // Without a remote one the local address says which IP it is.
                let ip = by_family(remote.or_else(|| end(v6, 17)));
                (remote, number(3), ip + UDP_AND_VNI + ETHERNET)
            }
            "geneve" => {
                let remote = end(v4, 2).or_else(|| end(v6, 7));
                (remote, None, by_family(remote) + UDP_AND_VNI + ETHERNET)
            }
            "ipip" | "sit" => (end(v4, 3), number(1), IPV4),
            "ip6tnl" => (end(v6, 3), number(1), IPV6 + limit(8)),
            "gre" => (end(v4, 7), number(1), IPV4 + gre()),
            "gretap" => (end(v4, 7), number(1), IPV4 + gre() + ETHERNET),
            "ip6gre" => (end(v6, 7), number(1), IPV6 + gre() + limit(13)),
            "ip6gretap" => (end(v6, 7), number(1), IPV6 + gre() + limit(13) + ETHERNET),
            // Its peers are known to `wg` alone; most reach each other over IPv4.
            "wireguard" => (None, None, IPV4 + WIREGUARD),
            _ => return None,
        };
        let remote = remote.filter(|remote| !remote.is_multicast());
        Some((Self { remote, overhead_bytes, ..Self::default() }, bound.filter(|index| *index > 0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_sys::netlink::Builder;

    fn decoded(kind: &str, fill: impl FnOnce(&mut Builder) -> &mut Builder) -> (Option<String>, u32, Option<u32>) {
        let mut data = Builder::new();
        fill(&mut data);
        let (tunnel, bound) = Tunnel::decode(kind, &data.finish().expect("short")).expect("a tunnel");
        (tunnel.remote.map(|remote| remote.to_string()), tunnel.overhead_bytes, bound)
    }

    #[test]
    fn each_kind_has_its_remote_and_its_overhead() {
        let v4 = [192, 0, 2, 2];
        let v6 = std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2).octets();
        let (four, six) = (Some("192.0.2.2".to_owned()), Some("2001:db8::2".to_owned()));
        assert_eq!(decoded("vxlan", |it| it.bytes(2, &v4).u32(3, 7)), (four.clone(), 50, Some(7)));
        assert_eq!(decoded("vxlan", |it| it.bytes(16, &v6)), (six.clone(), 70, None));
        assert_eq!(decoded("vxlan", |it| it.u32(3, 0)), (None, 50, None));
        assert_eq!(decoded("vxlan", |it| it.bytes(2, &[239, 1, 1, 1])), (None, 50, None), "a group is no host");
        assert_eq!(decoded("geneve", |it| it.bytes(7, &v6)), (six.clone(), 70, None));
        assert_eq!(decoded("ipip", |it| it.bytes(3, &v4).u32(1, 4)), (four.clone(), 20, Some(4)));
        assert_eq!(decoded("gre", |it| it.bytes(7, &v4)), (four.clone(), 24, None));
        assert_eq!(decoded("gretap", |it| it.bytes(7, &v4).bytes(3, &[0xa0, 0])), (four, 46, None));
        assert_eq!(decoded("ip6tnl", |it| it.bytes(3, &v6)), (six.clone(), 48, None));
        assert_eq!(decoded("ip6tnl", |it| it.bytes(3, &v6).u32(8, 1)), (six, 40, None));
        assert_eq!(decoded("wireguard", |it| it), (None, 60, None));
        assert_eq!(Tunnel::decode("veth", &[]), None);
    }
}
