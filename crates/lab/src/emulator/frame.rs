//! What a read from the TUN returns: one packet, or a super-packet of many segments (GSO).
//!
//! `struct virtio_net_hdr` precedes the IP header, little endian (virtio 1.2, section 5.1.6).

use narrows_sys::tun::VNET_HEADER_BYTES;

/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`: the checksum at `csum_start + csum_offset` holds only the pseudo header's sum.
pub const NEEDS_CHECKSUM: u8 = 1;
/// `VIRTIO_NET_HDR_GSO_ECN`, a flag beside the type.
const GSO_ECN: u8 = 0x80;

/// How to split a super-packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segmentation {
    /// Not at all: it is one packet.
    None,
    /// TCP: sequence numbers and flags differ between the segments.
    Tcp,
    /// UDP (`UDP_SEGMENT`): datagrams of one size.
    Udp,
}

/// The shape of what was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Bytes from the IP header on.
    pub ip_bytes: u32,
    /// Bytes of all headers, IP and transport, which each segment has.
    pub header_bytes: u32,
    /// Where the transport header begins, counted from the IP header.
    pub transport_at: u32,
    /// Payload of each segment but the last.
    pub segment_payload: u32,
    /// Number of packets on the wire.
    pub segments: u32,
    /// How to split it.
    pub segmentation: Segmentation,
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

impl Frame {
    /// Parses `bytes` (virtio header, then the packet). `None`: not an IP packet.
    ///
    /// A super-packet with inconsistent headers counts as one packet: it is never split.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let ip = bytes.get(VNET_HEADER_BYTES..)?;
        let version = ip.first()? >> 4;
        if !(version == 4 && ip.len() >= 20 || version == 6 && ip.len() >= 40) {
            return None;
        }
        let ip_bytes = u32::try_from(ip.len()).ok()?;
        let whole = Self {
            ip_bytes,
            header_bytes: ip_bytes,
            transport_at: ip_bytes,
            segment_payload: 0,
            segments: 1,
            segmentation: Segmentation::None,
        };
        Some(Self::parse_super(bytes, ip, ip_bytes).unwrap_or(whole))
    }

    fn parse_super(bytes: &[u8], ip: &[u8], ip_bytes: u32) -> Option<Self> {
        let segment_payload = u32::from(u16_at(bytes, 4)?);
        let transport_at = u32::from(u16_at(bytes, 6)?);
        let at = transport_at as usize;
        let needs_checksum = bytes.first()? & NEEDS_CHECKSUM != 0;
        let (segmentation, transport_bytes) = match bytes.get(1)? & !GSO_ECN {
            1 | 4 => (Segmentation::Tcp, u32::from(ip.get(at + 12)? >> 4) * 4),
            5 => (Segmentation::Udp, 8),
            _ => return None,
        };
        let header_bytes = transport_at + transport_bytes;
        let payload = ip_bytes.checked_sub(header_bytes)?;
        let least = if segmentation == Segmentation::Tcp { 20 } else { 8 };
        if !needs_checksum || transport_at < 20 || transport_bytes < least || segment_payload == 0 || payload == 0 {
            return None;
        }
        let segments = payload.div_ceil(segment_payload);
        Some(Self { ip_bytes, header_bytes, transport_at, segment_payload, segments, segmentation })
    }

    /// IP bytes of the segment with that number.
    pub fn segment_bytes(&self, index: u32) -> u32 {
        if self.segments == 1 {
            return self.ip_bytes;
        }
        let payload = self.ip_bytes - self.header_bytes;
        self.header_bytes + self.segment_payload.min(payload.saturating_sub(index * self.segment_payload))
    }

    /// IP bytes on the wire of `count` segments from `first` on, including their headers.
    pub fn wire_bytes(&self, first: u32, count: u32) -> u64 {
        (first..first + count).map(|index| u64::from(self.segment_bytes(index))).sum()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A TCP super-packet over IPv4 or IPv6 with `payload` ascending bytes, to be split at `mss`.
    pub(crate) fn tcp(version: u8, payload: usize, mss: u16) -> Vec<u8> {
        let ip_header = if version == 4 { 20 } else { 40 };
        let mut bytes = vec![NEEDS_CHECKSUM, if version == 4 { 1 } else { 4 }];
        let header_bytes = u16::try_from(ip_header + 32).expect("small");
        for field in [header_bytes, mss, u16::try_from(ip_header).expect("small"), 16] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        let total = ip_header + 32 + payload;
        if version == 4 {
            let length = u16::try_from(total).expect("up to 64 KiB").to_be_bytes();
            bytes.extend_from_slice(&[0x45, 0, length[0], length[1], 0xff, 0xff, 0x40, 0, 64, 6, 0, 0]);
            bytes.extend_from_slice(&[10, 77, 0, 1, 10, 77, 1, 1]);
        } else {
            let length = u16::try_from(total - 40).expect("up to 64 KiB").to_be_bytes();
            bytes.extend_from_slice(&[0x60, 0, 0, 0, length[0], length[1], 6, 64]);
            bytes.extend_from_slice(&[0xfd; 16]);
            bytes.extend_from_slice(&[0xfc; 16]);
        }
        bytes.extend_from_slice(&[0x12, 0x34, 0x14, 0x51, 0xff, 0xff, 0xff, 0x00, 0, 0, 0, 9]);
        bytes.extend_from_slice(&[0x80, 0b1001_1001, 1, 0, 0, 0, 0, 0]); // doff 8; CWR, ACK, PSH, FIN
        bytes.extend_from_slice(&[1; 12]);
        bytes.extend((0..payload).map(|index| (index % 251) as u8));
        bytes
    }

    #[test]
    fn a_super_packet_has_its_segments() {
        let frame = Frame::parse(&tcp(4, 10_000, 1448)).expect("IPv4");
        assert_eq!((frame.segments, frame.header_bytes, frame.transport_at), (7, 52, 20));
        assert_eq!(frame.segment_bytes(0), 1500);
        assert_eq!(frame.segment_bytes(6), 52 + 10_000 - 6 * 1448);
        assert_eq!(frame.wire_bytes(0, 7), 10_000 + 7 * 52);
    }

    #[test]
    fn an_unknown_frame_is_one_packet() {
        let mut bytes = tcp(6, 5000, 1428);
        bytes[1] = 3;
        let frame = Frame::parse(&bytes).expect("IPv6");
        assert_eq!((frame.segments, frame.segment_bytes(0)), (1, 5072));
        assert_eq!(Frame::parse(&bytes[..20]), None);
        assert_eq!(Frame::parse(&[0; 60]), None, "no IP version");
    }

    #[test]
    fn arbitrary_bytes_never_panic() {
        let mut random = super::super::random::Random::new(5);
        for _ in 0..20_000 {
            let mut bytes = tcp(if random.chance(0.5) { 4 } else { 6 }, 3000, 1448);
            for _ in 0..3 {
                let at = usize::try_from(random.up_to(90)).expect("small");
                bytes[at] = random.bits().to_le_bytes()[0];
            }
            bytes.truncate(usize::try_from(random.up_to(3200)).expect("small"));
            if let Some(frame) = Frame::parse(&bytes) {
                assert!(frame.wire_bytes(0, frame.segments) >= u64::from(frame.ip_bytes));
            }
        }
    }
}
