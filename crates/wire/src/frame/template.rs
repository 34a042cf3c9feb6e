//! A prebuilt frame: generators copy it and write the variable fields into each copy.

use super::checksum;
use super::flow::{FlowKey, Flows};
use super::signature::{BYTES as SIGNATURE_BYTES, Signature};
use narrows_model::Family;
use narrows_model::load::frames::{FCS_BYTES, FrameFormat, MAX_FRAME_BYTES, Transport};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// EtherType of a frame with an 802.1Q tag.
pub(super) const ETHERTYPE_VLAN: u16 = 0x8100;
/// EtherType of IPv4.
pub(super) const ETHERTYPE_IPV4: u16 = 0x0800;
/// EtherType of IPv6.
pub(super) const ETHERTYPE_IPV6: u16 = 0x86dd;
/// IP's number of UDP.
pub(super) const PROTOCOL_UDP: u8 = 17;
/// IP's number of TCP.
pub(super) const PROTOCOL_TCP: u8 = 6;

/// A frame of the first flow with sequence number 0 and no timestamp, and what a generator needs to turn it into any
/// other.
///
/// The checksum of another frame is the complement of [`checksum::fold`] of this sum plus the variable words, in any
/// order:
///
/// | checksum | sum | words that vary |
/// | --- | --- | --- |
/// | of IPv4 | `ip_sum` | source and destination address |
/// | of UDP (0 becomes 0xffff) and TCP | `transport_sum` | source and destination address and port, the whole signature |
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Template {
    /// The frame without FCS, with valid checksums.
    pub bytes: Vec<u8>,
    pub family: Family,
    pub transport: Transport,
    /// Offset of the IP header.
    pub ip_offset: usize,
    /// Offset of the UDP or TCP header.
    pub transport_offset: usize,
    /// Offset of the signature.
    pub payload_offset: usize,
    /// Sum of the IPv4 header without its checksum and addresses; 0 for IPv6, which has no checksum. At most
    /// 0xffff.
    pub ip_sum: u32,
    /// Sum of pseudo header, UDP or TCP header and payload without addresses, ports, checksum and signature. At
    /// most 0xffff.
    pub transport_sum: u32,
}

impl Template {
    /// Builds a frame of `size_with_fcs` bytes, of which the device adds the last four. A size that the format
    /// cannot have is replaced by the nearest possible one ([`FrameFormat::check`] names such sizes).
    pub fn build(format: &FrameFormat, size_with_fcs: u32) -> Self {
        let size = size_with_fcs.clamp(format.least_bytes(), MAX_FRAME_BYTES);
        let mut bytes = Vec::with_capacity(size as usize);
        ethernet(&mut bytes, format);
        let ip_offset = bytes.len();
        let ip_bytes = (size - FCS_BYTES) as u16 - ip_offset as u16;
        ip(&mut bytes, format, ip_bytes);
        let ip_sum = match format.family {
            Family::Ipv4 => checksum::partial(&bytes[ip_offset..]),
            Family::Ipv6 => 0,
        };
        let transport_offset = bytes.len();
        let transport_bytes = ip_bytes - (transport_offset - ip_offset) as u16;
        transport(&mut bytes, format.transport, transport_bytes);
        let pseudo = u32::from(protocol(format.transport)) + u32::from(transport_bytes);
        // Ports, checksum, signature and the rest are still zero.
        let sum = pseudo + checksum::partial(&bytes[transport_offset..]);
        let payload_offset = bytes.len();
        bytes.resize((size - FCS_BYTES) as usize, 0);
        let mut template = Self {
            bytes,
            family: format.family,
            transport: format.transport,
            ip_offset,
            transport_offset,
            payload_offset,
            ip_sum,
            transport_sum: checksum::fold(sum).into(),
        };
        let mut bytes = std::mem::take(&mut template.bytes);
        template.write_flow(&mut bytes, &Flows::of(format).nth(0), &Signature::default());
        template.bytes = bytes;
        template
    }

    /// The minimum length of a copy that a flow can be written into: the headers and the signature.
    pub const fn head_bytes(&self) -> usize {
        self.payload_offset + SIGNATURE_BYTES
    }

    /// A copy of this frame with another flow and signature.
    pub fn frame(&self, flow: &FlowKey, signature: &Signature) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        self.write_flow(&mut bytes, flow, signature);
        bytes
    }
}

