//! Routes: `RTM_GETROUTE`. Source: kernel `include/uapi/linux/rtnetlink.h`, `net/ipv4/route.c`, `net/ipv6/route.c`.

use super::{Sockets, links};
use crate::Missing;
use narrows_sys::netlink::numbers::{
    RT_TABLE_MAIN, RTA_DST, RTA_GATEWAY, RTA_METRICS, RTA_OIF, RTA_PREFSRC, RTA_PRIORITY, RTM_GETROUTE,
};
use narrows_sys::netlink::{self, Attribute, Builder, Family, Message, address, attributes};
use narrows_sys::path_mtu;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// How packets to the peer leave this host.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Route {
    pub device: String,
    /// The next hop; none if the peer is on the link or is this host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway: Option<IpAddr>,
    /// The source address that this host would use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<IpAddr>,
    /// `mtu` metric: a configured or learned path MTU, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// `window` metric: the maximum advertised window, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u32>,
    /// `initcwnd` metric, in segments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initcwnd: Option<u32>,
    /// `cwnd` metric where it is locked, else it has no effect (net/ipv4/tcp_metrics.c, `tcp_init_metrics`): the maximum of the congestion
    /// window, in segments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwnd: Option<u32>,
    /// `ssthresh` metric, in segments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssthresh: Option<u32>,
    /// `congctl` metric: the congestion control of this route.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// The path MTU that a connected UDP socket reports (`IP_MTU`), in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_mtu: Option<u32>,
}

const HEADER: usize = 12;
const RTA_VIA: u16 = 18;
const RTAX_LOCK: u16 = 1;
const RTAX_MTU: u16 = 2;
const RTAX_WINDOW: u16 = 3;
const RTAX_SSTHRESH: u16 = 6;
const RTAX_CWND: u16 = 7;
const RTAX_INITCWND: u16 = 11;
const RTAX_CC_ALGO: u16 = 16;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

pub(super) fn towards(sockets: &Sockets, peer: Option<IpAddr>) -> Result<Route, Missing> {
    let (mut route, index) = match peer {
        Some(peer) => lookup(sockets, peer)?,
        None => default(sockets)?,
    };
    route.device = links::by_index(sockets, index)?.name;
    route.path_mtu = peer.and_then(|peer| path_mtu::towards(peer).ok());
    Ok(route)
}

/// The route of a packet to the peer.
fn lookup(sockets: &Sockets, peer: IpAddr) -> Result<(Route, u32), Missing> {
    let what = format!("the route to {peer} (RTM_GETROUTE)");
    let (family, address) = netlink::octets(peer);
    let mut header = [0; HEADER];
    header[0] = family;
    header[1] = u8::try_from(address.len() * 8).unwrap_or(128);
    let mut request = Builder::with_header(&header);
    request.bytes(RTA_DST, &address);
    let payload = request.finish().map_err(|error| Missing::netlink(&what, &error))?;
    let replies = sockets.request(Family::Route, &what, RTM_GETROUTE, 0, &payload)?;
    replies
        .first()
        .and_then(decode)
        .map(|found| (found.route, found.index))
        .ok_or(Missing::Kernel { what, why: "the answer has no device".to_owned() })
}

/// The default route of the main table with the lowest metric; IPv4 first.
fn default(sockets: &Sockets) -> Result<(Route, u32), Missing> {
    for family in [AF_INET, AF_INET6] {
        let mut header = [0; HEADER];
        header[0] = family;
        let what = "the default route (RTM_GETROUTE)";
        let replies = sockets.request(Family::Route, what, RTM_GETROUTE, netlink::DUMP, &header)?;
        let defaults = replies.iter().filter_map(decode).filter(|found| found.is_default);
        if let Some(found) = defaults.min_by_key(|found| found.priority) {
            return Ok((found.route, found.index));
        }
    }
    Err(Missing::because("cannot select an interface: no peer and no default route"))
}

