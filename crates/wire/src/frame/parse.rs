//! The fields of a received frame. Input is untrusted: any bytes that are not a generator's frame parse to `None`.

use super::flow::FlowKey;
use super::signature::{BYTES as SIGNATURE_BYTES, Signature};
use super::template::{ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_VLAN, PROTOCOL_TCP, PROTOCOL_UDP};
use narrows_model::load::frames::{FCS_BYTES, MIN_FRAME_BYTES, Transport};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// EtherType of a service tag (802.1ad), which has the layout of 802.1Q's.
const ETHERTYPE_SERVICE_VLAN: u16 = 0x88a8;
/// The flag *more fragments* and the fragment offset (RFC 791): both are zero in an unfragmented packet.
const FRAGMENT: u16 = 0x3fff;

/// A frame with a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// The frame size with FCS, by the length in its IP header, even if a receiver keeps only the first bytes. A
    /// tag that the NIC removed before the bytes were captured is not included.
    pub frame_bytes: u32,
    /// The VLAN of its tag, if the bytes have one.
    pub vlan: Option<u16>,
    pub transport: Transport,
    pub flow: FlowKey,
    pub signature: Signature,
}

/// Addresses, protocol, and the ends of the header and the packet.
struct Ip {
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    header_bytes: usize,
    packet_bytes: usize,
}

impl Seen {
    /// Parses a frame, or its first bytes, without FCS; checksums are not verified. `None`: not IPv4 or IPv6
    /// (without extension headers), not UDP or TCP, a fragment, truncated before the end of the signature, or
    /// without one.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (mut ethertype, mut offset, mut vlan) = (word(bytes, 12)?, 14, None);
        if matches!(ethertype, ETHERTYPE_VLAN | ETHERTYPE_SERVICE_VLAN) {
            vlan = Some(word(bytes, 14)? & 0x0fff);
            (ethertype, offset) = (word(bytes, 16)?, 18);
        }
        let rest = bytes.get(offset..)?;
        let ip = match ethertype {
            ETHERTYPE_IPV4 => v4(rest)?,
            ETHERTYPE_IPV6 => v6(rest)?,
            _ => return None,
        };
        // Bytes after the packet's end are padding, not a signature.
        let packet = &rest[..rest.len().min(ip.packet_bytes)];
        let segment = packet.get(ip.header_bytes..)?;
        let (transport, payload) = match ip.protocol {
            PROTOCOL_UDP => {
                let stated = usize::from(word(segment, 4)?);
                if stated < 8 + SIGNATURE_BYTES {
                    return None;
                }
                (Transport::Udp, segment.get(8..)?)
            }
            PROTOCOL_TCP => (Transport::TcpSyn, segment.get(tcp_header_bytes(segment)?..)?),
            _ => return None,
        };
        let signature = Signature::decode(payload)?;
        let flow = FlowKey {
            source: ip.source,
            source_port: word(segment, 0)?,
            destination: ip.destination,
            destination_port: word(segment, 2)?,
        };
        let frame_bytes = u32::try_from(offset + ip.packet_bytes).ok()? + FCS_BYTES;
        Some(Self { frame_bytes: frame_bytes.max(MIN_FRAME_BYTES), vlan, transport, flow, signature })
    }
}

#[inline]
fn word(bytes: &[u8], offset: usize) -> Option<u16> {
    bytes.get(offset..)?.first_chunk().map(|word| u16::from_be_bytes(*word))
}

#[inline]
fn v4(bytes: &[u8]) -> Option<Ip> {
    let header = bytes.first_chunk::<20>()?;
    let header_bytes = usize::from(header[0] & 0x0f) * 4;
    let packet_bytes = usize::from(word(header, 2)?);
    if header[0] >> 4 != 4 || header_bytes < 20 || word(header, 6)? & FRAGMENT != 0 {
        return None;
    }
    let address = |at: usize| header[at..].first_chunk::<4>().map(|octets| IpAddr::from(Ipv4Addr::from(*octets)));
    Some(Ip { source: address(12)?, destination: address(16)?, protocol: header[9], header_bytes, packet_bytes })
}

