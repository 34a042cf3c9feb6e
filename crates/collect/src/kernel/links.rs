//! Network interfaces: `RTM_GETLINK`. Source: kernel `include/uapi/linux/if_link.h`, `net/core/rtnetlink.c`.

use super::Sockets;
use super::tunnels::Tunnel;
use crate::Missing;
use narrows_sys::netlink::numbers::{
    IFLA_ADDRESS, IFLA_CARRIER, IFLA_CARRIER_CHANGES, IFLA_IFNAME, IFLA_INFO_DATA, IFLA_INFO_KIND, IFLA_LINK,
    IFLA_LINK_NETNSID, IFLA_LINKINFO, IFLA_MASTER, IFLA_MTU, IFLA_STATS64, IFLA_TXQLEN, RTM_GETLINK,
};
use narrows_sys::netlink::{self, Builder, Family, Message, attributes, u16_at, u32_at, u64_at};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Link {
    /// Its number in its network namespace.
    pub index: u32,
    pub name: String,
    /// The kernel's name of its kind (`IFLA_INFO_KIND`): `veth`, `tun`, `vlan`, …; none for hardware.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Whether it is a loopback device.
    pub loopback: bool,
    /// Whether it is set up.
    pub up: bool,
    /// Whether it is connected (`IFLA_CARRIER`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carrier: Option<bool>,
    /// How often its carrier changed (`IFLA_CARRIER_CHANGES`, Linux 3.15). It changes, so it is not part of a
    /// capture.
    #[serde(skip)]
    pub carrier_changes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Bytes of the largest IP packet.
    pub mtu: u32,
    /// Packets that its default queue holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub txqueuelen: Option<u32>,
    /// Bytes of the largest segment that it hands to its driver, and that it makes of received packets; what the driver takes at most
    /// (`IFLA_GSO_MAX_SIZE`, `IFLA_GRO_MAX_SIZE`, `IFLA_TSO_MAX_SIZE`, Linux 5.19). Of IPv4 since Linux 6.3 the smaller one counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gso_max: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gro_max: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tso_max: Option<u32>,
    /// The interface below a VLAN, MACVLAN or VXLAN, or the only port of a bond or bridge that leads out of this host, if that is in the same
    /// network namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lower: Option<String>,
    /// The bond or bridge whose port it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub master: Option<String>,
    /// The other end of a veth pair, if that is in the same network namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub twin: Option<String>,
    /// Where a tunnel leads to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tunnel: Option<Tunnel>,
    /// `struct rtnl_link_stats64` by the kernel's names.
    pub counters: BTreeMap<String, u64>,
}

/// The members of `struct rtnl_link_stats64` in order.
pub(crate) const COUNTERS: [&str; 25] = [
    "rx_packets", "tx_packets", "rx_bytes", "tx_bytes", "rx_errors", "tx_errors", "rx_dropped", "tx_dropped",
    "multicast", "collisions", "rx_length_errors", "rx_over_errors", "rx_crc_errors", "rx_frame_errors",
    "rx_fifo_errors", "rx_missed_errors", "tx_aborted_errors", "tx_carrier_errors", "tx_fifo_errors",
    "tx_heartbeat_errors", "tx_window_errors", "rx_compressed", "tx_compressed", "rx_nohandler",
    "rx_otherhost_dropped",
];

/// Kinds whose `IFLA_LINK` is the interface below them; for others (`veth`) it is something else.
const STACKED: [&str; 7] = ["vlan", "macvlan", "macvtap", "ipvlan", "ipvtap", "vxlan", "geneve"];
/// Kinds whose ports name them (`IFLA_MASTER`).
const MASTERS: [&str; 3] = ["bond", "bridge", "team"];

const HEADER: usize = 16;
const IFF_UP: u32 = 1;
const IFF_LOOPBACK: u32 = 1 << 3;

pub(crate) fn by_name(sockets: &Sockets, device: &str) -> Result<Link, Missing> {
    let mut request = Builder::with_header(&[0; HEADER]);
    request.text(IFLA_IFNAME, device);
    request_one(sockets, request, &format!("the device {device} (RTM_GETLINK)"))
}

pub(super) fn by_index(sockets: &Sockets, index: u32) -> Result<Link, Missing> {
    let mut header = [0; HEADER];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    request_one(sockets, Builder::with_header(&header), &format!("the device number {index} (RTM_GETLINK)"))
}

