//! `[[traffic]]`: families, frame sizes and mixes, flows and networks.

use super::ports::is_for_benchmarks;
use super::reader::{Item, Table};
use crate::data::TesterPort;
use crate::data::settings::Preset;
use narrows_model::Family;
use narrows_model::load::frame_traffic::Traffic;
use narrows_model::load::frame_words::IMIX;
use narrows_model::load::frames::{Endpoints, FrameFormat, MAX_FRAME_BYTES, Transport, Walk};
use std::net::IpAddr;

/// Entries of `[[traffic]]`.
pub(super) const MAX: usize = 8;

/// The frame sizes of RFC 2544, section 9.1, and RFC 5180, section 5.1.1, on Ethernet.
const RFC_2544_SIZES: [u32; 7] = [64, 128, 256, 512, 1024, 1280, 1518];

const fn sizes_of(preset: Preset) -> &'static [u32] {
    match preset {
        Preset::Quick => &[64, 512, 1518],
        Preset::Rfc2544 => &RFC_2544_SIZES,
    }
}

/// Letters of a genome (RFC 6985, section 4) up to the largest frame that Ethernet has without jumbo frames.
const GENOME: [(char, u32); 7] = [('a', 64), ('b', 128), ('c', 256), ('d', 512), ('e', 1024), ('f', 1280), ('g', 1518)];

/// The ports of the tester as far as they are known, by the names of their tables.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ports<'a> {
    pub(super) generator: Option<&'a TesterPort>,
    pub(super) receiver: Option<&'a TesterPort>,
}

impl<'a> Ports<'a> {
    fn known(self) -> impl Iterator<Item = (&'static str, &'a TesterPort)> {
        let all = [("generator", self.generator), ("receiver", self.receiver)];
        all.into_iter().filter_map(|(name, port)| Some((name, port?)))
    }

    /// The families that all of them have addresses of.
    fn families(self) -> Vec<Family> {
        let first = self.known().next().map_or(Family::Ipv4, |(_, port)| Family::of(&port.address));
        let second = if first == Family::Ipv4 { Family::Ipv6 } else { Family::Ipv4 };
        let both = self.known().next().is_some() && self.known().all(|(_, port)| port.of(second).is_some());
        std::iter::once(first).chain(both.then_some(second)).collect()
    }
}

fn of_family(preset: Preset, family: Family) -> Traffic {
    let mut traffic = Traffic {
        family,
        transport: Transport::Udp,
        flows: 2_000,
        networks: 1,
        walk: Walk::Odometer,
        sizes: Vec::new(),
        mix: Vec::new(),
        bidirectional: false,
        modifier: None,
    };
    traffic.sizes = raised(sizes_of(preset), traffic.min_bytes());
    traffic
}

/// What is taken where the file has no `[[traffic]]`: frames of each family that both ports have.
pub(super) fn default_traffic(preset: Preset, ports: Ports<'_>) -> Vec<Traffic> {
    ports.families().into_iter().map(|family| of_family(preset, family)).collect()
}

/// One entry. What is wrong in it is noted, and the default taken in its place.
pub(super) fn traffic(table: &Table<'_>, preset: Preset, ports: Ports<'_>) -> Traffic {
    let mut traffic = of_family(preset, ports.families().first().copied().unwrap_or(Family::Ipv4));
    let families = [("ipv4", Family::Ipv4), ("ipv6", Family::Ipv6)];
    if let Some(wanted) = table.item("family").and_then(|item| item.one_of(&families)) {
        for (name, _) in ports.known().filter(|(_, port)| port.of(wanted).is_none()) {
            let add = match wanted {
                Family::Ipv4 => "set address and gateway to IPv4, and address6 and gateway6 to IPv6",
                Family::Ipv6 => "add address6 and gateway6",
            };
            table.note(
                "family",
                format!(
                    "it is \"{}\", but [{name}] has no address of this family; \
                {add}",
                    wanted.word()
                ),
            );
        }
        traffic.family = wanted;
    }
    let transports = [("udp", Transport::Udp), ("tcp-syn", Transport::TcpSyn)];
    if let Some(transport) = table.item("transport").and_then(|item| item.one_of(&transports)) {
        traffic.transport = transport;
    }
    let least = traffic.min_bytes();
    traffic.sizes = raised(sizes_of(preset), least);
    if let Some(sizes) = table.item("sizes").and_then(|item| sizes(&item, &traffic)) {
        traffic.sizes = sizes;
    }
    if let Some(mix) = table.item("mix").and_then(|item| mix(&item, &traffic)) {
        traffic.mix = mix;
    }
    if let Some(flows) = table.item("flows").and_then(|item| item.count(1..=Traffic::MAX_FLOWS)) {
        traffic.flows = flows;
    }
    if let Some(networks) = table.item("networks").and_then(|item| item.count(1..=Traffic::MAX_NETWORKS)) {
        traffic.networks = networks;
    }
    traffic.walk = walk(table);
    if let Some(both) = table.item("bidirectional").and_then(|item| item.flag()) {
        traffic.bidirectional = both;
    }
    check_networks(table, &traffic, ports);
    traffic
}

