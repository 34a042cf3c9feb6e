//! Flips a bit of a packet: damage by a bad memory, switch or offload that the link's own checksum does not catch.
//!
//! The kernel passes packets with the checksum still to be computed, and accepts them unverified. To give the receiver
//! something to detect, the checksum is completed first, as a NIC would, and the virtio header does not mark it as valid.

use super::cut::sum;
use super::frame::NEEDS_CHECKSUM;
use narrows_sys::tun::VNET_HEADER_BYTES;

/// Offset of the checksum in a UDP header (RFC 768), where 0 would mean *none*.
const UDP_OFFSET: usize = 6;

/// Completes the checksum of a single packet (virtio header first), then flips the lowest bit of its last byte. That
/// byte belongs to the payload, or to the transport header if there is none: a transport checksum covers both.
pub fn corrupt(packet: &mut [u8]) {
    finish_checksum(packet);
    if let Some(header) = packet.get_mut(..VNET_HEADER_BYTES) {
        header.fill(0);
    }
    if let Some(last) = packet.get_mut(VNET_HEADER_BYTES..).and_then(<[u8]>::last_mut) {
        *last ^= 1;
    }
}

/// Does what `NEEDS_CSUM` requests; leaves a packet without it, or with impossible offsets, unchanged.
fn finish_checksum(packet: &mut [u8]) -> Option<()> {
    let (header, ip) = packet.split_at_mut_checked(VNET_HEADER_BYTES)?;
    if header.first()? & NEEDS_CHECKSUM == 0 {
        return None;
    }
    let field = |at: usize| Some(usize::from(u16::from_le_bytes(header.get(at..at + 2)?.try_into().ok()?)));
    let (start, offset) = (field(6)?, field(8)?);
    let at = start + offset;
    // The field holds the sum of the pseudo header and is part of the sum (virtio 1.2, section 5.1.6.2).
    let checksum = match !sum(&[ip.get(start..)?], 0) {
        0 if offset == UDP_OFFSET => 0xffff,
        checksum => checksum,
    };
    ip.get_mut(at..at + 2)?.copy_from_slice(&checksum.to_be_bytes());
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::cut::{HEADERS_MAX, headers};
    use super::super::frame::{Frame, tests::tcp};
    use super::*;

    /// The ones' complement sum over pseudo header and segment: all ones if the checksum is right.
    fn verify(ip: &[u8]) -> u16 {
        let (addresses, start) = if ip[0] >> 4 == 4 { (12..20, 20) } else { (8..40, 40) };
        let length = u32::try_from(ip.len() - start).expect("small");
        sum(&[&ip[addresses], &ip[start..]], 6 + length)
    }

    #[test]
    fn only_the_flipped_bit_is_wrong() {
        for version in [4, 6] {
            let whole = tcp(version, 4001, 1400);
            let frame = Frame::parse(&whole).expect("IP");
            let mut out = [0; HEADERS_MAX];
            for index in 0..frame.segments {
                let (length, payload) = headers(&frame, &whole, index, 1, &mut out).expect("it can be cut");
                let mut packet = [&out[..length], &whole[payload]].concat();
                corrupt(&mut packet);
                assert_eq!(packet[..VNET_HEADER_BYTES], [0; VNET_HEADER_BYTES], "nothing vouches for it");
                assert_ne!(verify(&packet[VNET_HEADER_BYTES..]), 0xffff);
                *packet.last_mut().expect("not empty") ^= 1;
                assert_eq!(verify(&packet[VNET_HEADER_BYTES..]), 0xffff, "segment {index} over IPv{version}");
            }
        }
    }

    #[test]
    fn a_complete_checksum_is_kept_and_invalid_packets_never_panic() {
        let mut packet = tcp(4, 100, 1400);
        packet[0] = 0;
        let before = packet.clone();
        corrupt(&mut packet);
        let last = packet.len() - 1;
        assert_eq!(packet[VNET_HEADER_BYTES..last], before[VNET_HEADER_BYTES..last]);
        assert_eq!(packet[last], before[last] ^ 1);
        for length in 0..40 {
            let mut short = tcp(4, 100, 1400);
            short.truncate(length);
            corrupt(&mut short);
            let mut wild = tcp(6, 10, 1400);
            wild[6..10].fill(0xff);
            corrupt(&mut wild);
        }
    }
}
