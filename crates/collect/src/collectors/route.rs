//! How packets to the peer leave this host: route, path MTU, neighbour.

use crate::Missing;
use crate::collector::{Class, Collector, Context, Sink, always};
use narrows_model::keys;

pub(super) const COLLECTOR: Collector = Collector {
    id: "route",
    about: "route to the peer, path MTU, neighbour",
    provides: &[
        keys::ROUTE_DEVICE,
        keys::ROUTE_GATEWAY,
        keys::ROUTE_SOURCE,
        keys::ROUTE_MTU,
        keys::ROUTE_WINDOW,
        keys::ROUTE_INITCWND,
        keys::ROUTE_CWND,
        keys::ROUTE_SSTHRESH,
        keys::ROUTE_CONGESTION,
        keys::PATH_MTU,
        keys::NEIGHBOUR_STATE,
    ],
    class: Class::Inventory,
    can_run: always,
    collect,
};

const SOURCE: &str = "netlink RTM_GETROUTE";

fn collect(context: &Context<'_>, sink: &mut Sink<'_>) -> Result<(), Missing> {
    let route = context.route()?;
    let unset = |what: &str| Missing::because(format!("the route sets no {what}"));
    sink.fact(keys::ROUTE_DEVICE, route.device.as_str(), SOURCE);
    let gateway = route.gateway.map(|gateway| gateway.to_string());
    sink.put(
        keys::ROUTE_GATEWAY,
        gateway.ok_or_else(|| Missing::because("the peer is on the link or is this host")),
        SOURCE,
    );
    sink.put(keys::ROUTE_SOURCE, route.source.map(|source| source.to_string()).ok_or_else(|| unset("source")), SOURCE);
    sink.put(keys::ROUTE_MTU, route.mtu.ok_or_else(|| unset("MTU, and none was learned")), SOURCE);
    sink.put(keys::ROUTE_WINDOW, route.window.ok_or_else(|| unset("window")), SOURCE);
    sink.put(keys::ROUTE_INITCWND, route.initcwnd.ok_or_else(|| unset("initial congestion window")), SOURCE);
    sink.put(keys::ROUTE_CWND, route.cwnd.ok_or_else(|| unset("maximum of the congestion window (cwnd lock)")), SOURCE);
    sink.put(keys::ROUTE_SSTHRESH, route.ssthresh.ok_or_else(|| unset("slow-start threshold")), SOURCE);
    sink.put(keys::ROUTE_CONGESTION, route.congestion.clone().ok_or_else(|| unset("congestion control")), SOURCE);
    let mtu =
        route.path_mtu.ok_or_else(|| Missing::because("the kernel gives no path MTU without a peer that has a route"));
    sink.put(keys::PATH_MTU, mtu, "IP_MTU of a connected UDP socket");
    sink.put(keys::NEIGHBOUR_STATE, neighbour(context), "netlink RTM_GETNEIGH");
    Ok(())
}

fn neighbour(context: &Context<'_>) -> Result<String, Missing> {
    let route = context.route()?;
    let next_hop = route
        .gateway
        .or(context.peer.map(|peer| peer.address))
        .ok_or_else(|| Missing::because("without a peer or a gateway there is no next hop"))?;
    let link = context.link()?;
    if link.loopback || link.address.is_none() {
        return Err(Missing::because(format!("{} has no neighbours: it is no Ethernet device", link.name)));
    }
    Ok(context.host.neighbour(next_hop, &route.device)?.state)
}
