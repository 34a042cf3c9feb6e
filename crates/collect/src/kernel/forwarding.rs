//! Forwarding tables of bridges and VXLAN devices: `RTM_GETNEIGH` of the family `AF_BRIDGE` (Linux 5.0).
//! Source: kernel `net/core/rtnetlink.c`, `rtnl_fdb_get`; `drivers/net/vxlan/vxlan_core.c`, `vxlan_fdb_get`.

use super::{Sockets, links};
use crate::Missing;
use narrows_sys::netlink::numbers::{NDA_DST, NDA_LLADDR, RTM_GETNEIGH};
use narrows_sys::netlink::{Builder, Family, Message, address, find as attribute, u32_at};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Where frames for an Ethernet address go.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Forwarding {
    /// The port of the bridge.
    pub port: String,
    /// The host behind a VXLAN device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<IpAddr>,
}

const HEADER: usize = 12;
const AF_BRIDGE: u8 = 7;
const NDA_MASTER: u16 = 9;

pub(super) fn find(sockets: &Sockets, device: &str, mac: &str) -> Result<Forwarding, Missing> {
    let what = format!("where {device} sends frames for {mac} (RTM_GETNEIGH)");
    let bytes: Vec<u8> = mac.split(':').filter_map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
    let mut header = [0; HEADER];
    header[0] = AF_BRIDGE;
    let mut request = Builder::with_header(&header);
    request.u32(NDA_MASTER, links::by_name(sockets, device)?.index).bytes(NDA_LLADDR, &bytes);
    let payload = request.finish().map_err(|error| Missing::netlink(&what, &error))?;
    let replies = sockets.request(Family::Route, &what, RTM_GETNEIGH, 0, &payload)?;
    let (index, remote) = replies
        .first()
        .and_then(decode)
        .ok_or_else(|| Missing::Kernel { what, why: "the answer names no port".to_owned() })?;
    Ok(Forwarding { port: links::by_index(sockets, index)?.name, remote })
}

/// The index of the port, and the host behind it.
pub(super) fn decode(message: &Message) -> Option<(u32, Option<IpAddr>)> {
    let payload = message.payload.as_slice();
    let remote = attribute(payload.get(HEADER..)?, NDA_DST).map(|remote| remote.payload);
    let remote = remote.and_then(|bytes| address(if bytes.len() == 4 { 2 } else { 10 }, bytes));
    Some((u32_at(payload, 4)?, remote.filter(|remote| !remote.is_unspecified())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_names_the_port_and_the_host_behind_it() {
        let mut header = [0; HEADER];
        (header[0], header[4]) = (AF_BRIDGE, 9);
        let entry = |remote: &[u8]| {
            let mut entry = Builder::with_header(&header);
            entry.bytes(NDA_LLADDR, &[2, 0, 0, 0, 0, 1]).bytes(NDA_DST, remote);
            decode(&Message { kind: 28, payload: entry.finish().expect("short") })
        };
        assert_eq!(entry(&[192, 0, 2, 7]), Some((9, Some(IpAddr::from([192, 0, 2, 7])))));
        assert_eq!(entry(&[0; 4]), Some((9, None)));
        assert_eq!(decode(&Message { kind: 28, payload: vec![0; 3] }), None);
    }
}
