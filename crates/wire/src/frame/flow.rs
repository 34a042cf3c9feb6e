//! The flows of a generator: which addresses and ports the frame of each number carries.

use narrows_model::load::frames::{Endpoints, FrameFormat, Walk};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The fields of a frame that identify its flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    pub source: IpAddr,
    pub source_port: u16,
    pub destination: IpAddr,
    pub destination_port: u16,
}

/// One side's addresses and ports, counted up from the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Range {
    pub address: IpAddr,
    /// Number of addresses, from 1; 2^64 - 1 if there are more.
    pub addresses: u64,
    /// They are 2^n apart.
    pub stride_bits: u8,
    pub port: u16,
    /// Number of ports, 1 to 65,536.
    pub ports: u32,
}

impl Range {
    /// A range that ends before it begins, or in the other family, is reduced to its first address or port.
    fn of(side: &Endpoints) -> Self {
        let [address, last] = side.addresses;
        let more = match (address, last) {
            (IpAddr::V4(first), IpAddr::V4(last)) => last.to_bits().saturating_sub(first.to_bits()).into(),
            (IpAddr::V6(first), IpAddr::V6(last)) => last.to_bits().saturating_sub(first.to_bits()),
            _ => 0,
        };
        let [port, last] = side.ports;
        Self {
            address,
            addresses: u64::try_from(more.checked_shr(side.stride_bits.into()).unwrap_or(0))
                .unwrap_or(u64::MAX)
                .saturating_add(1),
            stride_bits: side.stride_bits,
            port,
            ports: u32::from(last.saturating_sub(port)) + 1,
        }
    }

    fn address(&self, index: u64) -> IpAddr {
        let more = u128::from(index).checked_shl(self.stride_bits.into()).unwrap_or(0);
        match self.address {
            IpAddr::V4(first) => Ipv4Addr::from_bits(first.to_bits().wrapping_add(more as u32)).into(),
            IpAddr::V6(first) => Ipv6Addr::from_bits(first.to_bits().wrapping_add(more)).into(),
        }
    }

    fn port(&self, index: u64) -> u16 {
        self.port.wrapping_add(index as u16)
    }
}

/// All flows of a format, and their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Flows {
    pub source: Range,
    pub destination: Range,
    pub walk: Walk,
}

impl Flows {
    /// The flows of a format.
    pub fn of(format: &FrameFormat) -> Self {
        Self { source: Range::of(&format.source), destination: Range::of(&format.destination), walk: format.walk }
    }

    /// Their number: the product of the four ranges; 2^64 - 1 if there are more.
    pub const fn count(&self) -> u64 {
        (self.source.ports as u64)
            .saturating_mul(self.source.addresses)
            .saturating_mul(self.destination.ports as u64)
            .saturating_mul(self.destination.addresses)
    }

    /// The flow with a number, counted like an odometer: the source port changes fastest, then source address,
    /// destination port and destination address. The last one is followed by the first.
    #[inline]
    pub fn nth(&self, index: u64) -> FlowKey {
        let wheel = |index: u64, positions: u64| (index / positions, index % positions);
        let (index, source_port) = wheel(index, self.source.ports.into());
        let (index, source) = wheel(index, self.source.addresses);
        let (index, destination_port) = wheel(index, self.destination.ports.into());
        FlowKey {
            source: self.source.address(source),
            source_port: self.source.port(source_port),
            destination: self.destination.address(index % self.destination.addresses),
            destination_port: self.destination.port(destination_port),
        }
    }

    /// The number of the flow of the frame with this sequence number.
    #[inline]
    pub const fn index(&self, sequence: u64) -> u64 {
        match self.walk {
            Walk::Odometer => sequence % self.count(),
            Walk::Random { seed } => mix(seed, sequence) % self.count(),
        }
    }

    /// The flow of the frame of this sequence number.
    #[inline]
    pub fn at(&self, sequence: u64) -> FlowKey {
        self.nth(self.index(sequence))
    }
}

