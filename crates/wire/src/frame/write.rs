//! Rewrites a frame in place: flow, signature and checksums change, the rest stays.

use super::checksum;
use super::flow::FlowKey;
use super::signature::Signature;
use super::template::{Template, octets_v4, octets_v6};
use narrows_model::Family;
use narrows_model::load::frames::Transport;

impl Template {
    /// Turns `frame`, a copy of [`Self::bytes`] that this function may have written before, into the frame of
    /// `flow` with `signature`. The cost does not depend on the frame's size. A slice shorter than
    /// [`Self::head_bytes`] is not changed, and the result is `false`.
    #[inline]
    pub fn write_flow(&self, frame: &mut [u8], flow: &FlowKey, signature: &Signature) -> bool {
        let Some(head) = frame.get_mut(self.ip_offset..self.head_bytes()) else { return false };
        let (ip, rest) = head.split_at_mut(self.transport_offset - self.ip_offset);
        let addresses = match self.family {
            Family::Ipv4 => self.write_v4(ip, flow),
            Family::Ipv6 => write_v6(ip, flow),
        };
        let (transport, payload) = rest.split_at_mut(self.payload_offset - self.transport_offset);
        let signature = signature.encode();
        payload.copy_from_slice(&signature);
        transport[..2].copy_from_slice(&flow.source_port.to_be_bytes());
        transport[2..4].copy_from_slice(&flow.destination_port.to_be_bytes());
        let sum = self.transport_sum
            + addresses
            + u32::from(flow.source_port)
            + u32::from(flow.destination_port)
            + checksum::wide(u128::from_be_bytes(signature));
        match self.transport {
            Transport::Udp => transport[6..8].copy_from_slice(&checksum::udp(sum).to_be_bytes()),
            Transport::TcpSyn => transport[16..18].copy_from_slice(&(!checksum::fold(sum)).to_be_bytes()),
        }
        true
    }

    /// The sum of both addresses, which is part of two checksums.
    #[inline]
    fn write_v4(&self, ip: &mut [u8], flow: &FlowKey) -> u32 {
        let (source, destination) = (octets_v4(flow.source), octets_v4(flow.destination));
        ip[12..16].copy_from_slice(&source);
        ip[16..20].copy_from_slice(&destination);
        let both = u64::from(u32::from_be_bytes(source)) << 32 | u64::from(u32::from_be_bytes(destination));
        let addresses = checksum::wide(both.into());
        ip[10..12].copy_from_slice(&(!checksum::fold(self.ip_sum + addresses)).to_be_bytes());
        addresses
    }
}

#[inline]
fn write_v6(ip: &mut [u8], flow: &FlowKey) -> u32 {
    let (source, destination) = (octets_v6(flow.source), octets_v6(flow.destination));
    ip[8..24].copy_from_slice(&source);
    ip[24..40].copy_from_slice(&destination);
    checksum::wide(u128::from_be_bytes(source)) + checksum::wide(u128::from_be_bytes(destination))
}
