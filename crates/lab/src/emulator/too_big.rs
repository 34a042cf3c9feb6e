//! The answer to a packet larger than the path's MTU: ICMP *fragmentation needed* (RFC 792, RFC 1191) and ICMPv6 *packet too
//! big* (RFC 4443, section 3.2).

use super::cut::sum;
use narrows_sys::tun::VNET_HEADER_BYTES;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The addresses that the path answers from.
pub const ADDRESS_V4: Ipv4Addr = Ipv4Addr::new(10, 77, 255, 1);
/// See [`ADDRESS_V4`].
pub const ADDRESS_V6: Ipv6Addr = Ipv6Addr::new(0xfd77, 0xffff, 0, 0, 0, 0, 0, 1);

/// How much of the packet is quoted over IPv4: a whole answer of 576 bytes (RFC 1812, section 4.3.2.3).
const QUOTE_V4: usize = 576 - 20 - 8;
/// A whole answer of the minimum MTU over IPv6.
const QUOTE_V6: usize = 1280 - 40 - 8;

/// The answer to `bytes` (virtio header, then the packet), with a virtio header of its own; `None` for a multicast
/// packet or an ICMP error, which must not be answered.
pub fn answer(bytes: &[u8], mtu: u32) -> Option<Vec<u8>> {
    let ip = bytes.get(VNET_HEADER_BYTES..)?;
    match ip.first()? >> 4 {
        4 => answer_v4(ip, u16::try_from(mtu).ok()?),
        6 => answer_v6(ip, mtu),
        _ => None,
    }
}

fn answer_v4(ip: &[u8], mtu: u16) -> Option<Vec<u8>> {
    let (source, destination) = (ip.get(12..16)?, ip.get(16..20)?);
    let header = usize::from(ip.first()? & 0x0f) * 4;
    let is_error = *ip.get(9)? == 1 && !matches!(ip.get(header), Some(0 | 8));
    if destination.first()? >= &224 || is_error {
        return None;
    }
    let quote = ip.get(..ip.len().min(QUOTE_V4))?;
    let length = u16::try_from(28 + quote.len()).ok()?.to_be_bytes();
    let mut packet = vec![0; VNET_HEADER_BYTES];
    let mut head = vec![0x45, 0xc0, length[0], length[1], 0, 0, 0, 0, 64, 1, 0, 0];
    head.extend_from_slice(&ADDRESS_V4.octets());
    head.extend_from_slice(source);
    let checksum = (!sum(&[&head], 0)).to_be_bytes();
    head[10..12].copy_from_slice(&checksum);
    packet.extend_from_slice(&head);
    let mtu = mtu.to_be_bytes();
    let mut message = vec![3, 4, 0, 0, 0, 0, mtu[0], mtu[1]];
    message.extend_from_slice(quote);
    let checksum = (!sum(&[&message], 0)).to_be_bytes();
    message[2..4].copy_from_slice(&checksum);
    packet.extend_from_slice(&message);
    Some(packet)
}

fn answer_v6(ip: &[u8], mtu: u32) -> Option<Vec<u8>> {
    let (source, destination) = (ip.get(8..24)?, ip.get(24..40)?);
    let is_error = *ip.get(6)? == 58 && ip.get(40).is_some_and(|kind| kind & 0x80 == 0);
    if destination.first()? == &0xff || is_error {
        return None;
    }
    let quote = ip.get(..ip.len().min(QUOTE_V6))?;
    let message_bytes = u16::try_from(8 + quote.len()).ok()?;
    let length = message_bytes.to_be_bytes();
    let mut packet = vec![0; VNET_HEADER_BYTES];
    packet.extend_from_slice(&[0x60, 0, 0, 0, length[0], length[1], 58, 64]);
    packet.extend_from_slice(&ADDRESS_V6.octets());
    packet.extend_from_slice(source);
    let mut message = vec![2, 0, 0, 0];
    message.extend_from_slice(&mtu.to_be_bytes());
    message.extend_from_slice(quote);
    let pseudo = 58 + u32::from(message_bytes);
    let checksum = (!sum(&[&ADDRESS_V6.octets(), source, &message], pseudo)).to_be_bytes();
    message[2..4].copy_from_slice(&checksum);
    packet.extend_from_slice(&message);
    Some(packet)
}

#[cfg(test)]
mod tests {
    use super::super::frame::tests::tcp;
    use super::*;

    #[test]
    fn the_answer_goes_to_the_sender_and_names_the_mtu() {
        let packet = answer(&tcp(4, 1448, 1448), 1400).expect("an answer");
        let ip = &packet[VNET_HEADER_BYTES..];
        assert_eq!(ip.len(), 576);
        assert_eq!(&ip[16..20], &[10, 77, 0, 1]);
        assert_eq!((ip[20], ip[21], &ip[26..28]), (3, 4, &1400_u16.to_be_bytes()[..]));
        assert_eq!((sum(&[&ip[..20]], 0), sum(&[&ip[20..]], 0)), (0xffff, 0xffff));
    }

    #[test]
    fn the_answer_over_ipv6() {
        let packet = answer(&tcp(6, 1428, 1428), 1400).expect("an answer");
        let ip = &packet[VNET_HEADER_BYTES..];
        assert_eq!((ip.len(), ip[40], &ip[44..48]), (1280, 2, &1400_u32.to_be_bytes()[..]));
        assert_eq!(sum(&[&ip[8..40], &ip[40..]], 58 + 1240), 0xffff);
    }

    #[test]
    fn errors_and_groups_get_no_answer() {
        let mut packet = tcp(4, 1448, 1448);
        packet[VNET_HEADER_BYTES + 16] = 224;
        assert_eq!(answer(&packet, 1400), None);
        let error = answer(&tcp(4, 1448, 1448), 1400).expect("an answer");
        assert_eq!(answer(&error, 500), None);
        let error = answer(&tcp(6, 1448, 1428), 1400).expect("an answer");
        assert_eq!(answer(&error, 500), None);
    }
}
