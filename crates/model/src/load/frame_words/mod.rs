//! The user's words for frames: ranges of addresses and ports as pkt-gen writes them, frame sizes and mixes of sizes, loads.

mod load;
mod show;
mod sizes;

pub use load::parse_load;
pub use show::{family, protocol, sizes, walk};
pub use sizes::{IMIX, parse_sizes};

use crate::load::frames::Endpoints;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use thiserror::Error;

/// An invalid range, list of sizes or load, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct FrameWordError(String);

impl FrameWordError {
    fn not_a(word: &str, what: &str, examples: &str) -> Self {
        Self(format!("invalid {what} `{}`; write it like {examples}", shortened(word)))
    }

    fn of(word: &str, says: &str) -> Self {
        Self(format!("`{}` {says}", shortened(word)))
    }
}

/// What a range of addresses looks like.
const RANGES: &str = "198.18.0.1:2000-198.18.0.20, [2001:2::1]:2000-[2001:2::20]:2100 or 198.19.0.2-198.19.255.2/24";
/// No range is longer than two IPv6 addresses in brackets with ports.
const RANGE_CHARS: usize = 128;

/// Reads `addr[:port][-addr[:port][/bits]]`. With `/bits` one address of each network of that length is taken. An IPv6 address with a port stands in brackets, one without may. Without a second
/// address the range is the first alone. A first port that is missing is `default_port`; a second that is missing is the first.
/// Errors: no such range, one of two families, or one that ends before it begins.
pub fn parse_endpoints(word: &str, default_port: u16) -> Result<Endpoints, FrameWordError> {
    let not_a = || FrameWordError::not_a(word, "range of addresses", RANGES);
    if word.len() > RANGE_CHARS {
        return Err(not_a());
    }
    let (first, last) = word.split_once('-').map_or((word, None), |(first, last)| (first, Some(last)));
    let (first, port) = endpoint(first).ok_or_else(not_a)?;
    let port = port.unwrap_or(default_port);
    let (last, bits) =
        last.map_or((None, None), |last| last.split_once('/').map_or((Some(last), None), |(a, b)| (Some(a), Some(b))));
    let (last, last_port) = match last {
        Some(last) => endpoint(last).ok_or_else(not_a)?,
        None => (first, None),
    };
    let width = if first.is_ipv4() { 32 } else { 128 };
    let stride_bits = match bits.map(|bits| number::<u8>(bits).filter(|bits| (1..=width).contains(bits))) {
        None => 0,
        Some(Some(bits)) => width - bits,
        Some(None) => return Err(not_a()),
    };
    let last_port = last_port.unwrap_or(port);
    if first.is_ipv4() != last.is_ipv4() {
        let says = "mixes address families: both ends must be IPv4, or both IPv6";
        return Err(FrameWordError::of(word, says));
    }
    if first > last || port > last_port {
        let what = if first > last { "address" } else { "port" };
        let says = format!("is reversed: its first {what} is higher than its last");
        return Err(FrameWordError::of(word, &says));
    }
    Ok(Endpoints { addresses: [first, last], ports: [port, last_port], stride_bits })
}

/// `addr`, `addr:port`, `[addr]`, `[addr]:port`; IPv6 with a port only in brackets.
fn endpoint(word: &str) -> Option<(IpAddr, Option<u16>)> {
    let word = word.trim();
    if let Some(rest) = word.strip_prefix('[') {
        let (address, rest) = rest.split_once(']')?;
        let port = if rest.is_empty() { None } else { Some(number(rest.strip_prefix(':')?)?) };
        return Some((address.parse::<Ipv6Addr>().ok()?.into(), port));
    }
    if let Ok(address) = word.parse() {
        return Some((address, None));
    }
    let (address, port) = word.split_once(':')?;
    Some((address.parse::<Ipv4Addr>().ok()?.into(), Some(number(port)?)))
}

/// Digits and nothing else: Rust's own parser takes a sign, too.
fn number<T: std::str::FromStr>(digits: &str) -> Option<T> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// A range as [`parse_endpoints`] reads it, with its ports, and with its second end where there is one.
pub fn endpoints_word(range: &Endpoints) -> String {
    let [first, last] = range.addresses;
    let [port, last_port] = range.ports;
    let one = |address: IpAddr, port: u16| std::net::SocketAddr::new(address, port).to_string();
    if first == last && port == last_port {
        one(first, port)
    } else {
        let width = if first.is_ipv4() { 32 } else { 128 };
        let networks = match range.stride_bits {
            0 => String::new(),
            bits => format!("/{}", width - bits.min(width)),
        };
        format!("{}-{}{networks}", one(first, port), one(last, last_port))
    }
}

/// Whether an address is set aside for benchmarks: 198.18.0.0/15 (RFC 2544, RFC 6890) or 2001:2::/48 (RFC 5180).
pub const fn is_benchmarking(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => matches!(address.octets(), [198, 18 | 19, ..]),
        IpAddr::V6(address) => matches!(address.segments(), [0x2001, 2, 0, ..]),
    }
}

