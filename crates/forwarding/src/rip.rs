//! RIP version 2 updates (RFC 2453) as whole frames, for a device whose routing table must change while it forwards (RFC
//! 2544, section 11.3).
//!
//! ```text
//! | Ethernet 14 | IPv4 20 | UDP 8 | command 2, version 2, zero 2 | entry 20 … | (FCS 4, by the device)
//! entry: | family 2 | tag 2 | address 4 | mask 4 | next hop 4, 0: the sender | metric 4 |
//! ```
//!
//! The announced networks are subnets of 203.0.113.0/24 (TEST-NET-3, RFC 5737), which test frames never use.

use narrows_model::load::frame_traffic::Modifier;
use narrows_model::load::frames::Mac;
use narrows_wire::frame::checksum;
use std::net::Ipv4Addr;

/// Where every router that speaks version 2 listens (RFC 2453, section 4.3), and its Ethernet address (RFC 1112, section 6.4).
const GROUP: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 9);
const GROUP_MAC: [u8; 6] = [0x01, 0x00, 0x5e, 0, 0, 9];
const PORT: u16 = 520;
const RESPONSE: u8 = 2;
const VERSION: u8 = 2;
const AF_INET: u16 = 2;
/// One hop away, and unreachable (RFC 2453, section 3.4.1).
const NEAR: u32 = 1;
const INFINITY: u32 = 16;
/// Bits of the prefixes that are announced: 32 of them are in a /24.
pub const PREFIX_BITS: u8 = 29;
/// The smallest Ethernet frame without its FCS.
const MIN_BYTES: usize = 60;

/// Whether an update announces or withdraws its networks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// Reachable, one hop behind the sender.
    Reachable,
    Unreachable,
}

/// The networks of an update: so many, at most [`Modifier::MAX_NETWORKS`].
pub fn networks(count: u32) -> impl Iterator<Item = Ipv4Addr> {
    let number = u8::try_from(count.min(Modifier::MAX_NETWORKS)).unwrap_or(0);
    (0..number).map(|nth| Ipv4Addr::new(203, 0, 113, nth << (32 - PREFIX_BITS)))
}

/// A whole frame without FCS.
pub fn frame(source_mac: Mac, source: Ipv4Addr, count: u32, says: Says) -> Vec<u8> {
    let metric = match says {
        Says::Reachable => NEAR,
        Says::Unreachable => INFINITY,
    };
    let mut message = vec![RESPONSE, VERSION, 0, 0];
    for network in networks(count) {
        message.extend_from_slice(&AF_INET.to_be_bytes());
        message.extend_from_slice(&[0; 2]);
        message.extend_from_slice(&network.octets());
        message.extend_from_slice(&(u32::MAX << (32 - PREFIX_BITS)).to_be_bytes());
        message.extend_from_slice(&[0; 4]);
        message.extend_from_slice(&metric.to_be_bytes());
    }
    // At most 4 + 25 × 20 bytes.
    let length = |bytes: usize| u16::try_from(bytes).unwrap_or(u16::MAX).to_be_bytes();
    let udp_bytes = 8 + message.len();
    let addresses = [source.octets(), GROUP.octets()].concat();
    let mut ip = vec![0x45, 0xc0];
    ip.extend_from_slice(&length(20 + udp_bytes));
    // No identification, one hop, UDP.
    ip.extend_from_slice(&[0, 0, 0, 0, 1, 17, 0, 0]);
    ip.extend_from_slice(&addresses);
    let sum = !checksum::fold(checksum::partial(&ip));
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut udp = [PORT.to_be_bytes(), PORT.to_be_bytes(), length(udp_bytes), [0; 2]].concat();
    udp.extend_from_slice(&message);
    let pseudo = checksum::partial(&addresses) + 17 + u32::try_from(udp_bytes).unwrap_or(0);
    let sum = checksum::udp(pseudo + checksum::partial(&udp));
    udp[6..8].copy_from_slice(&sum.to_be_bytes());
    let mut frame = [&GROUP_MAC[..], &source_mac.0, &[0x08, 0x00], &ip, &udp].concat();
    frame.resize(frame.len().max(MIN_BYTES), 0);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FROM: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);

    #[test]
    fn an_update_byte_by_byte() {
        let frame = frame(Mac([2, 0, 0, 0, 1, 2]), FROM, 2, Says::Reachable);
        assert_eq!(frame[..14], [1, 0, 0x5e, 0, 0, 9, 2, 0, 0, 0, 1, 2, 8, 0]);
        // 20 + 8 + 4 + 2 × 20 bytes, network control (RFC 791: precedence 6), one hop.
        assert_eq!(frame[14..24], [0x45, 0xc0, 0, 72, 0, 0, 0, 0, 1, 17]);
        assert_eq!(frame[26..34], [198, 18, 0, 2, 224, 0, 0, 9]);
        assert_eq!(frame[34..40], [2, 8, 2, 8, 0, 52]);
        assert_eq!(frame[42..46], [2, 2, 0, 0]);
        let entry = |nth: u8| [0, 2, 0, 0, 203, 0, 113, nth * 8, 255, 255, 255, 248, 0, 0, 0, 0, 0, 0, 0, 1];
        assert_eq!((&frame[46..66], &frame[66..86]), (&entry(0)[..], &entry(1)[..]));
        assert_eq!(frame.len(), 86);
    }

    #[test]
    fn a_withdrawal_differs_in_metric_and_checksum_alone() {
        let both = [Says::Reachable, Says::Unreachable].map(|says| frame(Mac::default(), FROM, 25, says));
        let apart: Vec<usize> = (0..both[0].len()).filter(|at| both[0][*at] != both[1][*at]).collect();
        assert!(apart.iter().all(|at| (40..42).contains(at) || (at - 46) % 20 == 19), "{apart:?}");
        assert_eq!((both[0][65], both[1][65], both[0].len()), (1, 16, 14 + 20 + 8 + 4 + 500));
    }

    proptest! {
        #[test]
        fn both_checksums_verify_and_no_count_is_too_large(mac: [u8; 6], source: u32, count: u32, near: bool) {
            let says = if near { Says::Reachable } else { Says::Unreachable };
            let frame = frame(Mac(mac), source.into(), count, says);
            prop_assert!((60..=546).contains(&frame.len()));
            prop_assert_eq!(checksum::fold(checksum::partial(&frame[14..34])), 0xffff);
            let udp_bytes = usize::from(u16::from_be_bytes([frame[38], frame[39]]));
            let udp = &frame[34..34 + udp_bytes];
            let pseudo = checksum::partial(&frame[26..34]) + 17 + udp_bytes as u32;
            prop_assert_eq!(checksum::fold(pseudo + checksum::partial(udp)), 0xffff);
            prop_assert_eq!((udp_bytes - 12) / 20, count.min(25) as usize);
        }
    }
}
