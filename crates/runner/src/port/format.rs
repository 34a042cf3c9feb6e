//! What the frames of a row are, for the device and for the tester by itself.

use narrows_model::load::frame_traffic::Traffic;
use narrows_model::load::frames::{Endpoints, FrameFormat, Mac, Walk};
use std::net::IpAddr;

/// From whom to whom: Ethernet addresses and IP addresses of the sender and of where the frames go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    pub macs: [Mac; 2],
    pub addresses: [IpAddr; 2],
}

/// Frames of a traffic with these sizes. Flows are source ports; networks begin with that of the destination.
pub fn frame_format(traffic: &Traffic, sizes: Vec<u32>, ends: &Ends) -> FrameFormat {
    let last_port = Traffic::FIRST_PORT.saturating_add(u16::try_from(traffic.flows.max(1) - 1).unwrap_or(u16::MAX));
    let [source, destination] = ends.addresses;
    let ports = [Traffic::FIRST_PORT; 2];
    let table = traffic.table().and_then(|fill| narrows_wire::tables::destinations(fill, ports));
    let several = traffic.networks > 1 || table.is_some();
    FrameFormat {
        source_mac: ends.macs[0],
        destination_mac: ends.macs[1],
        vlan: None,
        family: traffic.family,
        transport: traffic.transport,
        source: Endpoints::one(source, [Traffic::FIRST_PORT, last_port]),
        // A plan that has not so many networks was refused.
        destination: table
            .or_else(|| Endpoints::networks(destination, traffic.networks, ports))
            .unwrap_or_else(|| Endpoints::one(destination, ports)),
        // In turns a walk stays in one network for seconds: several are visited pseudo-randomly (RFC 4814).
        walk: if several && traffic.walk == Walk::Odometer { Walk::Random { seed: 1 } } else { traffic.walk },
        sizes,
        ttl: 64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::Family;
    use narrows_model::load::frames::Transport;

    #[test]
    fn several_networks_are_visited_at_random_and_one_in_turns() {
        let traffic = |family, networks| Traffic {
            family,
            transport: Transport::Udp,
            flows: 100,
            networks,
            walk: Walk::Odometer,
            sizes: vec![128],
            mix: Vec::new(),
            bidirectional: false,
            modifier: None,
        };
        let of = |family, networks, [from, to]: [&str; 2]| {
            let addresses = [from, to].map(|address| address.parse().expect("an address"));
            let ends = Ends { macs: [Mac([2; 6]), Mac([4; 6])], addresses };
            let format = frame_format(&traffic(family, networks), vec![128], &ends);
            assert_eq!(format.check(), Ok(()));
            format
        };
        let one = of(Family::Ipv4, 1, ["198.18.0.2", "198.19.0.2"]);
        assert_eq!((one.walk, one.source.ports, one.destination.ports), (Walk::Odometer, [2000, 2099], [2000, 2000]));
        let all = of(Family::Ipv6, 256, ["2001:2:0:100::2", "2001:2:0:200::2"]);
        assert_eq!((all.walk, all.destination.stride_bits), (Walk::Random { seed: 1 }, 64));
        assert_eq!(all.destination.addresses[1].to_string(), "2001:2:0:2ff::2");
        assert_eq!(narrows_wire::frame::Flows::of(&all).count(), 25_600);
    }
}