/// What of a word an error repeats.
fn shortened(word: &str) -> String {
    match word.char_indices().nth(RANGE_CHARS) {
        Some((end, _)) => format!("{}…", &word[..end]),
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_as_pkt_gen_writes_them() {
        for (word, first, last, ports) in [
            ("198.18.0.1:2000-198.18.0.20", "198.18.0.1", "198.18.0.20", [2000, 2000]),
            ("198.18.0.1:2000-198.18.0.20:2999", "198.18.0.1", "198.18.0.20", [2000, 2999]),
            ("198.18.0.1", "198.18.0.1", "198.18.0.1", [7, 7]),
            ("198.18.0.1-198.18.0.2:9", "198.18.0.1", "198.18.0.2", [7, 9]),
            ("198.18.0.1:0", "198.18.0.1", "198.18.0.1", [0, 0]),
            ("2001:2::1", "2001:2::1", "2001:2::1", [7, 7]),
            ("2001:2::1-2001:2::20", "2001:2::1", "2001:2::20", [7, 7]),
            ("[2001:2::1]:2000-[2001:2::20]:2100", "2001:2::1", "2001:2::20", [2000, 2100]),
            ("[2001:2::1]-[2001:2::20]", "2001:2::1", "2001:2::20", [7, 7]),
        ] {
            let address = |word: &str| word.parse().expect("an address");
            let wanted = Endpoints { addresses: [address(first), address(last)], ports, stride_bits: 0 };
            assert_eq!(parse_endpoints(word, 7), Ok(wanted), "{word}");
        }
        for (word, bits) in [("198.19.0.2-198.19.255.2/24", 8), ("[2001:2::2]:7-[2001:2:0:ff::2]:7/64", 64)] {
            let range = parse_endpoints(word, 7).expect(word);
            assert_eq!(range.stride_bits, bits, "{word}");
        }
    }

    #[test]
    fn what_is_no_range_is_named() {
        let refused = |word: &str| parse_endpoints(word, 7).expect_err(word).to_string();
        let long = "9".repeat(300);
        for word in
            ["", "-", "host", "198.18.0", "198.18.0.1:", "198.18.0.1:65536", "198.18.0.1:+1", "[198.18.0.1]:7", &long]
        {
            let sentence = refused(word);
            assert!(sentence.starts_with("invalid range of addresses `"), "{sentence}");
            assert!(sentence.len() < 400, "{sentence}");
        }
        for word in [
            "198.18.0.1-",
            "198.18.0.1-198.18.0.2-198.18.0.3",
            "[2001:2::1]2000",
            "[2001:2::1",
            "2001:2::1:2:3:4:5:6:7",
            "198.18.0.1/24",
            "198.18.0.1-198.18.9.1/33",
            "198.18.0.1-198.18.9.1/0",
        ] {
            assert!(refused(word).contains("invalid range of addresses"), "{word}");
        }
        assert_eq!(
            refused("198.18.0.9-2001:2::1"),
            "`198.18.0.9-2001:2::1` mixes address families: both ends must be IPv4, or both IPv6"
        );
        assert_eq!(
            refused("198.18.0.9-198.18.0.1"),
            "`198.18.0.9-198.18.0.1` is reversed: its first address is higher than its last"
        );
        assert_eq!(
            refused("198.18.0.1:9-198.18.0.1:8"),
            "`198.18.0.1:9-198.18.0.1:8` is reversed: its first port is higher than its last"
        );
    }

    #[test]
    fn the_ranges_for_benchmarks_end_where_they_end() {
        let is = |word: &str| is_benchmarking(word.parse().expect("an address"));
        assert!(is("198.18.0.0") && is("198.19.255.255") && is("2001:2::") && is("2001:2:0:ffff::1"));
        assert!(!is("198.17.255.255") && !is("198.20.0.0") && !is("2001:2:1::") && !is("2001:1:ffff::"));
        assert!(!is("::ffff:198.18.0.1"), "an IPv4 address in IPv6 is no address of IPv4");
    }

    proptest! {
        #[test]
        fn a_range_reads_as_it_is_written(v4: bool, a: u128, b: u128, ports: [u16; 2], stride in 0..128_u8) {
            let address = |bits: u128| match v4 {
                true => IpAddr::from(Ipv4Addr::from_bits(bits as u32)),
                false => IpAddr::from(Ipv6Addr::from_bits(bits)),
            };
            let (a, b) = (address(a), address(b));
            let [p, q] = ports;
            let stride_bits = match (a == b && p == q, v4) {
                (true, _) => 0,
                (false, true) => stride % 32,
                (false, false) => stride,
            };
            let range = Endpoints { addresses: [a.min(b), a.max(b)], ports: [p.min(q), p.max(q)], stride_bits };
            prop_assert_eq!(parse_endpoints(&endpoints_word(&range), 1), Ok(range));
        }

        #[test]
        fn arbitrary_words_do_not_panic(word in "[0-9a-f:.\\[\\]x,%GMpgenomix-]{0,60}", any in "\\PC{0,200}") {
            for word in [word, any] {
                let _ = (parse_endpoints(&word, 1), parse_load(&word, Some(1_000_000_000), 64.0));
                if let Ok(sizes) = parse_sizes(&word) {
                    prop_assert!((1..=64).contains(&sizes.len()));
                }
            }
        }
    }
}