fn ethernet(bytes: &mut Vec<u8>, format: &FrameFormat) {
    bytes.extend_from_slice(&format.destination_mac.0);
    bytes.extend_from_slice(&format.source_mac.0);
    if let Some(vlan) = format.vlan {
        bytes.extend_from_slice(&ETHERTYPE_VLAN.to_be_bytes());
        bytes.extend_from_slice(&(vlan & 0x0fff).to_be_bytes());
    }
    let ethertype = match format.family {
        Family::Ipv4 => ETHERTYPE_IPV4,
        Family::Ipv6 => ETHERTYPE_IPV6,
    };
    bytes.extend_from_slice(&ethertype.to_be_bytes());
}

/// The IP header with unspecified addresses and no checksum.
fn ip(bytes: &mut Vec<u8>, format: &FrameFormat, ip_bytes: u16) {
    let protocol = protocol(format.transport);
    match format.family {
        Family::Ipv4 => {
            let [high, low] = ip_bytes.to_be_bytes();
            // Version and length, DSCP, total length, identification 0, don't fragment, and checksum 0.
            bytes.extend_from_slice(&[0x45, 0, high, low, 0, 0, 0x40, 0, format.ttl, protocol, 0, 0]);
            bytes.extend_from_slice(&[0; 8]);
        }
        Family::Ipv6 => {
            let [high, low] = (ip_bytes - 40).to_be_bytes();
            bytes.extend_from_slice(&[0x60, 0, 0, 0, high, low, protocol, format.ttl]);
            bytes.extend_from_slice(&[0; 32]);
        }
    }
}

/// The UDP or TCP header with ports and checksum 0.
fn transport(bytes: &mut Vec<u8>, transport: Transport, transport_bytes: u16) {
    match transport {
        Transport::Udp => {
            let [high, low] = transport_bytes.to_be_bytes();
            bytes.extend_from_slice(&[0, 0, 0, 0, high, low, 0, 0]);
        }
        // Ports, sequence number 1, acknowledgement 0, five words, SYN, the widest window, checksum, urgent pointer.
        Transport::TcpSyn => {
            bytes.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x02, 0xff, 0xff, 0, 0, 0, 0]);
        }
    }
}

const fn protocol(transport: Transport) -> u8 {
    match transport {
        Transport::Udp => PROTOCOL_UDP,
        Transport::TcpSyn => PROTOCOL_TCP,
    }
}

/// An address of the family as its bytes; one of the other family counts as unspecified.
pub(super) const fn octets_v4(address: IpAddr) -> [u8; 4] {
    match address {
        IpAddr::V4(address) => address.octets(),
        IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED.octets(),
    }
}

