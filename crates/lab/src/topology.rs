//! The shapes of an emulated network: which hosts there are, how they are wired and addressed.

use narrows_model::Family;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The shape of a lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Topology {
    /// client – path – server
    #[default]
    Pair,
    /// client – path – router – veth – server; the router's kernel forwards
    Chain,
}

/// What an interface is plugged into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// The emulated path, client's end.
    PathNear,
    /// The emulated path, far end.
    PathFar,
    /// The plain veth pair, the end that makes it.
    LanNear,
    /// The plain veth pair, the other end.
    LanFar,
}

/// An interface of a host.
#[derive(Debug, Clone, Copy)]
pub struct InterfacePlan {
    /// The device's name.
    pub name: &'static str,
    /// What it is plugged into.
    pub wire: Wire,
    /// Its address, of a network of 24 bits.
    pub v4: Ipv4Addr,
    /// Its address, of a network of 64 bits.
    pub v6: Ipv6Addr,
    /// Whether the default route leads through it, by way of these where it needs a gateway.
    pub default_route: DefaultRoute,
}

/// Where all else goes.
#[derive(Debug, Clone, Copy)]
pub enum DefaultRoute {
    /// Not here.
    None,
    /// Out of this interface, which has only one other end.
    Direct,
    /// By way of a router.
    By(Ipv4Addr, Ipv6Addr),
}

/// A host.
#[derive(Debug, Clone, Copy)]
pub struct HostPlan {
    /// Its name.
    pub name: &'static str,
    /// Its interfaces; the first is *the* device of the host.
    pub interfaces: &'static [InterfacePlan],
    /// Whether its kernel forwards.
    pub forwards: bool,
}

const fn v6(network: u16, host: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd77, network, 0, 0, 0, 0, 0, host)
}

const fn path(wire: Wire, v4: [u8; 4], v6: Ipv6Addr) -> InterfacePlan {
    let [a, b, c, d] = v4;
    InterfacePlan { name: "path0", wire, v4: Ipv4Addr::new(a, b, c, d), v6, default_route: DefaultRoute::Direct }
}

const CLIENT: HostPlan =
    HostPlan { name: "client", interfaces: &[path(Wire::PathNear, [10, 77, 0, 1], v6(0, 1))], forwards: false };

const PAIR: &[HostPlan] = &[
    CLIENT,
    HostPlan { name: "server", interfaces: &[path(Wire::PathFar, [10, 77, 1, 1], v6(1, 1))], forwards: false },
];

const ROUTER_LAN: (Ipv4Addr, Ipv6Addr) = (Ipv4Addr::new(10, 77, 1, 254), v6(1, 0xfe));

const CHAIN: &[HostPlan] = &[
    CLIENT,
    HostPlan {
        name: "router",
        interfaces: &[
            path(Wire::PathFar, [10, 77, 0, 254], v6(0, 0xfe)),
            InterfacePlan {
                name: "lan0",
                wire: Wire::LanNear,
                v4: ROUTER_LAN.0,
                v6: ROUTER_LAN.1,
                default_route: DefaultRoute::None,
            },
        ],
        forwards: true,
    },
    HostPlan {
        name: "server",
        interfaces: &[InterfacePlan {
            name: "eth0",
            wire: Wire::LanFar,
            v4: Ipv4Addr::new(10, 77, 1, 1),
            v6: v6(1, 1),
            default_route: DefaultRoute::By(ROUTER_LAN.0, ROUTER_LAN.1),
        }],
        forwards: false,
    },
];

impl Topology {
    /// Its hosts, from the client to the server.
    #[must_use]
    pub const fn hosts(self) -> &'static [HostPlan] {
        match self {
            Self::Pair => PAIR,
            Self::Chain => CHAIN,
        }
    }

    /// The address under which the others know a host: that of its first interface.
    #[must_use]
    pub fn address_of(self, host: &str, family: Family) -> Option<IpAddr> {
        self.hosts().iter().find(|plan| plan.name == host)?.address(family)
    }

    /// `/etc/hosts` for every host of it.
    #[must_use]
    pub fn hosts_file(self) -> String {
        let mut text = "127.0.0.1 localhost\n::1 localhost\n".to_owned();
        for plan in self.hosts() {
            if let Some(interface) = plan.interfaces.first() {
                text.push_str(&format!("{} {}\n{} {}\n", interface.v4, plan.name, interface.v6, plan.name));
            }
        }
        text
    }
}

impl HostPlan {
    /// The address of its first interface.
    #[must_use]
    pub fn address(&self, family: Family) -> Option<IpAddr> {
        let interface = self.interfaces.first()?;
        Some(match family {
            Family::Ipv4 => interface.v4.into(),
            Family::Ipv6 => interface.v6.into(),
        })
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
}