pub(super) struct Found {
    route: Route,
    index: u32,
    priority: u32,
    is_default: bool,
}

pub(super) fn decode(message: &Message) -> Option<Found> {
    let payload = message.payload.as_slice();
    let [family, prefix, _, _, table, ..] = *payload.first_chunk::<HEADER>()?;
    let (mut route, mut index, mut priority) = (Route::default(), None, 0);
    for attribute in attributes(payload.get(HEADER..)?) {
        match attribute.kind {
            RTA_OIF => index = attribute.u32(),
            RTA_PRIORITY => priority = attribute.u32().unwrap_or(0),
            RTA_GATEWAY => route.gateway = address(family, attribute.payload),
            RTA_VIA => route.gateway = attribute.payload.get(2..).and_then(|bytes| address(family_of(bytes), bytes)),
            RTA_PREFSRC => route.source = address(family, attribute.payload),
            RTA_METRICS => metrics(&mut route, &attribute),
            _ => {}
        }
    }
    Some(Found { route, index: index?, priority, is_default: prefix == 0 && table == RT_TABLE_MAIN })
}

fn metrics(route: &mut Route, attribute: &Attribute<'_>) {
    let mut locked = 0;
    for metric in attribute.nested() {
        match metric.kind {
            RTAX_LOCK => locked = metric.u32().unwrap_or(0),
            RTAX_SSTHRESH => route.ssthresh = metric.u32(),
            RTAX_CWND => route.cwnd = metric.u32(),
            RTAX_MTU => route.mtu = metric.u32(),
            RTAX_WINDOW => route.window = metric.u32(),
            RTAX_INITCWND => route.initcwnd = metric.u32(),
            RTAX_CC_ALGO => route.congestion = metric.text(),
            _ => {}
        }
    }
    route.cwnd = route.cwnd.filter(|_| locked & 1 << RTAX_CWND != 0);
}

fn family_of(bytes: &[u8]) -> u8 {
    if bytes.len() == 16 { AF_INET6 } else { AF_INET }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_route_has_its_gateway_and_metrics() {
        let mut header = [0; HEADER];
        header[0] = AF_INET;
        header[4] = RT_TABLE_MAIN;
        let mut route = Builder::with_header(&header);
        route.u32(RTA_OIF, 4).bytes(RTA_GATEWAY, &[192, 0, 2, 1]).nest(RTA_METRICS, |metrics| {
            metrics.u32(RTAX_MTU, 1400).u32(RTAX_WINDOW, 65_535).text(RTAX_CC_ALGO, "reno");
        });
        let found = decode(&Message { kind: 24, payload: route.finish().expect("short") }).expect("a route");
        assert!(found.is_default);
        assert_eq!(found.index, 4);
        assert_eq!(found.route.gateway, Some(IpAddr::from([192, 0, 2, 1])));
        assert_eq!((found.route.mtu, found.route.window, found.route.initcwnd), (Some(1400), Some(65_535), None));
        assert_eq!(found.route.congestion.as_deref(), Some("reno"));
    }

    #[test]
    fn a_congestion_window_counts_where_it_is_locked() {
        let of = |locked: u32| {
            let mut route = Builder::with_header(&[AF_INET, 0, 0, 0, RT_TABLE_MAIN, 0, 0, 0, 0, 0, 0, 0]);
            route.u32(RTA_OIF, 4).nest(RTA_METRICS, |metrics| {
                metrics.u32(RTAX_LOCK, locked).u32(RTAX_CWND, 40).u32(RTAX_SSTHRESH, 12);
            });
            decode(&Message { kind: 24, payload: route.finish().expect("short") }).expect("a route").route
        };
        assert_eq!((of(1 << RTAX_CWND).cwnd, of(1 << RTAX_MTU).cwnd), (Some(40), None));
        assert_eq!(of(0).ssthresh, Some(12));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(payload in proptest::collection::vec(any::<u8>(), 0..120)) {
            decode(&Message { kind: 24, payload });
        }
    }
}
