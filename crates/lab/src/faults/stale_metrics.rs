//! # stale-metrics
//!
//! Connections to the network of the path begin with a slow-start threshold, as one that the kernel remembers of earlier connections: a
//! metric of the route. Since Linux 5.6 kernels take no threshold over unless `net.ipv4.tcp_no_ssthresh_metrics_save` is 0. Congestion
//! controls that keep no threshold (BBR) do not notice. IPv4 only. Source: net/ipv4/tcp_metrics.c, `tcp_init_metrics`.

use super::undo::set_sysctl;
use super::{takes, Fault, HOSTS, Undo, Unit, Value};
use crate::Result;
use crate::host::Host;
use narrows_model::Family;
use narrows_sys::rtnl::{Links, Route};
use std::net::{IpAddr, Ipv4Addr};

pub(super) const FAULT: Fault = Fault {
    id: "stale-metrics",
    about: "connections begin with a low slow-start threshold from the route",
    places: HOSTS,
    parameter: takes(Unit::Count, "4", "the threshold, segments"),
    host: Some(inject),
    ..Fault::NONE
};

const KEY: &str = "net.ipv4.tcp_no_ssthresh_metrics_save";

/// Half of the hosts' network, in which both are: more specific than the route of their addresses.
const HALF_BITS: u8 = 25;

fn inject(host: &Host, value: &Value) -> Result<Undo> {
    let segments = value.number32();
    let name = host.device();
    let Some(IpAddr::V4(own)) = host.address(Family::Ipv4) else { return Ok(Undo::default()) };
    let half = Ipv4Addr::from_bits(own.to_bits() & (u32::MAX << (32 - HALF_BITS)));
    let route = Route { destination: half.into(), prefix_bits: HALF_BITS, gateway: None };
    let undo = set_sysctl(host, KEY, "0")?;
    host.run(|| Links::open()?.add_route_with_ssthresh(name, route, segments))??;
    Ok(undo.then(Undo::new(move |host| Ok(host.run(|| Links::open()?.delete_route(name, route))??))))
}
