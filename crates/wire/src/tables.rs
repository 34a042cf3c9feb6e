//! The entries that fill a table of a device under test, and the addresses of frames that go through them. All follow from the number
//! of entries, so that what was added can be removed by that number alone.
//!
//! Routes: prefixes over a region of four times as many /24 (IPv4, from 16.0.0.0) or /48 (IPv6, in 3fff::/20, RFC 9637) as there are
//! prefixes. A few short prefixes cover the whole region; the others are spread over it, length by length, in the shares that public
//! tables of the Internet have, so that longer ones lie within shorter ones. Each address of the region has a route, and the longest
//! match varies from block to block. Rules: the `n`-th drops a source address of 240.0.0.0/4, or the like of IPv6. Neighbours: hosts of
//! one network on the link.

use crate::frame::flow::mix;
use narrows_model::Family;
use narrows_model::host::table::{TableFill, TableKind};
use narrows_model::load::frames::Endpoints;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An entry of a forwarding table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Prefix {
    pub address: IpAddr,
    pub bits: u8,
}

/// Prefixes of each length in ten thousand, the rest having the longest: rounded from the public tables of 2024.
const LENGTHS_V4: &[(u8, u64)] = &[
    (9, 1),
    (10, 1),
    (11, 1),
    (12, 3),
    (13, 6),
    (14, 12),
    (15, 21),
    (16, 138),
    (17, 85),
    (18, 140),
    (19, 250),
    (20, 450),
    (21, 510),
    (22, 1_130),
    (23, 1_020),
];
const LENGTHS_V6: &[(u8, u64)] = &[
    (28, 40),
    (29, 330),
    (30, 60),
    (31, 30),
    (32, 1_150),
    (33, 150),
    (34, 130),
    (35, 80),
    (36, 550),
    (37, 50),
    (38, 110),
    (39, 70),
    (40, 900),
    (41, 60),
    (42, 180),
    (43, 60),
    (44, 950),
    (45, 200),
    (46, 340),
    (47, 320),
];

/// What distinguishes the families.
struct Shape {
    lengths: &'static [(u8, u64)],
    longest: u8,
    shortest: u8,
    /// Bits of an address.
    bits: u8,
    /// The first address of the region.
    base: u128,
    /// The first neighbour's network.
    link: u128,
    link_bits: u8,
}

const V4: Shape =
    Shape { lengths: LENGTHS_V4, longest: 24, shortest: 8, bits: 32, base: 16 << 24, link: 80 << 24, link_bits: 15 };
const V6: Shape = Shape {
    lengths: LENGTHS_V6,
    longest: 48,
    shortest: 26,
    bits: 128,
    base: 0x3fff << 112,
    link: 0x3fff_0fff << 96,
    link_bits: 64,
};
/// Host number of the first neighbour; 0 is the network address.
const FIRST_HOST: u128 = 2;
/// The host of a block that frames go to.
const HOST: u128 = 2;

const fn shape(family: Family) -> &'static Shape {
    match family {
        Family::Ipv4 => &V4,
        Family::Ipv6 => &V6,
    }
}

impl Shape {
    fn address(&self, bits: u128) -> IpAddr {
        if self.bits == 32 { Ipv4Addr::from_bits(bits as u32).into() } else { Ipv6Addr::from_bits(bits).into() }
    }

    /// Blocks of the longest prefix in the region, a power of two.
    fn blocks(entries: u32) -> u64 {
        (u64::from(entries.max(1)) * 4).next_power_of_two()
    }

    /// The shortest length of which the region has a whole number.
    fn root(&self, entries: u32) -> u8 {
        let bits = u8::try_from(Self::blocks(entries).trailing_zeros()).unwrap_or(0);
        self.longest.saturating_sub(bits).max(self.shortest)
    }

    fn of(&self, bits: u8, nth: u64) -> Prefix {
        let address = self.base + (u128::from(nth) << (self.bits - bits));
        Prefix { address: self.address(address), bits }
    }
}

