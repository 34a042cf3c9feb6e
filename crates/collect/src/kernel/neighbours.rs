//! Neighbours: `RTM_GETNEIGH`. Source: kernel `include/uapi/linux/neighbour.h`, `net/core/neighbour.c`.

use super::{Sockets, links};
use crate::Missing;
use narrows_sys::netlink::numbers::{NDA_DST, NDA_LLADDR, RTM_GETNEIGH};
use narrows_sys::netlink::{Builder, Family, Message, find as find_attribute, octets, u16_at};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// The neighbour entry of the next hop.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Neighbour {
    /// `reachable`, `stale`, `delay`, `probe`, `permanent`, `noarp`, `incomplete`, `failed`, or `none` without an entry.
    pub state: String,
    /// Its Ethernet address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

const HEADER: usize = 12;
const ENOENT: i32 = 2;
const STATES: [&str; 8] = ["incomplete", "reachable", "stale", "delay", "probe", "failed", "noarp", "permanent"];

pub(super) fn find(sockets: &Sockets, address: IpAddr, device: &str) -> Result<Neighbour, Missing> {
    let what = format!("the neighbour {address} on {device} (RTM_GETNEIGH)");
    let index = links::by_name(sockets, device)?.index;
    let (family, bytes) = octets(address);
    let mut header = [0; HEADER];
    header[0] = family;
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    let mut request = Builder::with_header(&header);
    request.bytes(NDA_DST, &bytes);
    let payload = request.finish().map_err(|error| Missing::netlink(&what, &error))?;
    match sockets.exchange(Family::Route, RTM_GETNEIGH, 0, &payload) {
        Ok(replies) => replies
            .first()
            .and_then(decode)
            .ok_or_else(|| Missing::Kernel { what, why: "the answer has no state".to_owned() }),
        Err(error) if error.errno() == Some(ENOENT) => Ok(Neighbour { state: "none".to_owned(), address: None }),
        Err(error) => Err(Missing::netlink(&what, &error)),
    }
}

pub(super) fn decode(message: &Message) -> Option<Neighbour> {
    let bits = u16_at(&message.payload, 8)?;
    let state = STATES.iter().enumerate().find(|(bit, _)| bits >> bit & 1 == 1).map_or("none", |(_, state)| state);
    let address = message.payload.get(HEADER..).and_then(|attributes| find_attribute(attributes, NDA_LLADDR));
    let address = address.map(|address| links::hardware_address(address.payload));
    Some(Neighbour { state: state.to_owned(), address })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_the_kernels_bits() {
        let state = |bits: u8| {
            let mut payload = vec![0; HEADER];
            payload[8] = bits;
            decode(&Message { kind: 28, payload }).expect("a state").state
        };
        assert_eq!([state(0x02), state(0x04), state(0x80), state(0)], ["reachable", "stale", "permanent", "none"]);
        assert_eq!(decode(&Message { kind: 28, payload: vec![0; 8] }), None);
    }
}