#[inline]
fn v6(bytes: &[u8]) -> Option<Ip> {
    let header = bytes.first_chunk::<40>()?;
    if header[0] >> 4 != 6 {
        return None;
    }
    let packet_bytes = 40 + usize::from(word(header, 4)?);
    let address = |at: usize| header[at..].first_chunk::<16>().map(|octets| IpAddr::from(Ipv6Addr::from(*octets)));
    Some(Ip { source: address(8)?, destination: address(24)?, protocol: header[6], header_bytes: 40, packet_bytes })
}

/// Options may start at the fifth word.
#[inline]
fn tcp_header_bytes(segment: &[u8]) -> Option<usize> {
    let bytes = usize::from(segment.get(12)? >> 4) * 4;
    (bytes >= 20).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::testing;
    use crate::frame::{Flows, Template};
    use narrows_model::load::frames::FrameFormat;
    use proptest::prelude::*;

    /// An IPv4 frame of UDP, and its signature.
    fn frame() -> (Vec<u8>, Signature) {
        let format = FrameFormat { sizes: vec![64], ..testing::format() };
        let signature = Signature { stream: 3, clock: 5, sequence: 77, time: 9 };
        (Template::build(&format, 64).frame(&Flows::of(&format).nth(0), &signature), signature)
    }

    #[test]
    fn options_of_ip_are_skipped() {
        let (mut bytes, signature) = frame();
        bytes.splice(34..34, [1, 1, 1, 0]);
        bytes[14] = 0x46;
        bytes[16..18].copy_from_slice(&50_u16.to_be_bytes());
        let seen = Seen::parse(&bytes).expect("a frame");
        assert_eq!((seen.signature, seen.frame_bytes), (signature, 68));
    }

    #[test]
    fn other_frames_are_ignored() {
        let changed = |at: usize, value: u8| {
            let (mut bytes, _) = frame();
            bytes[at] = value;
            Seen::parse(&bytes)
        };
        assert!(changed(0, 0xff).is_some(), "whoever it is for");
        assert_eq!(changed(12, 0x86), None, "neither EtherType");
        assert_eq!(changed(14, 0x44), None, "an IP header of 16 bytes");
        assert_eq!(changed(17, 43), None, "a packet that ends within the signature");
        assert_eq!(changed(20, 0x20), None, "a first fragment");
        assert_eq!(changed(21, 1), None, "a later fragment");
        assert_eq!(changed(23, 1), None, "ICMP");
        assert_eq!(changed(39, 23), None, "a datagram that ends within the signature");
        assert_eq!(changed(42, 0), None, "no mark");
    }

    #[test]
    fn a_frame_truncated_after_its_signature_keeps_its_length() {
        let format = testing::format();
        let template = Template::build(&format, 1518);
        let seen = Seen::parse(&template.bytes[..template.head_bytes()]).expect("a frame");
        assert_eq!(seen.frame_bytes, 1518);
        assert_eq!(Seen::parse(&template.bytes[..template.head_bytes() - 1]), None);
    }

    proptest! {
        #[test]
        fn built_frames_are_parsed(
            format in testing::formats(),
            signature in testing::signatures(),
            size in 0..10_000_u32,
            index: u64,
        ) {
            let (template, flow) = (Template::build(&format, size), Flows::of(&format).nth(index));
            let seen = Seen::parse(&template.frame(&flow, &signature));
            let FrameFormat { vlan, transport, .. } = format;
            let frame_bytes = template.bytes.len() as u32 + FCS_BYTES;
            prop_assert_eq!(seen, Some(Seen { frame_bytes, vlan, transport, flow, signature }));
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            prop_assert_eq!(Seen::parse(&bytes).map(|_| ()), None::<()>, "a mark by chance");
        }

        #[test]
        fn damaged_frames_do_not_panic(
            format in testing::formats(),
            damage in proptest::collection::vec((0..120_usize, any::<u8>()), 0..6),
            keep in 0..140_usize,
        ) {
            let mut bytes = Template::build(&format, 128).bytes;
            for (at, value) in damage {
                bytes[at] = value;
            }
            bytes.truncate(keep);
            if let Some(seen) = Seen::parse(&bytes) {
                prop_assert!(bytes.len() >= 14 + 20 + 8 + SIGNATURE_BYTES);
                prop_assert!(seen.frame_bytes >= MIN_FRAME_BYTES);
            }
        }
    }
}