/// The routes of a table, shortest first; exactly as many as asked for.
pub fn routes(family: Family, entries: u32) -> impl Iterator<Item = Prefix> {
    let shape = shape(family);
    let (blocks, root, all) = (Shape::blocks(entries), shape.root(entries), u64::from(entries));
    let of_length = move |bits: u8| (blocks >> (shape.longest - bits)).max(1);
    let roots = of_length(root).min(all);
    let mut counts = vec![(root, roots)];
    let mut left = all - roots;
    for (bits, share) in shape.lengths.iter().filter(|(bits, _)| *bits > root) {
        let count = (all * share / 10_000).min(of_length(*bits)).min(left);
        counts.push((*bits, count));
        left -= count;
    }
    if shape.longest > root {
        counts.push((shape.longest, left));
    }
    counts.into_iter().flat_map(move |(bits, count)| {
        let places = of_length(bits);
        // One of each stretch, anywhere in it.
        let place = move |nth: u64| {
            let (from, to) = (nth * places / count, (nth + 1) * places / count);
            from + mix(bits.into(), nth) % (to - from).max(1)
        };
        (0..count).map(move |nth| shape.of(bits, place(nth)))
    })
}

/// The network of the neighbours on the link.
pub fn link(family: Family) -> Prefix {
    let shape = shape(family);
    Prefix { address: shape.address(shape.link), bits: shape.link_bits }
}

/// The neighbours of a table.
pub fn neighbours(family: Family, entries: u32) -> impl Iterator<Item = IpAddr> {
    let shape = shape(family);
    (0..u128::from(entries)).map(move |nth| shape.address(shape.link + FIRST_HOST + nth))
}

/// Where the frames of a trial go so that they meet every entry; `None`: where they go without the table.
pub fn destinations(fill: TableFill, ports: [u16; 2]) -> Option<Endpoints> {
    let shape = shape(fill.family);
    let (first, count, stride_bits) = match fill.table {
        TableKind::Routes => (shape.base + HOST, Shape::blocks(fill.entries), shape.bits - shape.longest),
        TableKind::Neighbours => (shape.link + FIRST_HOST, fill.entries.max(1).into(), 0),
        TableKind::Rules => return None,
    };
    let last = first + (u128::from(count - 1) << stride_bits);
    Some(Endpoints { addresses: [first, last].map(|bits| shape.address(bits)), ports, stride_bits })
}

/// The source and the destination of control frames, which a device with the whole table does not forward: to an address behind the
/// last entry, or of the source that the last rule drops. The other side is that of the usual frames.
pub fn control(fill: TableFill, usual: [IpAddr; 2]) -> [IpAddr; 2] {
    let shape = shape(fill.family);
    let [source, destination] = usual;
    match fill.table {
        TableKind::Routes => {
            let behind = u128::from(Shape::blocks(fill.entries)) << (shape.bits - shape.longest);
            [source, shape.address(shape.base + behind + HOST)]
        }
        TableKind::Neighbours => [source, shape.address(shape.link + FIRST_HOST + u128::from(fill.entries))],
        TableKind::Rules => [dropped(source, fill.entries.saturating_sub(1)), destination],
    }
}

