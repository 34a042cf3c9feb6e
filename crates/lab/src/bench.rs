//! Configures the hosts of a forwarding bench as tester, device under test and switch.
//!
//! An idle bench sends nothing, so that counters hold only a trial's frames: neighbours are static, addresses are not
//! verified, routers are not solicited, and the IPv6 multicast reports that cannot be switched off are all sent in the first
//! moments. The tester does not answer frames that are not addressed to it.
//!
//! The device has a route for each of [`NETWORKS`] networks per side (RFC 2544, section 12; RFC 5180, section 5.2):
//! 198.18.0.0/24 … 198.18.255.0/24 and 2001:2:0:100::/64 … 2001:2:0:1ff::/64 towards the tester's `gen0`, 198.19.0.0/24 … and
//! 2001:2:0:200::/64 … towards its `rcv0`. All lead through the tester's own address there, so that no destination needs a
//! neighbour entry of its own.

use crate::topology::{Addresses, HostPlan, InterfacePlan, Role, Topology};
use crate::{Error, Result};
use narrows_model::Family;
use narrows_sys::cpu::ThreadId;
use narrows_sys::ethtool::Device;
use narrows_sys::rtnl::{Links, Route};
use narrows_sys::{clock, cpu, files, netdev, process, sysctl, thread};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::time::Duration;

/// Destination networks per side.
pub const NETWORKS: u16 = 256;
/// The maximum number of queues of a veth.
const QUEUES_MAX: usize = 8;
/// Nice value of the device under test's threads: above ordinary programs.
const POLLING_NICE: i32 = -19;
const BRIDGE: &str = "br0";
const FAMILIES: [Family; 2] = [Family::Ipv4, Family::Ipv6];
/// The start-up packets are over when nothing was sent for this long.
const SILENCE: Duration = Duration::from_millis(40);
const SILENCE_AT_LATEST: Duration = Duration::from_secs(2);

/// Queues of each veth, in each direction.
pub(crate) fn queues() -> u32 {
    u32::try_from(process::cores().clamp(2, QUEUES_MAX)).unwrap_or(2)
}

/// Prepares the calling thread's network namespace: parameters, interfaces, addresses. The cables are plugged in.
pub(crate) fn configure(plan: &HostPlan, mtu: u32) -> Result<()> {
    for (key, value) in of_host(plan.role) {
        set(key, value)?;
    }
    let mut links = Links::open()?;
    links.set_up("lo", true)?;
    if plan.role == Role::Switch {
        links.add_bridge(BRIDGE)?;
        set(&format!("net.ipv6.conf.{BRIDGE}.disable_ipv6"), "1")?;
    }
    for interface in plan.interfaces {
        let name = interface.name;
        for (family, key, value) in of_interface(plan.role) {
            set(&format!("net.{family}.conf.{name}.{key}"), value)?;
        }
        if !is_management(interface) {
            links.set_mtu(name, mtu)?;
        }
        match interface.addresses {
            Some(addresses) => add_addresses(&mut links, interface, &addresses)?,
            None => {
                set(&format!("net.ipv6.conf.{name}.disable_ipv6"), "1")?;
                links.add_port(BRIDGE, name)?;
            }
        }
        links.set_up(name, true)?;
        if plan.role != Role::Tester && !is_management(interface) {
            let_poll(name)?;
        }
    }
    if plan.role == Role::Switch {
        links.set_mtu(BRIDGE, mtu)?;
        links.set_up(BRIDGE, true)?;
    }
    Ok(())
}

/// Makes an interface that is up poll on a kernel thread of its own, as a real device does. A veth accepts frames from
/// an XDP program only if its peer polls (`veth_xdp_xmit` in drivers/net/veth.c). Without the thread it would poll on
/// the sender's core whenever the sender pauses: a generator could never offer more than the device forwards.
fn let_poll(device: &str) -> Result<()> {
    Device::open(device)?.set_feature("gro", true)?;
    let threaded = Path::new("/sys/class/net").join(device).join("threaded");
    // Since Linux 5.12.
    if !files::exists(&threaded) {
        return Ok(());
    }
    files::write_kernel(&threaded, "1")?;
    keep_apart(device);
    Ok(())
}

/// Keeps the polling threads off the first CPU, where a generator runs its first worker: a real device under test has
/// processors of its own. If that is not permitted, or there is only one CPU, they share it.
fn keep_apart(device: &str) {
    let others: Vec<u32> = cpu::allowed_cpus().unwrap_or_default().into_iter().skip(1).collect();
    let Ok(index) = narrows_sys::device::index(device) else { return };
    if others.is_empty() {
        return;
    }
    for id in netdev::polling_threads(index).unwrap_or_default() {
        if let Ok(id) = i32::try_from(id) {
            let _ = cpu::pin_thread(ThreadId(id), &others);
            let _ = thread::set_nice_of(ThreadId(id), POLLING_NICE);
        }
    }
}

