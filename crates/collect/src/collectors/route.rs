//! How packets to the peer leave this host: route, path MTU, neighbour.

use crate::Missing;
use crate::collector::{Class, Collector, Context, Sink, always};
use narrows_model::{Key, Unit};

pub(super) const COLLECTOR: Collector = Collector {
    id: "route",
    about: "route to the peer, path MTU, neighbour",
    provides: &[
        Key::new("route.device", Unit::Text),
        Key::new("route.gateway", Unit::Text),
        Key::new("route.source", Unit::Text),
        Key::new("route.mtu", Unit::Bytes),
        Key::new("route.window", Unit::Bytes),
        Key::new("route.initcwnd", Unit::Packets),
        Key::new("route.congestion", Unit::Text),
        Key::new("path.mtu", Unit::Bytes),
        Key::new("neighbour.state", Unit::Text),
    ],
    class: Class::Inventory,
    can_run: always,
    collect,
};

const SOURCE: &str = "netlink RTM_GETROUTE";

fn collect(context: &Context<'_>, sink: &mut Sink<'_>) -> Result<(), Missing> {
    let route = context.route()?;
    let unset = |what: &str| Missing::because(format!("the route sets no {what}"));
    sink.fact("route.device", route.device.as_str(), SOURCE);
    let gateway = route.gateway.map(|gateway| gateway.to_string());
    sink.put(
        "route.gateway",
        gateway.ok_or_else(|| Missing::because("the peer is on the link or is this host")),
        SOURCE,
    );
    sink.put("route.source", route.source.map(|source| source.to_string()).ok_or_else(|| unset("source")), SOURCE);
    sink.put("route.mtu", route.mtu.ok_or_else(|| unset("MTU, and none was learned")), SOURCE);
    sink.put("route.window", route.window.ok_or_else(|| unset("window")), SOURCE);
    sink.put("route.initcwnd", route.initcwnd.ok_or_else(|| unset("initial congestion window")), SOURCE);
    sink.put("route.congestion", route.congestion.clone().ok_or_else(|| unset("congestion control")), SOURCE);
    let mtu =
        route.path_mtu.ok_or_else(|| Missing::because("the kernel gives no path MTU without a peer that has a route"));
    sink.put("path.mtu", mtu, "IP_MTU of a connected UDP socket");
    sink.put("neighbour.state", neighbour(context), "netlink RTM_GETNEIGH");
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