/// The networks of one side must leave the other side's alone, and there must be so many.
fn check_networks(table: &Table<'_>, traffic: &Traffic, ports: Ports<'_>) {
    let of = |port: Option<&TesterPort>| port.and_then(|port| port.of(traffic.family)).map(|pair| pair.address);
    let (Some(generator), Some(receiver)) = (of(ports.generator), of(ports.receiver)) else { return };
    if traffic.networks < 2 {
        return;
    }
    let bits = if traffic.family == Family::Ipv4 { 24 } else { 64 };
    let ways = [(receiver, generator, "generator"), (generator, receiver, "receiver")];
    for (first, other, name) in ways.into_iter().take(if traffic.bidirectional { 2 } else { 1 }) {
        let Some(range) = Endpoints::networks(first, traffic.networks, [0; 2]) else {
            table.note("networks", format!("{first} is not followed by {} networks", traffic.networks));
            continue;
        };
        let last = range.addresses[1];
        if last.is_multicast() || is_for_benchmarks(&first) && !is_for_benchmarks(&last) {
            let says = "which is not a unicast range";
            table.note("networks", format!("{} networks from {first} on end with {last}, {says}", traffic.networks));
        }
        let network = |address: IpAddr| match address {
            IpAddr::V4(address) => u128::from(address.to_bits() >> (32 - bits)),
            IpAddr::V6(address) => address.to_bits() >> (128 - bits),
        };
        let [from, to] = range.addresses.map(network);
        if (from..=to).contains(&network(other)) {
            table.note(
                "networks",
                format!(
                    "{} networks of {bits} bits from {first} to {} include {other}, the address of [{name}]; choose \
                    port addresses that are further apart",
                    traffic.networks, last
                ),
            );
        }
    }
}

fn walk(table: &Table<'_>) -> Walk {
    let random = table.item("walk").and_then(|item| item.one_of(&[("odometer", false), ("random", true)]));
    let seed = table.item("seed").and_then(|item| item.whole(0..=u64::MAX));
    match random {
        Some(true) => Walk::Random { seed: seed.unwrap_or(1) },
        _ => {
            if seed.is_some() {
                table.note("seed", "seed needs walk = \"random\"");
            }
            Walk::Odometer
        }
    }
}

/// Sizes of which none is too small, each once.
fn raised(sizes: &[u32], least: u32) -> Vec<u32> {
    let mut raised: Vec<u32> = sizes.iter().map(|size| (*size).max(least)).collect();
    raised.dedup();
    raised
}

/// A size that the traffic can have.
fn size(item: &Item<'_>, traffic: &Traffic) -> Option<u32> {
    let least = traffic.min_bytes();
    let size = item.as_whole().and_then(|size| u32::try_from(size).ok());
    if let Some(size) = size.filter(|size| *size < least && *size > 0) {
        let headers = match (traffic.family, traffic.transport) {
            (Family::Ipv4, Transport::Udp) => "IPv4, UDP",
            (Family::Ipv4, Transport::TcpSyn) => "IPv4, TCP",
            (Family::Ipv6, Transport::Udp) => "IPv6, UDP",
            (Family::Ipv6, Transport::TcpSyn) => "IPv6, TCP",
        };
        item.note(format!("it is {size}, but the minimum for {headers} with signature is {least} bytes with FCS"));
        return None;
    }
    item.count(least..=MAX_FRAME_BYTES)
}

fn listed(item: &Item<'_>, traffic: &Traffic) -> Option<Vec<u32>> {
    let entries = item.list(1..=FrameFormat::MAX_SIZES, "frame sizes in bytes with FCS")?;
    // Every entry is looked at before any is missed.
    let sizes: Vec<Option<u32>> = entries.iter().map(|entry| size(entry, traffic)).collect();
    sizes.into_iter().collect()
}

fn sizes(item: &Item<'_>, traffic: &Traffic) -> Option<Vec<u32>> {
    match item.as_text() {
        Some("rfc2544") => Some(raised(&RFC_2544_SIZES, traffic.min_bytes())),
        Some("imix") => item.refuse("a list of sizes or \"rfc2544\"; write mix = \"imix\" for a mix"),
        Some(_) => item.refuse("a list of sizes or \"rfc2544\""),
        None => {
            let sizes = listed(item, traffic)?;
            let twice = (1..sizes.len()).find(|at| sizes[..*at].contains(&sizes[*at]));
            if let Some(at) = twice {
                item.note(format!("{} is in the list twice", sizes[at]));
            }
            Some(sizes)
        }
    }
}

fn mix(item: &Item<'_>, traffic: &Traffic) -> Option<Vec<u32>> {
    // Sizes of known mixes are raised to what the family can have: their order is what makes them.
    let known = |sizes: Vec<u32>| sizes.into_iter().map(|size| size.max(traffic.min_bytes())).collect();
    match item.as_text() {
        Some("imix") => Some(known(IMIX.to_vec())),
        Some(text) => {
            let letters =
                text.strip_prefix("genome:").filter(|letters| (1..=FrameFormat::MAX_SIZES).contains(&letters.len()));
            let size = |letter: char| GENOME.iter().find(|(known, _)| *known == letter).map(|(_, size)| *size);
            let sizes: Option<Vec<u32>> = letters.and_then(|letters| letters.chars().map(size).collect());
            sizes.map(known).or_else(|| {
                item.refuse("a list of sizes, \"imix\", or \"genome:\" with 1 to 64 letters of a to g (RFC 6985)")
            })
        }
        None => listed(item, traffic),
    }
}
