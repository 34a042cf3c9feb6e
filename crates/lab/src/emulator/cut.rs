//! Splits a super-packet: builds the headers for a run of its segments.
//!
//! A run is a packet or a shorter super-packet. It is sent as these headers followed by the payload, which stays where it is.
//! The transport checksum stays incomplete, with the sum of the pseudo header for the new length, as `NEEDS_CSUM` requires.
//! As in the kernel's `tcp_gso_segment`, FIN and PSH stay on the last segment, CWR on the first.

use super::frame::{Frame, Segmentation};
use narrows_sys::tun::VNET_HEADER_BYTES;
use std::ops::Range;

/// The longest headers: virtio, IPv6 with extension headers or IPv4 with options, TCP with options.
pub const HEADERS_MAX: usize = 512;

const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// The ones' complement sum of RFC 1071, folded.
pub fn sum(chunks: &[&[u8]], start: u32) -> u16 {
    let mut total = u64::from(start);
    for chunk in chunks {
        for pair in chunk.chunks(2) {
            let [high, low] = [pair[0], pair.get(1).copied().unwrap_or(0)];
            total += u64::from(u16::from_be_bytes([high, low]));
        }
    }
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    u16::try_from(total).unwrap_or(0)
}

fn put16(bytes: &mut [u8], at: usize, value: u16) -> Option<()> {
    bytes.get_mut(at..at + 2)?.copy_from_slice(&value.to_be_bytes());
    Some(())
}

fn get16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// Writes the headers (virtio header first) of `count` segments from `first` on into `out`. Returns their length, and
/// the range of the payload in `bytes`; `None` if the frame cannot be split.
pub fn headers(
    frame: &Frame,
    bytes: &[u8],
    first: u32,
    count: u32,
    out: &mut [u8; HEADERS_MAX],
) -> Option<(usize, Range<usize>)> {
    let header_bytes = frame.header_bytes as usize;
    let all = VNET_HEADER_BYTES + header_bytes;
    let last = first + count >= frame.segments;
    let start = (first * frame.segment_payload) as usize;
    let end = if last { bytes.len() - all } else { ((first + count) * frame.segment_payload) as usize };
    let payload = end.checked_sub(start)?;

    let headers = out.get_mut(..all)?;
    headers.copy_from_slice(bytes.get(..all)?);
    let (vnet, ip) = headers.split_at_mut(VNET_HEADER_BYTES);
    if count == 1 {
        vnet[1] = 0; // no segmentation left
        vnet[4..6].copy_from_slice(&[0, 0]);
    }
    let transport_at = frame.transport_at as usize;
    let transport_bytes = u16::try_from(header_bytes - transport_at + payload).ok()?;
    let (protocol, checksum_at) = match frame.segmentation {
        Segmentation::Tcp => {
            let sequence_at = transport_at + 4;
            let sequence = u32::from_be_bytes(ip.get(sequence_at..sequence_at + 4)?.try_into().ok()?);
            let sequence = sequence.wrapping_add(u32::try_from(start).ok()?);
            ip.get_mut(sequence_at..sequence_at + 4)?.copy_from_slice(&sequence.to_be_bytes());
            let flags = ip.get_mut(transport_at + 13)?;
            *flags &= !(if last { 0 } else { FIN | PSH } | if first == 0 { 0 } else { CWR });
            (6_u32, transport_at + 16)
        }
        Segmentation::Udp => {
            // The length of a whole super-packet covers all its datagrams, that of one datagram only itself.
            put16(ip, transport_at + 4, transport_bytes)?;
            (17, transport_at + 6)
        }
        Segmentation::None => return None,
    };
    let addresses = if ip.first()? >> 4 == 4 {
        put16(ip, 2, u16::try_from(header_bytes + payload).ok()?)?;
        let id = get16(ip, 4)?.wrapping_add(u16::try_from(first).ok()?);
        put16(ip, 4, id)?;
        put16(ip, 10, 0)?;
        let header = usize::from(ip.first()? & 0x0f) * 4;
        let checksum = !sum(&[ip.get(..header)?], 0);
        put16(ip, 10, checksum)?;
        12..20
    } else {
        put16(ip, 4, u16::try_from(header_bytes - 40 + payload).ok()?)?;
        8..40
    };
    let pseudo = sum(&[ip.get(addresses)?], protocol + u32::from(transport_bytes));
    put16(ip, checksum_at, pseudo)?;
    Some((all, all + start..all + end))
}

#[cfg(test)]
mod tests {
    use super::super::frame::tests::tcp;
    use super::*;
    use proptest::prelude::*;

