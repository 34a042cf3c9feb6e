//! `[generator]` and `[receiver]`: the tester's ports, and whether their addresses are those of a lab.

use super::reader::{Item, Table};
use crate::data::{AddressPair, TesterPort};
use narrows_model::Family;
use std::net::IpAddr;

/// The longest name of a Linux device (`IFNAMSIZ` less its end).
pub(super) const MAX_DEVICE_BYTES: usize = 15;

/// Whether an address is for benchmarking: 198.18.0.0/15 (RFC 2544, appendix C.2.2) and 2001:2::/48 (RFC 5180, section 8).
pub(super) fn is_for_benchmarks(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.octets()[0] == 198 && v4.octets()[1] & 0xfe == 18,
        IpAddr::V6(v6) => v6.segments()[..3] == [0x2001, 2, 0],
    }
}

/// A device's name as the kernel takes it (`dev_valid_name`, net/core/dev.c).
pub(super) fn device(item: &Item<'_>) -> Option<String> {
    let name = item.as_text().filter(|name| {
        let plain = !name.chars().any(|c| c == '/' || c == ':' || c.is_whitespace() || c.is_control());
        (1..=MAX_DEVICE_BYTES).contains(&name.len()) && plain && *name != "." && *name != ".."
    });
    name.map(str::to_owned).or_else(|| {
        item.refuse(&format!("the name of a device, 1 to {MAX_DEVICE_BYTES} bytes without spaces, slashes and colons"))
    })
}

/// The longest path of a file with a token.
const MAX_PATH_BYTES: usize = 4096;

/// A host that runs `narrows serve`: whether the word is one, is looked at where hosts are reached.
pub(super) fn host(item: &Item<'_>) -> Option<String> {
    const WANTED: &str = "a host that runs `narrows serve`, like 192.0.2.7, gen.example.org:5220 or ssh://user@host";
    match item.text(255, WANTED) {
        Some(word) if word.chars().any(|c| c.is_whitespace() || c.is_control()) => item.refuse(WANTED),
        word => word,
    }
}

/// The file with the token of a host.
pub(super) fn token_file(table: &Table<'_>) -> Option<String> {
    table.item("token-file").and_then(|item| item.text(MAX_PATH_BYTES, "the path of a file"))
}

fn address(item: &Item<'_>, allow_any: bool, far: bool) -> Option<IpAddr> {
    let address: Option<IpAddr> = item.as_text().and_then(|word| word.parse().ok());
    let Some(address) = address else { return item.refuse("an IP address like 198.18.0.2 or 2001:2::2") };
    if address.is_unspecified() || address.is_loopback() || address.is_multicast() {
        return item.refuse("a unicast address, not loopback");
    }
    if far && !is_for_benchmarks(&address) {
        return item.refuse(
            "of the benchmarking ranges 198.18.0.0/15 and 2001:2::/48: `narrows serve` on the port's host allows no \
            others",
        );
    }
    if !allow_any && !is_for_benchmarks(&address) {
        return item.refuse(
            "of the benchmarking ranges 198.18.0.0/15 and 2001:2::/48, or allow-any-address = true at the top of the file",
        );
    }
    Some(address)
}

/// The keys of an address and its gateway: those of the only family or of IPv4, and those of IPv6 beside it.
const PAIRS: [[&str; 2]; 2] = [["address", "gateway"], ["address6", "gateway6"]];

/// Both addresses of a family, and what they must be to each other.
fn pair(table: &Table<'_>, keys: [&'static str; 2], allow_any: bool, far: bool) -> Option<AddressPair> {
    let read = |key| table.required(key).and_then(|item| address(&item, allow_any, far));
    let (own, gateway) = (read(keys[0]), read(keys[1]));
    let (own, gateway) = (own?, gateway?);
    if own == gateway {
        table.note(keys[1], format!("it is {gateway}, the tester's own address, but must be the address of the DUT"));
    } else if Family::of(&own) != Family::of(&gateway) {
        table.note(keys[1], format!("it is {gateway}, but must have the address family of {}, {own}", keys[0]));
    }
    Some(AddressPair { address: own, gateway })
}

