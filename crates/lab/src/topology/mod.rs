//! The shapes of an emulated network: which hosts there are, how they are wired and addressed.

mod bench;

use narrows_model::Family;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    #[default]
    Pair,
    /// client – path – router – veth – server; the router's kernel forwards
    Chain,
    /// tester – router – tester: a device under test between the two ports of its tester, all on plain veth pairs
    Dut,
    /// tester – switch – router – tester
    DutSwitch,
}

/// What an interface is plugged into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// The emulated path, client's end.
    PathNear,
    /// The emulated path, far end.
    PathFar,
    /// A plain veth pair, the end that makes it.
    Near(Cable),
    /// A plain veth pair, the other end.
    Far(Cable),
}

/// A plain veth pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cable {
    /// The link behind the router of a chain.
    Lan,
    /// From the sending port of the tester.
    Generator,
    /// Between switch and router.
    Trunk,
    /// To the receiving port of the tester.
    Receiver,
    /// From the tester to the management port of the router.
    RouterManagement,
    /// From the tester to the management port of the switch.
    SwitchManagement,
}

/// An interface of a host.
#[derive(Debug, Clone, Copy)]
pub struct InterfacePlan {
    pub name: &'static str,
    /// What it is plugged into.
    pub wire: Wire,
    /// Its Ethernet address; `None`: chosen by the kernel.
    pub mac: Option<[u8; 6]>,
    /// Its addresses; `None`: a port of a switch.
    pub addresses: Option<Addresses>,
    /// Whether the default route leads through it, by way of these gateways if it needs one.
    pub default_route: DefaultRoute,
}

/// One address of each family.
#[derive(Debug, Clone, Copy)]
pub struct Addresses {
    /// IPv4.
    pub v4: Ipv4Addr,
    /// Bits of its network.
    pub v4_bits: u8,
    /// IPv6, of a network of 64 bits.
    pub v6: Ipv6Addr,
}

#[derive(Debug, Clone, Copy)]
pub enum DefaultRoute {
    /// Not through this interface.
    None,
    /// Out of this interface, which has only one other end.
    Direct,
    /// By way of a router.
    By(Ipv4Addr, Ipv6Addr),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    End,
    Router,
    /// Has the ports of a tester: the traffic through a device under test leaves and returns here.
    Tester,
    /// A device under test: its kernel forwards, to as many networks as RFC 2544 requires.
    Device,
    Switch,
}

#[derive(Debug, Clone, Copy)]
pub struct HostPlan {
    pub name: &'static str,
    /// Its interfaces; the first is the main interface of the host.
    pub interfaces: &'static [InterfacePlan],
    pub role: Role,
}

const fn v6(network: u16, host: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd77, network, 0, 0, 0, 0, 0, host)
}

const fn lan(name: &'static str, wire: Wire, v4: Ipv4Addr, v6: Ipv6Addr, default_route: DefaultRoute) -> InterfacePlan {
    InterfacePlan { name, wire, mac: None, addresses: Some(Addresses { v4, v4_bits: 24, v6 }), default_route }
}

const fn path(wire: Wire, v4: [u8; 4], v6: Ipv6Addr) -> InterfacePlan {
    let [a, b, c, d] = v4;
    lan("path0", wire, Ipv4Addr::new(a, b, c, d), v6, DefaultRoute::Direct)
}

const CLIENT: HostPlan =
    HostPlan { name: "client", interfaces: &[path(Wire::PathNear, [10, 77, 0, 1], v6(0, 1))], role: Role::End };

const PAIR: &[HostPlan] = &[
    CLIENT,
    HostPlan { name: "server", interfaces: &[path(Wire::PathFar, [10, 77, 1, 1], v6(1, 1))], role: Role::End },
];

const ROUTER_LAN: (Ipv4Addr, Ipv6Addr) = (Ipv4Addr::new(10, 77, 1, 254), v6(1, 0xfe));