/// An address of the family as its bytes; one of the other family counts as unspecified.
pub(super) const fn octets_v6(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V6(address) => address.octets(),
        IpAddr::V4(_) => Ipv6Addr::UNSPECIFIED.octets(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::testing;
    use proptest::prelude::*;

    /// Whether both checksums of a frame verify, from its bytes alone: with the checksum in it, each sum is 0xffff.
    fn verify(template: &Template, frame: &[u8]) -> Result<(), TestCaseError> {
        let ip = &frame[template.ip_offset..template.transport_offset];
        let segment = &frame[template.transport_offset..];
        let addresses = match template.family {
            Family::Ipv4 => {
                prop_assert_eq!(checksum::fold(checksum::partial(ip)), 0xffff);
                &ip[12..]
            }
            Family::Ipv6 => &ip[8..],
        };
        let pseudo = checksum::partial(addresses) + u32::from(protocol(template.transport)) + segment.len() as u32;
        prop_assert_eq!(checksum::fold(pseudo + checksum::partial(segment)), 0xffff);
        if template.transport == Transport::Udp {
            prop_assert_ne!(&segment[6..8], &[0, 0]);
        }
        Ok(())
    }

    #[test]
    fn the_smallest_frame_byte_by_byte() {
        let template = Template::build(&testing::format(), 64);
        assert_eq!((template.ip_offset, template.transport_offset, template.payload_offset), (14, 34, 42));
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00];
        // 4500 + 002e + 4000 + 4011 = c53f; with c612 + 0001 and c613 + 0001 it is 25166, folded 5168, complement ae97.
        frame.extend([0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17, 0xae, 0x97, 198, 18, 0, 1, 198, 19, 0, 1]);
        // 0011 + 001a + 001a, addresses 18c27, ports 07d0 + 07d1, mark 6e77: 20a84, folded 0a86, complement f579.
        frame.extend([0x07, 0xd0, 0x07, 0xd1, 0, 26, 0xf5, 0x79]);
        frame.extend([0x6e, 0x77]);
        frame.resize(60, 0);
        assert_eq!(template.bytes, frame);
        assert_eq!((template.ip_sum, template.transport_sum), (0xc53f, 0x45));
    }

    #[test]
    fn a_tag_and_a_tcp_header_are_where_they_belong() {
        let format = FrameFormat { vlan: Some(0x123), transport: Transport::TcpSyn, ..testing::format() };
        let template = Template::build(&format, 128);
        assert_eq!((template.ip_offset, template.transport_offset, template.payload_offset), (18, 38, 58));
        assert_eq!(template.bytes[12..18], [0x81, 0, 0x01, 0x23, 0x08, 0]);
        assert_eq!(template.bytes[42..54], [0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff]);
        assert_eq!(template.bytes.len(), 124);
    }

    #[test]
    fn an_impossible_size_becomes_the_nearest() {
        let bytes = |size| Template::build(&testing::format(), size).bytes.len();
        assert_eq!((bytes(0), bytes(63), bytes(65), bytes(u32::MAX)), (60, 60, 61, 9212));
    }

    #[test]
    fn a_slice_that_is_too_short_is_left_alone() {
        let template = Template::build(&testing::format(), 64);
        let mut short = vec![7; template.head_bytes() - 1];
        assert!(!template.write_flow(&mut short, &Flows::of(&testing::format()).nth(0), &Signature::default()));
        assert!(short.iter().all(|byte| *byte == 7));
    }

    proptest! {
        #[test]
        fn every_frame_verifies(
            format in testing::formats(),
            signature in testing::signatures(),
            size in 0..10_000_u32,
            index: u64,
        ) {
            let template = Template::build(&format, size);
            verify(&template, &template.bytes)?;
            verify(&template, &template.frame(&Flows::of(&format).nth(index), &signature))?;
        }

        #[test]
        fn a_frame_written_over_another_is_as_if_built_anew(
            format in testing::formats(),
            signatures in (testing::signatures(), testing::signatures()),
            size in 64..1600_u32,
            numbers: (u64, u64),
        ) {
            let (flows, template) = (Flows::of(&format), Template::build(&format, size));
            let mut frame = template.frame(&flows.nth(numbers.0), &signatures.0);
            let flow = flows.nth(numbers.1);
            prop_assert!(template.write_flow(&mut frame, &flow, &signatures.1));
            let one = |address, port| narrows_model::load::frames::Endpoints::one(address, [port; 2]);
            let anew = Template::build(
                &FrameFormat {
                    source: one(flow.source, flow.source_port),
                    destination: one(flow.destination, flow.destination_port),
                    ..format
                },
                size,
            );
            prop_assert_eq!(&frame, &anew.frame(&flow, &signatures.1));
            prop_assert_eq!((anew.ip_sum, anew.transport_sum), (template.ip_sum, template.transport_sum));
            prop_assert!(template.write_flow(&mut frame, &flow, &Signature::default()));
            prop_assert_eq!(frame, anew.bytes);
        }

        #[test]
        fn the_sums_and_the_words_that_vary_give_the_checksums(format in testing::formats(), signature in testing::signatures()) {
            let template = Template::build(&format, 128);
            let frame = template.frame(&Flows::of(&format).nth(0), &signature);
            let (addresses, ip_checksum) = match template.family {
                Family::Ipv4 => (26..34, Some(24..26)),
                Family::Ipv6 => (22..54, None),
            };
            let tag = template.ip_offset - 14;
            let at = |range: std::ops::Range<usize>| &frame[range.start + tag..range.end + tag];
            let addresses = checksum::partial(at(addresses));
            if let Some(range) = ip_checksum {
                prop_assert_eq!(at(range), (!checksum::fold(template.ip_sum + addresses)).to_be_bytes());
            }
            let ports = checksum::partial(&frame[template.transport_offset..][..4]);
            let sum = template.transport_sum + addresses + ports + checksum::partial(&signature.encode());
            let (offset, checksum) = match template.transport {
                Transport::Udp => (6, checksum::udp(sum)),
                Transport::TcpSyn => (16, !checksum::fold(sum)),
            };
            prop_assert_eq!(&frame[template.transport_offset + offset..][..2], checksum.to_be_bytes());
        }
    }
}