/// The addresses of IPv6 beside those of IPv4, where the table has any.
fn second(table: &Table<'_>, allow_any: bool, far: bool) -> Option<AddressPair> {
    let [own, gateway] = PAIRS[1];
    if !table.has(own) && !table.has(gateway) {
        return None;
    }
    let pair = pair(table, PAIRS[1], allow_any, far)?;
    if pair.address.is_ipv4() {
        table.note(
            own,
            format!(
                "it is {}, but must be an IPv6 address; the IPv4 address goes into \
            `address`",
                pair.address
            ),
        );
    }
    Some(pair)
}

/// A port; nothing where any of it is wrong.
pub(super) fn port(table: &Table<'_>, allow_any: bool) -> Option<TesterPort> {
    let device = table.required("device").and_then(|item| device(&item));
    let far = table.has("host");
    let host = table.item("host").and_then(|item| host(&item));
    let token_file = token_file(table);
    if table.has("token-file") && !far {
        table.note("token-file", "the port has a token file but no host; add host, or remove token-file");
    }
    let first = pair(table, PAIRS[0], allow_any, far);
    let second = second(table, allow_any, far);
    if let (Some(first), Some(second)) = (first, second)
        && first.address.is_ipv6()
        && second.address.is_ipv6()
    {
        let [own, gateway] = PAIRS[0];
        table.note(own, format!("it is {}, but with {} {own} and {gateway} must be IPv4", first.address, PAIRS[1][0]));
    }
    if far && host.is_none() {
        return None;
    }
    let (device, first) = (device?, first?);
    Some(TesterPort { device, address: first.address, gateway: first.gateway, second, host, token_file })
}

/// The addresses of a port by their keys.
fn keyed(port: &TesterPort) -> impl Iterator<Item = (&'static str, IpAddr)> {
    let first = AddressPair { address: port.address, gateway: port.gateway };
    let pairs = [Some(first), port.second].into_iter().zip(PAIRS);
    pairs.flat_map(|(pair, keys)| pair.map(|pair| keys.into_iter().zip([pair.address, pair.gateway]))).flatten()
}

/// What both ports must be to each other.
pub(super) fn check_both(receiver_table: &Table<'_>, generator: &TesterPort, receiver: &TesterPort) {
    for (name, port, other) in [("generator", generator, receiver), ("receiver", receiver, generator)] {
        let outside = keyed(port).find(|(_, address)| !is_for_benchmarks(address));
        if let (None, Some(host), Some((key, address))) = (&port.host, &other.host, outside) {
            let says = format!(
                "{name}.{key} is {address}, outside of 198.18.0.0/15 and 2001:2::/48: `narrows serve` on {host} \
                allows no others"
            );
            receiver_table.note("address", says);
        }
    }
    if Family::of(&generator.address) != Family::of(&receiver.address) {
        let (own, other) = (receiver.address, generator.address);
        let says = format!("it is {own}, but must have the address family of generator.address, {other}");
        receiver_table.note("address", says);
        return;
    }
    for (key, own) in keyed(receiver) {
        for (other_key, other) in keyed(generator) {
            let gateways = [key, other_key].iter().all(|key| key.starts_with("gateway"));
            if own == other && !gateways {
                receiver_table.note(key, format!("it is {own}, the same as generator.{other_key}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_benchmarking_ranges_end_where_they_end() {
        let inside = |word: &str| is_for_benchmarks(&word.parse().expect("an address"));
        assert!(["198.18.0.0", "198.19.255.255", "2001:2::", "2001:2:0:ffff::1"].into_iter().all(inside));
        assert!(!["198.17.255.255", "198.20.0.0", "2001:2:1::", "2001:1::", "10.0.0.1"].into_iter().any(inside));
    }
}
