//! Formats, flows and signatures for the tests of the neighbours.

use super::signature::{CLOCKS, MASK, STREAMS, Signature};
use narrows_model::Family;
use narrows_model::load::frames::{Endpoints, FrameFormat, Mac, Transport, Walk};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// One flow of UDP over IPv4.
pub(super) fn format() -> FrameFormat {
    let side = |address: [u8; 4], port| Endpoints::one(IpAddr::from(address), [port; 2]);
    FrameFormat {
        source_mac: Mac([2, 0, 0, 0, 0, 1]),
        destination_mac: Mac([2, 0, 0, 0, 0, 2]),
        vlan: None,
        family: Family::Ipv4,
        transport: Transport::Udp,
        source: side([198, 18, 0, 1], 2000),
        destination: side([198, 19, 0, 1], 2001),
        walk: Walk::Odometer,
        sizes: vec![64],
        ttl: 64,
    }
}

/// Formats of every family and transport, with tag and without, with ranges of any place and length.
pub(super) fn formats() -> impl Strategy<Value = FrameFormat> {
    let of = |family| (endpoints(family), endpoints(family), Just(family));
    let sides = prop_oneof![of(Family::Ipv4), of(Family::Ipv6)];
    let transport = prop_oneof![Just(Transport::Udp), Just(Transport::TcpSyn)];
    let walk = prop_oneof![Just(Walk::Odometer), any::<u64>().prop_map(|seed| Walk::Random { seed })];
    let macs = any::<[[u8; 6]; 2]>();
    (sides, transport, proptest::option::of(0..4096_u16), walk, macs, 1..=255_u8).prop_map(
        |((source, destination, family), transport, vlan, walk, [source_mac, destination_mac], ttl)| FrameFormat {
            source_mac: Mac(source_mac),
            destination_mac: Mac(destination_mac),
            vlan,
            family,
            transport,
            source,
            destination,
            walk,
            sizes: vec![1518],
            ttl,
        },
    )
}

fn endpoints(family: Family) -> impl Strategy<Value = Endpoints> {
    let address = move |bits: u128| match family {
        Family::Ipv4 => IpAddr::from(Ipv4Addr::from_bits(bits as u32)),
        Family::Ipv6 => IpAddr::from(Ipv6Addr::from_bits(bits)),
    };
    let strides = match family {
        Family::Ipv4 => prop_oneof![Just(0_u8), 0..32_u8],
        Family::Ipv6 => prop_oneof![Just(0_u8), 0..128_u8],
    };
    let numbers = (any::<u128>(), any::<u16>(), any::<u16>(), any::<u16>());
    (numbers, strides).prop_map(move |((bits, more, port, last), stride_bits)| {
        let (first, then) = (address(bits), address(bits.wrapping_add(u128::from(more) << (stride_bits % 112))));
        let addresses = [first.min(then), first.max(then)];
        Endpoints { addresses, ports: [port.min(last), port.max(last)], stride_bits }
    })
}

/// Any that 48 bits hold.
pub(super) fn signatures() -> impl Strategy<Value = Signature> {
    (0..STREAMS, 0..CLOCKS, 0..=MASK, 0..=MASK).prop_map(|(stream, clock, sequence, time)| Signature {
        stream,
        clock,
        sequence,
        time,
    })
}