    /// The whole packet that a run is sent as.
    fn run(bytes: &[u8], first: u32, count: u32) -> Vec<u8> {
        let frame = Frame::parse(bytes).expect("IP");
        let mut out = [0; HEADERS_MAX];
        let (length, payload) = headers(&frame, bytes, first, count, &mut out).expect("it can be cut");
        [&out[..length], &bytes[payload]].concat()
    }

    fn sequence(packet: &[u8], ip_header: usize) -> u32 {
        let at = VNET_HEADER_BYTES + ip_header + 4;
        u32::from_be_bytes(packet[at..at + 4].try_into().expect("four"))
    }

    #[test]
    fn a_segment_in_the_middle_is_a_plain_packet() {
        let packet = run(&tcp(4, 10_000, 1448), 2, 1);
        assert_eq!(packet.len(), VNET_HEADER_BYTES + 1500);
        assert_eq!((packet[0], packet[1], &packet[4..6]), (1, 0, &[0, 0][..]), "unfinished checksum, no segmentation");
        let ip = &packet[VNET_HEADER_BYTES..];
        assert_eq!(get16(ip, 2), Some(1500));
        assert_eq!(get16(ip, 4), Some(1), "the id 65535 + 2 wraps");
        assert_eq!(sum(&[&ip[..20]], 0), 0xffff, "a right header sums up to all ones");
        assert_eq!(sequence(&packet, 20), 0xffff_ff00_u32.wrapping_add(2896));
        assert_eq!(ip[20 + 13], 0x10, "ACK alone");
        assert_eq!(get16(ip, 20 + 16), Some(sum(&[&ip[12..20]], 6 + 1480)));
    }

    #[test]
    fn flags_belong_to_the_ends() {
        let whole = tcp(6, 10_000, 1428);
        assert_eq!(run(&whole, 0, 3)[VNET_HEADER_BYTES + 53], CWR | 0x10);
        assert_eq!(run(&whole, 3, 5)[VNET_HEADER_BYTES + 53], 0x10 | PSH | FIN);
        let part = run(&whole, 0, 3);
        assert_eq!((part[1], &part[4..6]), (4, &1428_u16.to_le_bytes()[..]), "still a super-packet");
        assert_eq!(get16(&part[VNET_HEADER_BYTES..], 4), Some(32 + 3 * 1428));
    }

    #[test]
    fn datagrams_get_their_own_length() {
        let mut bytes = tcp(4, 3000, 1000);
        // UDP in place of TCP: the 24 bytes that follow the shorter header are payload.
        bytes[1] = 5;
        bytes[VNET_HEADER_BYTES + 9] = 17;
        let frame = Frame::parse(&bytes).expect("IP");
        assert_eq!((frame.segmentation, frame.segments), (Segmentation::Udp, 4));
        let packet = run(&bytes, 1, 1);
        let ip = &packet[VNET_HEADER_BYTES..];
        assert_eq!((get16(ip, 2), get16(ip, 24)), (Some(1028), Some(1008)));
        assert_eq!(get16(ip, 26), Some(sum(&[&ip[12..20]], 17 + 1008)));
    }

    proptest! {
        #[test]
        fn the_runs_make_up_the_whole(
            v6 in any::<bool>(), payload in 1_usize..60_000, mss in 100_u16..9000,
            cuts in prop::collection::vec(1_u32..12, 1..20),
        ) {
            let version = if v6 { 6 } else { 4 };
            let ip_header = if v6 { 40 } else { 20 };
            let bytes = tcp(version, payload, mss);
            let frame = Frame::parse(&bytes).expect("IP");
            let (mut at, mut joined) = (0, Vec::new());
            for cut in cuts.iter().cycle() {
                if at >= frame.segments {
                    break;
                }
                let count = (*cut).min(frame.segments - at);
                let packet = run(&bytes, at, count);
                let expected = 0xffff_ff00_u32.wrapping_add(at * u32::from(mss));
                prop_assert_eq!(sequence(&packet, ip_header), expected);
                let again = Frame::parse(&packet).expect("IP");
                prop_assert_eq!(again.segments, count);
                let headers = again.header_bytes as usize;
                let headers = if count == 1 { ip_header + 32 } else { headers };
                joined.extend_from_slice(&packet[VNET_HEADER_BYTES + headers..]);
                at += count;
            }
            prop_assert_eq!(&joined[..], &bytes[VNET_HEADER_BYTES + ip_header + 32..]);
        }
    }
}