const CHAIN: &[HostPlan] = &[
    CLIENT,
    HostPlan {
        name: "router",
        interfaces: &[
            path(Wire::PathFar, [10, 77, 0, 254], v6(0, 0xfe)),
            lan("lan0", Wire::Near(Cable::Lan), ROUTER_LAN.0, ROUTER_LAN.1, DefaultRoute::None),
        ],
        role: Role::Router,
    },
    HostPlan {
        name: "server",
        interfaces: &[lan(
            "eth0",
            Wire::Far(Cable::Lan),
            Ipv4Addr::new(10, 77, 1, 1),
            v6(1, 1),
            DefaultRoute::By(ROUTER_LAN.0, ROUTER_LAN.1),
        )],
        role: Role::End,
    },
];

impl Topology {
    /// Its hosts, from the client to the server, or from the tester to the device.
    pub const fn hosts(self) -> &'static [HostPlan] {
        match self {
            Self::Pair => PAIR,
            Self::Chain => CHAIN,
            Self::Dut => bench::PLAIN,
            Self::DutSwitch => bench::SWITCHED,
        }
    }

    /// Whether it has an emulated path.
    pub const fn has_path(self) -> bool {
        matches!(self, Self::Pair | Self::Chain)
    }

    /// The address under which the others know a host: that of its first interface with an address.
    pub fn address_of(self, host: &str, family: Family) -> Option<IpAddr> {
        self.hosts().iter().find(|plan| plan.name == host)?.address(family)
    }

    /// The interfaces of other hosts on the network of an interface.
    pub fn neighbours(self, host: &str, interface: &InterfacePlan) -> impl Iterator<Item = &'static InterfacePlan> {
        let network = interface.addresses.map(|addresses| addresses.network());
        let others = self.hosts().iter().filter(move |plan| plan.name != host).flat_map(|plan| plan.interfaces);
        others.filter(move |other| network.is_some() && other.addresses.map(|addresses| addresses.network()) == network)
    }

    /// `/etc/hosts` for all its hosts.
    pub fn hosts_file(self) -> String {
        let mut text = "127.0.0.1 localhost\n::1 localhost\n".to_owned();
        for plan in self.hosts() {
            if let Some(addresses) = plan.addresses() {
                text.push_str(&format!("{} {}\n{} {}\n", addresses.v4, plan.name, addresses.v6, plan.name));
            }
        }
        text
    }
}

impl Addresses {
    /// The address of a family.
    pub const fn of(&self, family: Family) -> IpAddr {
        match family {
            Family::Ipv4 => IpAddr::V4(self.v4),
            Family::Ipv6 => IpAddr::V6(self.v6),
        }
    }

    /// The IPv4 network.
    const fn network(&self) -> (u32, u8) {
        let mask = u32::MAX.checked_shl(32 - self.v4_bits as u32);
        (self.v4.to_bits() & if let Some(mask) = mask { mask } else { 0 }, self.v4_bits)
    }
}

impl HostPlan {
    /// The addresses of its first interface that has some.
    pub fn addresses(&self) -> Option<Addresses> {
        self.interfaces.iter().find_map(|interface| interface.addresses)
    }

    /// The first address of a family.
    pub fn address(&self, family: Family) -> Option<IpAddr> {
        Some(self.addresses()?.of(family))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_and_server_have_the_same_addresses_in_every_shape() {
        for topology in [Topology::Pair, Topology::Chain] {
            let address = |host, family| topology.address_of(host, family).map(|address| address.to_string());
            assert_eq!(address("client", Family::Ipv4).as_deref(), Some("10.77.0.1"));
            assert_eq!(address("server", Family::Ipv4).as_deref(), Some("10.77.1.1"));
            assert_eq!(address("server", Family::Ipv6).as_deref(), Some("fd77:1::1"));
            assert!(topology.hosts_file().contains("fd77:1::1 server\n"));
        }
    }

    #[test]
    fn every_cable_has_two_ends() {
        for topology in [Topology::Pair, Topology::Chain, Topology::Dut, Topology::DutSwitch] {
            let wires: Vec<_> =
                topology.hosts().iter().flat_map(|host| host.interfaces).map(|interface| interface.wire).collect();
            for wire in &wires {
                let other = match *wire {
                    Wire::PathNear => Wire::PathFar,
                    Wire::PathFar => Wire::PathNear,
                    Wire::Near(cable) => Wire::Far(cable),
                    Wire::Far(cable) => Wire::Near(cable),
                };
                assert_eq!(wires.iter().filter(|end| **end == other).count(), 1, "{topology:?}: {wire:?}");
            }
        }
    }
}