const fn is_management(interface: &InterfacePlan) -> bool {
    matches!(interface.addresses, Some(Addresses { v4_bits: 24, .. }))
}

/// Skips a parameter that this kernel does not have, or not per namespace.
fn set(key: &str, value: &str) -> Result<()> {
    if sysctl::exists(key) { Ok(sysctl::write(key, value)?) } else { Ok(()) }
}

fn of_host(role: Role) -> &'static [(&'static str, &'static str)] {
    match role {
        Role::Device => &[
            ("net.ipv4.ip_forward", "1"),
            ("net.ipv6.conf.all.forwarding", "1"),
            ("net.ipv4.conf.all.rp_filter", "0"),
            ("net.ipv4.conf.all.send_redirects", "0"),
            ("net.ipv4.igmp_link_local_mcast_reports", "0"),
        ],
        // No ICMP errors for frames without a socket: they would be extra frames.
        Role::Tester => &[
            ("net.ipv4.conf.all.rp_filter", "0"),
            ("net.ipv4.igmp_link_local_mcast_reports", "0"),
            ("net.ipv4.icmp_msgs_per_sec", "0"),
            ("net.ipv4.icmp_msgs_burst", "0"),
        ],
        // Bridged frames bypass the packet filter.
        Role::Switch => &[
            ("net.ipv4.igmp_link_local_mcast_reports", "0"),
            ("net.bridge.bridge-nf-call-iptables", "0"),
            ("net.bridge.bridge-nf-call-ip6tables", "0"),
            ("net.bridge.bridge-nf-call-arptables", "0"),
        ],
        Role::End | Role::Router => &[],
    }
}

fn of_interface(role: Role) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let quiet = [
        ("ipv4", "rp_filter", "0"),
        ("ipv4", "send_redirects", "0"),
        ("ipv4", "accept_redirects", "0"),
        ("ipv6", "accept_ra", "0"),
        ("ipv6", "accept_redirects", "0"),
        ("ipv6", "router_solicitations", "0"),
        ("ipv6", "accept_dad", "0"),
        ("ipv6", "dad_transmits", "0"),
        // No link-local address, so nothing to announce.
        ("ipv6", "addr_gen_mode", "1"),
        ("ipv6", "mldv1_unsolicited_report_interval", "1"),
        ("ipv6", "mldv2_unsolicited_report_interval", "1"),
    ];
    // Forwarded frames carry the tester's own source address.
    quiet.into_iter().chain((role == Role::Tester).then_some(("ipv4", "accept_local", "1")))
}

fn add_addresses(links: &mut Links, interface: &InterfacePlan, addresses: &Addresses) -> Result<()> {
    let name = interface.name;
    for family in FAMILIES {
        let (address, bits) = match family {
            Family::Ipv4 => (addresses.of(family), addresses.v4_bits),
            Family::Ipv6 => (addresses.of(family), 64),
        };
        // The routes name each neighbour on a link under test.
        if is_management(interface) {
            links.add_address(name, address, bits)?;
        } else {
            links.add_address_alone(name, address, bits)?;
        }
    }
    Ok(())
}

/// Adds static neighbours and sets the routes, once every interface of the lab is up.
pub(crate) fn route(plan: &HostPlan, topology: Topology) -> Result<()> {
    let mut links = Links::open()?;
    for interface in plan.interfaces {
        for neighbour in topology.neighbours(plan.name, interface) {
            let (Some(theirs), Some(mac)) = (neighbour.addresses, neighbour.mac) else { continue };
            for family in FAMILIES {
                links.add_neighbour(interface.name, theirs.of(family), mac)?;
                let routes = match plan.role {
                    _ if is_management(interface) => Vec::new(),
                    Role::Device => through_the_tester(theirs.of(family)),
                    Role::Tester => through_the_device(plan, interface, theirs.of(family)),
                    Role::Switch | Role::End | Role::Router => Vec::new(),
                };
                links.add_routes(interface.name, &routes)?;
            }
        }
    }
    if plan.role == Role::Switch {
        for (port, mac) in behind_ports(plan, topology) {
            links.add_port_address(port, mac)?;
        }
    }
    Ok(())
}

/// The address at the other end of the link.
fn on_the_link(other: IpAddr) -> Route {
    let prefix_bits = if other.is_ipv4() { 32 } else { 128 };
    Route { destination: other, prefix_bits, gateway: None }
}

/// The tester, and the networks of its side behind it.
fn through_the_tester(tester: IpAddr) -> Vec<Route> {
    let by_way_of_it = |(destination, prefix_bits)| Route { destination, prefix_bits, gateway: Some(tester) };
    std::iter::once(on_the_link(tester)).chain(networks_of(tester).map(by_way_of_it)).collect()
}