/// Every interface of the network namespace. Does not resolve the interface below a stacked one.
pub(crate) fn all(sockets: &Sockets) -> Result<Vec<Link>, Missing> {
    let what = "the network devices (RTM_GETLINK)";
    let replies = sockets.request(Family::Route, what, RTM_GETLINK, netlink::DUMP, &[0; HEADER])?;
    Ok(replies.iter().filter_map(decode).map(|(link, _)| link).collect())
}

/// The name of the only port of a bond or bridge that leads out of this host, where there is one alone: with several the kernel chooses
/// for each packet.
fn only_port(replies: &[Message], master: u32) -> Option<String> {
    let leads_out = |link: &Link| {
        link.carrier != Some(false)
            && link.kind.as_deref().is_none_or(|kind| STACKED.contains(&kind) || MASTERS.contains(&kind))
    };
    let ports = replies.iter().filter_map(decode).filter(|(_, stacking)| stacking.master == Some(master));
    let mut ports = ports.map(|(link, _)| link).filter(leads_out);
    ports.next().filter(|_| ports.next().is_none()).map(|link| link.name)
}

fn request_one(sockets: &Sockets, request: Builder, what: &str) -> Result<Link, Missing> {
    let payload = request.finish().map_err(|error| Missing::netlink(what, &error))?;
    let replies = sockets.request(Family::Route, what, RTM_GETLINK, 0, &payload)?;
    let (mut link, stacking) = replies
        .first()
        .and_then(decode)
        .ok_or_else(|| Missing::Kernel { what: what.to_owned(), why: "the answer is no device".to_owned() })?;
    link.lower = match &link.kind {
        Some(kind) if MASTERS.contains(&kind.as_str()) => {
            let all = sockets.request(
                Family::Route,
                "the network devices (RTM_GETLINK)",
                RTM_GETLINK,
                netlink::DUMP,
                &[0; HEADER],
            )?;
            only_port(&all, link.index)
        }
        _ => name_of(sockets, stacking.lower),
    };
    link.master = name_of(sockets, stacking.master);
    link.twin = name_of(sockets, stacking.twin);
    if let Some(tunnel) = &mut link.tunnel {
        tunnel.device = name_of(sockets, stacking.bound);
    }
    Ok(link)
}

/// The name alone: the interfaces next to it are not resolved, or two veth would name each other for ever.
fn name_of(sockets: &Sockets, index: Option<u32>) -> Option<String> {
    let mut header = [0; HEADER];
    header[4..8].copy_from_slice(&index.filter(|index| *index > 0)?.to_ne_bytes());
    let replies = sockets.exchange(Family::Route, RTM_GETLINK, 0, &header).ok()?;
    replies.first().and_then(decode).map(|(link, _)| link.name)
}

/// The indices of the interfaces next to one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Stacking {
    lower: Option<u32>,
    /// The bond or bridge whose port it is.
    master: Option<u32>,
    /// The other end of a veth pair.
    twin: Option<u32>,
    /// The interface that a tunnel is bound to.
    bound: Option<u32>,
}

// include/uapi/linux/if_link.h, Linux 6.3
const IFLA_GSO_MAX_SIZE: u16 = 41;
const IFLA_GRO_MAX_SIZE: u16 = 58;
const IFLA_TSO_MAX_SIZE: u16 = 59;
const IFLA_GSO_IPV4_MAX_SIZE: u16 = 63;
const IFLA_GRO_IPV4_MAX_SIZE: u16 = 64;

fn smaller(value: &mut Option<u32>, other: Option<u32>) {
    *value = [*value, other].into_iter().flatten().min();
}