/// The source that the rule of a number drops: its bytes 12 to 16 of the IP header are 240.0.0.0 plus the number.
fn dropped(usual: IpAddr, rule: u32) -> IpAddr {
    let word = 0xf000_0000 | rule;
    match usual {
        IpAddr::V4(_) => Ipv4Addr::from_bits(word).into(),
        // The header's byte 12 is the fifth of the source address.
        IpAddr::V6(usual) => {
            let keep = usual.to_bits() & !(u128::from(u32::MAX) << 64);
            Ipv6Addr::from_bits(keep | u128::from(word) << 64).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, HashSet};

    fn covers(prefix: &Prefix, address: IpAddr) -> bool {
        let bits = |address: IpAddr| match address {
            IpAddr::V4(it) => (u128::from(it.to_bits()), 32),
            IpAddr::V6(it) => (it.to_bits(), 128),
        };
        let ((a, wide), (b, _)) = (bits(prefix.address), bits(address));
        (a ^ b) >> (wide - prefix.bits) == 0
    }

    #[test]
    fn a_table_has_as_many_routes_as_asked_for_each_once() {
        for family in [Family::Ipv4, Family::Ipv6] {
            for entries in [1, 2, 7, 100, 1_000, 4_097, 100_000] {
                let all: Vec<Prefix> = routes(family, entries).collect();
                assert_eq!(all.len(), entries as usize, "{family:?}");
                assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len(), "{family:?} {entries}");
            }
        }
    }

    #[test]
    fn a_million_routes_have_the_lengths_of_the_internet() {
        let mut lengths = BTreeMap::new();
        let (mut seen, mut last) = (HashSet::new(), Ipv4Addr::UNSPECIFIED);
        for prefix in routes(Family::Ipv4, 1_000_000) {
            *lengths.entry(prefix.bits).or_insert(0_u32) += 1;
            assert!(seen.insert(prefix), "{prefix:?} twice");
            let IpAddr::V4(address) = prefix.address else { panic!("{prefix:?}") };
            last = last.max(address);
        }
        assert_eq!((lengths[&8], lengths[&16], lengths[&22]), (64, 13_800, 113_000));
        assert!((600_000..640_000).contains(&lengths[&24]), "{lengths:?}");
        // Below 80.0.0.0: nothing that has another use.
        assert!(last < Ipv4Addr::new(80, 0, 0, 0), "{last}");
    }

    #[test]
    fn each_destination_has_a_route_and_the_control_address_none() {
        for family in [Family::Ipv4, Family::Ipv6] {
            let fill = TableFill { table: TableKind::Routes, family, entries: 1_000 };
            let all: Vec<Prefix> = routes(family, 1_000).collect();
            let to = destinations(fill, [9, 9]).expect("a range");
            for address in to.addresses {
                assert!(all.iter().any(|prefix| covers(prefix, address)), "{address}");
            }
            let usual = all[0].address;
            let [_, control] = control(fill, [usual, usual]);
            assert!(!all.iter().any(|prefix| covers(prefix, control)), "{control}");
        }
        let fill = TableFill { table: TableKind::Routes, family: Family::Ipv4, entries: 1_000 };
        let to = destinations(fill, [9, 9]).expect("a range").addresses.map(|it| it.to_string());
        assert_eq!(to, ["16.0.0.2", "16.15.255.2"]);
        let fill = TableFill { family: Family::Ipv6, ..fill };
        let to = destinations(fill, [9, 9]).expect("a range");
        assert_eq!(to.addresses.map(|it| it.to_string()), ["3fff::2", "3fff:0:fff::2"]);
        assert_eq!(to.stride_bits, 80);
    }

    #[test]
    fn neighbours_share_a_link_and_the_last_rule_drops_the_control_frames() {
        let fill = |table| TableFill { table, family: Family::Ipv4, entries: 65_536 };
        let all: Vec<IpAddr> = neighbours(Family::Ipv4, 65_536).collect();
        let to = destinations(fill(TableKind::Neighbours), [9, 9]).expect("a range");
        assert_eq!(to.addresses, [all[0], all[65_535]]);
        assert!(all.iter().all(|it| covers(&link(Family::Ipv4), *it)));
        let usual = ["198.18.0.2", "198.19.0.2"].map(|it| it.parse().expect("an address"));
        let [_, other] = control(fill(TableKind::Neighbours), usual);
        assert!(covers(&link(Family::Ipv4), other) && !all.contains(&other));
        assert_eq!(control(fill(TableKind::Rules), usual)[0].to_string(), "240.0.255.255");
        let v6 = TableFill { family: Family::Ipv6, ..fill(TableKind::Rules) };
        let [source, _] = control(v6, ["2001:2:0:100::2", "2001:2:0:200::2"].map(|it| it.parse().expect("one")));
        assert_eq!(source.to_string(), "2001:2:f000:ffff::2");
    }
}