/// The networks of the side that the address belongs to.
fn networks_of(address: IpAddr) -> impl Iterator<Item = (IpAddr, u8)> {
    (0..NETWORKS).map(move |number| match address {
        IpAddr::V4(address) => {
            let [a, b, ..] = address.octets();
            (Ipv4Addr::new(a, b, number.to_be_bytes()[1], 0).into(), 24)
        }
        IpAddr::V6(address) => (side_v6(address, number), 64),
    })
}

/// The network with that number on the side of the address.
fn side_v6(address: Ipv6Addr, number: u16) -> IpAddr {
    let [a, b, c, own, ..] = address.segments();
    Ipv6Addr::new(a, b, c, own / NETWORKS * NETWORKS + number, 0, 0, 0, 0).into()
}

/// The device, and behind it the networks of the tester's other ports, so that the tester's traffic to them passes the
/// device under test. The tester reaches its own addresses without the device, except from a socket that is bound to a
/// port (`SO_BINDTODEVICE`).
fn through_the_device(plan: &HostPlan, from: &InterfacePlan, device: IpAddr) -> Vec<Route> {
    let others = plan.interfaces.iter().filter(|other| other.name != from.name && !is_management(other));
    let mut routes = vec![on_the_link(device)];
    for addresses in others.filter_map(|other| other.addresses) {
        let through = |destination, prefix_bits| Route { destination, prefix_bits, gateway: Some(device) };
        if device.is_ipv4() {
            let [a, b, ..] = addresses.v4.octets();
            routes.push(through(Ipv4Addr::new(a, b, 0, 0).into(), 16));
        } else {
            routes.push(through(side_v6(addresses.v6, 0), 56));
        }
    }
    routes
}

/// The Ethernet addresses at the other ends of a switch's cables.
fn behind_ports(plan: &HostPlan, topology: Topology) -> Vec<(&'static str, [u8; 6])> {
    use crate::topology::Wire;
    let ends = || topology.hosts().iter().flat_map(|host| host.interfaces);
    let ports = plan.interfaces.iter().filter(|interface| interface.addresses.is_none());
    let other_end = |port: &InterfacePlan| {
        let wire = match port.wire {
            Wire::Near(cable) => Wire::Far(cable),
            Wire::Far(cable) => Wire::Near(cable),
            path => path,
        };
        ends().find(|end| end.wire == wire).and_then(|end| end.mac)
    };
    ports.filter_map(|port| Some((port.name, other_end(port)?))).collect()
}

/// Waits until the interfaces of the calling thread's network namespace send nothing for a moment.
pub(crate) fn await_silence(plan: &HostPlan) -> Result<()> {
    let mut links = Links::open()?;
    let mut sent = || -> Result<u64> {
        let counts = plan.interfaces.iter().map(|interface| Ok::<_, Error>(links.get(interface.name)?.tx_packets));
        counts.sum()
    };
    let began = clock::now();
    let (mut before, mut since) = (sent()?, began);
    while since.elapsed() < SILENCE && began.elapsed() < SILENCE_AT_LATEST {
        clock::sleep(Duration::from_millis(5));
        let now = sent()?;
        if now != before {
            (before, since) = (now, clock::now());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_has_a_route_to_each_network_of_a_side() {
        let all = |address: &str| through_the_tester(address.parse().expect("an address"));
        let v4 = all("198.19.0.2");
        assert_eq!(v4.len(), 257);
        assert_eq!((v4[0].destination.to_string().as_str(), v4[0].gateway), ("198.19.0.2", None));
        assert_eq!((v4[256].destination.to_string().as_str(), v4[256].prefix_bits), ("198.19.255.0", 24));
        assert!(v4[1..].iter().all(|route| route.gateway == Some(IpAddr::from([198, 19, 0, 2]))));
        let v6 = all("2001:2:0:200::2");
        assert_eq!(v6.len(), 257);
        let destinations: Vec<_> = v6.iter().map(|route| route.destination.to_string()).collect();
        assert_eq!(destinations[..3], ["2001:2:0:200::2", "2001:2:0:200::", "2001:2:0:201::"]);
        assert_eq!(destinations[256], "2001:2:0:2ff::");
    }

    #[test]
    fn a_port_of_the_tester_reaches_the_other_through_the_device() {
        let plan = &Topology::Dut.hosts()[0];
        let routes = |device: &str| {
            let routes = through_the_device(plan, &plan.interfaces[0], device.parse().expect("an address"));
            routes.iter().map(|route| format!("{}/{}", route.destination, route.prefix_bits)).collect::<Vec<_>>()
        };
        assert_eq!(routes("198.18.0.1"), ["198.18.0.1/32", "198.19.0.0/16"]);
        assert_eq!(routes("2001:2:0:100::1"), ["2001:2:0:100::1/128", "2001:2:0:200::/56"]);
    }
}