/// An interface, and what it is stacked on.
pub(super) fn decode(message: &Message) -> Option<(Link, Stacking)> {
    let payload = message.payload.as_slice();
    let flags = u32_at(payload, 8)?;
    let mut link = Link {
        index: u32_at(payload, 4)?,
        loopback: flags & IFF_LOOPBACK != 0,
        up: flags & IFF_UP != 0,
        ..Link::default()
    };
    let has_address = u16_at(payload, 2) == Some(1); // ARPHRD_ETHER
    let (mut lower, mut master, mut foreign, mut bound) = (None, None, false, None);
    for attribute in attributes(payload.get(HEADER..)?) {
        match attribute.kind {
            IFLA_IFNAME => link.name = attribute.text()?,
            IFLA_MTU => link.mtu = attribute.u32()?,
            IFLA_TXQLEN => link.txqueuelen = attribute.u32(),
            IFLA_GSO_MAX_SIZE | IFLA_GSO_IPV4_MAX_SIZE => smaller(&mut link.gso_max, attribute.u32()),
            IFLA_GRO_MAX_SIZE | IFLA_GRO_IPV4_MAX_SIZE => smaller(&mut link.gro_max, attribute.u32()),
            IFLA_TSO_MAX_SIZE => link.tso_max = attribute.u32(),
            IFLA_CARRIER => link.carrier = attribute.u8().map(|carrier| carrier != 0),
            IFLA_CARRIER_CHANGES => link.carrier_changes = attribute.u32().map(u64::from),
            IFLA_ADDRESS if has_address => link.address = Some(hardware_address(attribute.payload)),
            IFLA_LINKINFO => {
                link.kind = attribute.find(IFLA_INFO_KIND).and_then(|kind| kind.text());
                let data = attribute.find(IFLA_INFO_DATA).map(|data| data.payload).unwrap_or_default();
                (link.tunnel, bound) = link.kind.as_deref().and_then(|kind| Tunnel::decode(kind, data)).unzip();
            }
            IFLA_LINK => lower = attribute.u32(),
            IFLA_MASTER => master = attribute.u32(),
            IFLA_LINK_NETNSID => foreign = true,
            IFLA_STATS64 => link.counters = counters(attribute.payload),
            _ => {}
        }
    }
    if let Some(tunnel) = &mut link.tunnel {
        tunnel.elsewhere = foreign;
    }
    let near =
        |kinds: &[&str]| lower.filter(|_| !foreign && link.kind.as_deref().is_some_and(|kind| kinds.contains(&kind)));
    let (lower, twin) = (near(&STACKED), near(&["veth"]));
    Some((link, Stacking { lower, master, twin, bound: bound.flatten().filter(|_| !foreign) }))
}

/// Older kernels provide fewer counters: the rest is missing.
fn counters(bytes: &[u8]) -> BTreeMap<String, u64> {
    let named = COUNTERS.iter().enumerate();
    named.filter_map(|(index, name)| Some(((*name).to_owned(), u64_at(bytes, index * 8)?))).collect()
}

pub(super) fn hardware_address(bytes: &[u8]) -> String {
    bytes.iter().take(32).map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_vlan_has_a_lower_interface_and_a_veth_has_none() {
        let message = |kind: &str| {
            let mut header = [0; HEADER];
            header[2] = 1;
            header[4] = 7;
            let mut link = Builder::with_header(&header);
            link.text(IFLA_IFNAME, "x")
                .u32(IFLA_MTU, 9000)
                .u32(IFLA_LINK, 3)
                .bytes(IFLA_ADDRESS, &[2, 0, 0, 0, 0, 255]);
            link.nest(IFLA_LINKINFO, |info| {
                info.text(IFLA_INFO_KIND, kind);
            });
            link.bytes(IFLA_STATS64, &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
            Message { kind: 16, payload: link.finish().expect("short") }
        };
        let (vlan, stacking) = decode(&message("vlan")).expect("a link");
        let below = Stacking { lower: Some(3), ..Stacking::default() };
        assert_eq!((vlan.index, vlan.mtu, stacking), (7, 9000, below));
        assert_eq!(vlan.address.as_deref(), Some("02:00:00:00:00:ff"));
        assert_eq!(vlan.counters, BTreeMap::from([("rx_packets".into(), 1), ("tx_packets".into(), 2)]));
        let veth = Stacking { twin: Some(3), ..Stacking::default() };
        assert_eq!(decode(&message("veth")).expect("a link").1, veth, "its other end is not below it");
    }

    #[test]
    fn a_bridge_with_one_way_out_stands_on_it() {
        let port = |name: &str, kind: Option<&str>, master: u32| {
            let mut link = Builder::with_header(&[0; HEADER]);
            link.text(IFLA_IFNAME, name).u32(IFLA_MTU, 1500).u32(IFLA_MASTER, master);
            if let Some(kind) = kind {
                link.nest(IFLA_LINKINFO, |info| {
                    info.text(IFLA_INFO_KIND, kind);
                });
            }
            Message { kind: 16, payload: link.finish().expect("short") }
        };
        let mut ports = vec![port("eth0", None, 9), port("veth1", Some("veth"), 9), port("eth1", None, 8)];
        assert_eq!(only_port(&ports, 9).as_deref(), Some("eth0"), "a virtual machine's port leads nowhere else");
        ports.push(port("eth2", None, 9));
        assert_eq!(only_port(&ports, 9), None, "two ways out");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(payload in proptest::collection::vec(any::<u8>(), 0..200)) {
            decode(&Message { kind: 16, payload });
        }
    }
}
