//! The forwarding bench: addresses as in RFC 2544, appendix C.2.2 and RFC 5180, section 5.1, 256 networks per side; on the
//! first of them the device is .1 and the tester .2. The tester reaches the management ports on separate networks.

use super::{Addresses, Cable, DefaultRoute, HostPlan, InterfacePlan, Role, Wire};
use std::net::{Ipv4Addr, Ipv6Addr};

/// The last two bytes of an Ethernet address name side and host; the first one marks it as locally administered.
const fn port(name: &'static str, wire: Wire, side: u8, host: u8) -> InterfacePlan {
    let addresses = Addresses {
        v4: Ipv4Addr::new(198, 17 + side, 0, host),
        v4_bits: 16,
        // The first of 256 networks of 64 bits.
        v6: Ipv6Addr::new(0x2001, 2, 0, (side as u16) << 8, 0, 0, 0, host as u16),
    };
    interface(name, wire, side, host, Some(addresses))
}

const fn management(name: &'static str, cable: Wire, number: u8, host: u8) -> InterfacePlan {
    let addresses = Addresses {
        v4: Ipv4Addr::new(10, 77, number, host),
        v4_bits: 24,
        v6: Ipv6Addr::new(0xfd77, number as u16, 0, 0, 0, 0, 0, host as u16),
    };
    interface(name, cable, number, host, Some(addresses))
}

const fn interface(name: &'static str, wire: Wire, side: u8, host: u8, addresses: Option<Addresses>) -> InterfacePlan {
    let mac = Some([0x02, 0, 0, 0, side, host]);
    InterfacePlan { name, wire, mac, addresses, default_route: DefaultRoute::None }
}

const GENERATOR: InterfacePlan = port("gen0", Wire::Near(Cable::Generator), 1, 2);
const RECEIVER: InterfacePlan = port("rcv0", Wire::Far(Cable::Receiver), 2, 2);
const OUTPUT: InterfacePlan = port("out0", Wire::Near(Cable::Receiver), 2, 1);
const ROUTER_MANAGED: [InterfacePlan; 2] = [
    management("mgmt0", Wire::Near(Cable::RouterManagement), 10, 2),
    management("mgmt0", Wire::Far(Cable::RouterManagement), 10, 1),
];
const SWITCH_MANAGED: [InterfacePlan; 2] = [
    management("mgmt1", Wire::Near(Cable::SwitchManagement), 11, 2),
    management("mgmt0", Wire::Far(Cable::SwitchManagement), 11, 1),
];

pub(super) const PLAIN: &[HostPlan] = &[
    HostPlan { name: "tester", interfaces: &[GENERATOR, RECEIVER, ROUTER_MANAGED[0]], role: Role::Tester },
    HostPlan {
        name: "router",
        interfaces: &[port("in0", Wire::Far(Cable::Generator), 1, 1), OUTPUT, ROUTER_MANAGED[1]],
        role: Role::Device,
    },
];

pub(super) const SWITCHED: &[HostPlan] = &[
    HostPlan {
        name: "tester",
        interfaces: &[GENERATOR, RECEIVER, ROUTER_MANAGED[0], SWITCH_MANAGED[0]],
        role: Role::Tester,
    },
    HostPlan {
        name: "switch",
        interfaces: &[
            interface("port1", Wire::Far(Cable::Generator), 3, 1, None),
            interface("port2", Wire::Near(Cable::Trunk), 3, 2, None),
            SWITCH_MANAGED[1],
        ],
        role: Role::Switch,
    },
    HostPlan {
        name: "router",
        interfaces: &[port("in0", Wire::Far(Cable::Trunk), 1, 1), OUTPUT, ROUTER_MANAGED[1]],
        role: Role::Device,
    },
];

#[cfg(test)]
mod tests {
    use crate::topology::Topology;
    use narrows_model::Family;

    #[test]
    fn tester_and_device_meet_on_both_sides() {
        for topology in [Topology::Dut, Topology::DutSwitch] {
            let tester = topology.hosts().iter().find(|host| host.name == "tester").expect("it is there");
            for (name, peer, v4, v6, peer_v4) in [
                ("gen0", "in0", "198.18.0.2", "2001:2:0:100::2", "198.18.0.1"),
                ("rcv0", "out0", "198.19.0.2", "2001:2:0:200::2", "198.19.0.1"),
            ] {
                let port = tester.interfaces.iter().find(|interface| interface.name == name).expect("it is there");
                let addresses = port.addresses.expect("it has some");
                assert_eq!((addresses.v4.to_string().as_str(), addresses.v6.to_string().as_str()), (v4, v6));
                let mut others = topology.neighbours("tester", port);
                let other = others.next().expect("the device");
                assert_eq!(
                    (other.name, other.addresses.expect("some").of(Family::Ipv4).to_string().as_str()),
                    (peer, peer_v4)
                );
                assert!(others.next().is_none());
            }
            let mut macs: Vec<_> =
                topology.hosts().iter().flat_map(|host| host.interfaces).map(|interface| interface.mac).collect();
            let all = macs.len();
            macs.sort_unstable();
            macs.dedup();
            assert_eq!(macs.len(), all, "each has an Ethernet address of its own");
        }
    }
}
