//! How large the packet filter is: `NFT_MSG_GETRULE`. Source: kernel `include/uapi/linux/netfilter/nf_tables.h`.

use super::Sockets;
use crate::Missing;
use narrows_sys::netlink::{self, Family};

/// `NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETRULE`
const GET_RULES: u16 = 10 << 8 | 7;
/// `struct nfgenmsg`: every family, version 0.
const EVERY_FAMILY: [u8; 4] = [0; 4];

/// The rules of all tables of this network namespace.
pub(super) fn count(sockets: &Sockets) -> Result<u64, Missing> {
    let what = "the rules of nf_tables (NFT_MSG_GETRULE)";
    let replies = sockets.request(Family::Netfilter, what, GET_RULES, netlink::DUMP, &EVERY_FAMILY)?;
    Ok(replies.len() as u64)
}