/// The `sequence`-th number (from 0) of the generator splitmix64 that starts at `seed`. Each depends only on its own
/// sequence number, so any worker can start anywhere (Steele, Lea and Flood, *Fast Splittable Pseudorandom Number
/// Generators*, OOPSLA 2014, with the constants of Vigna's `splitmix64.c`).
#[inline]
pub const fn mix(seed: u64, sequence: u64) -> u64 {
    let z = seed.wrapping_add(sequence.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::testing;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn flows(source: &str, destination: &str, ports: [[u16; 2]; 2]) -> Flows {
        let side = |range: &str, ports| {
            let (first, last) = range.split_once('-').expect("a range");
            let address = |word: &str| word.parse().expect("an address");
            Range::of(&Endpoints { addresses: [address(first), address(last)], ports, stride_bits: 0 })
        };
        Flows { source: side(source, ports[0]), destination: side(destination, ports[1]), walk: Walk::Odometer }
    }

    #[test]
    fn the_ranges_advance_in_order() {
        let flows = flows("198.18.0.1-198.18.0.2", "198.19.0.1-198.19.0.2", [[2000, 2001], [7, 8]]);
        assert_eq!(flows.count(), 16);
        let seen: Vec<String> = (0..17)
            .map(|index| {
                let FlowKey { source, source_port, destination, destination_port } = flows.nth(index);
                let last = |address: IpAddr| address.to_string().rsplit('.').next().expect("a byte").to_owned();
                format!("{}:{source_port} {}:{destination_port}", last(source), last(destination))
            })
            .collect();
        assert_eq!(&seen[..5], ["1:2000 1:7", "1:2001 1:7", "2:2000 1:7", "2:2001 1:7", "1:2000 1:8"]);
        assert_eq!(seen[8], "1:2000 2:7");
        assert_eq!(seen[15], "2:2001 2:8");
        assert_eq!(seen[16], seen[0]);
    }

    #[test]
    fn more_flows_than_a_counter_holds_are_enumerated() {
        let flows = flows("2001:2::-2001:2:0:ffff::", "2001:2::1-2001:2::1", [[0, 65535], [9, 9]]);
        assert_eq!(flows.count(), u64::MAX);
        assert_eq!(flows.nth(65_535).source_port, 65_535);
        assert_eq!(flows.nth(65_536).source, "2001:2::1".parse::<IpAddr>().expect("an address"));
        assert_eq!(flows.index(u64::MAX), 0);
    }

    #[test]
    fn one_address_of_each_network_is_used() {
        for (first, last, networks) in [("198.19.0.2", "198.19.255.2", 8), ("2001:2:0:200::2", "2001:2:0:2ff::2", 64)] {
            let address = |word: &str| word.parse::<IpAddr>().expect("an address");
            let one = Range::of(&Endpoints::one(address(first), [9, 9]));
            let destination = Endpoints::networks(address(first), 256, [9, 9]).expect("so many");
            assert_eq!((destination.addresses[1], destination.stride_bits), (address(last), networks));
            let flows = Flows { source: one, destination: Range::of(&destination), walk: Walk::Odometer };
            assert_eq!(flows.count(), 256);
            let seen: HashSet<IpAddr> = (0..256).map(|index| flows.nth(index).destination).collect();
            assert_eq!(seen.len(), 256);
            assert!(seen.contains(&address(last)) && flows.nth(256) == flows.nth(0));
        }
    }

    #[test]
    fn the_mixer_is_splitmix64() {
        // The first numbers of splitmix64 from 1234567, as published with its reference code.
        let numbers = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([mix(1_234_567, 0), mix(1_234_567, 1), mix(1_234_567, 2)], numbers);
    }

    #[test]
    fn the_random_order_reaches_every_flow() {
        let flows = Flows {
            walk: Walk::Random { seed: 7 },
            ..flows("198.18.0.1-198.18.0.10", "198.19.0.1-198.19.0.1", [[2000, 2019], [9, 9]])
        };
        let seen: HashSet<FlowKey> = (0..4000).map(|sequence| flows.at(sequence)).collect();
        assert_eq!(seen.len(), 200);
        assert_ne!(flows.index(1), flows.index(0) + 1);
    }

    proptest! {
        #[test]
        fn each_number_has_a_flow_within_the_ranges(format in testing::formats(), index: u64) {
            let flow = Flows::of(&format).nth(index);
            for (side, address, port) in [
                (format.source, flow.source, flow.source_port),
                (format.destination, flow.destination, flow.destination_port),
            ] {
                prop_assert!(side.addresses[0] <= address && address <= side.addresses[1]);
                prop_assert!(side.ports[0] <= port && port <= side.ports[1]);
            }
        }

        #[test]
        fn no_flow_repeats_within_a_cycle(format in testing::formats(), a: u64, b: u64) {
            let flows = Flows::of(&format);
            let (a, b) = (a % flows.count(), b % flows.count());
            prop_assert_eq!(a == b, flows.nth(a) == flows.nth(b));
        }
    }
}
