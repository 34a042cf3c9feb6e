//! The expressions of rules. Source: kernel `include/uapi/linux/netfilter/nf_tables.h`.

use super::{DATA, ELEMENT, NAME};
use crate::netlink::Builder;

const REGISTER: u32 = libc::NFT_REG_1 as u32;

fn expression(list: &mut Builder, name: &str, fill: impl FnOnce(&mut Builder)) {
    list.nest(ELEMENT, |element| {
        element.text(NAME, name).nest(DATA, fill);
    });
}

fn load_meta(list: &mut Builder, what: libc::c_int) {
    let (destination, key) = (1, 2);
    expression(list, "meta", |data| {
        data.be32(destination, REGISTER).be32(key, what as u32);
    });
}

/// Loads the number of the transport protocol into the register.
pub(super) fn load_protocol(list: &mut Builder) {
    load_meta(list, libc::NFT_META_L4PROTO);
}

/// Loads the name of the output device into the register.
pub(super) fn load_output(list: &mut Builder) {
    load_meta(list, libc::NFT_META_OIFNAME);
}

/// Loads bytes of the packet into the register, counted from the IP header.
pub(super) fn load_bytes(list: &mut Builder, offset: u32, length: u32) {
    let (destination, base, offset_of, length_of) = (1, 2, 3, 4);
    let header = libc::NFT_PAYLOAD_NETWORK_HEADER as u32;
    expression(list, "payload", |data| {
        data.be32(destination, REGISTER).be32(base, header).be32(offset_of, offset).be32(length_of, length);
    });
}

/// Continues if the register equals these bytes.
pub(super) fn equals(list: &mut Builder, bytes: &[u8]) {
    let (source, operation, with, value) = (1, 2, 3, 1);
    expression(list, "cmp", |data| {
        data.be32(source, REGISTER).be32(operation, libc::NFT_CMP_EQ as u32);
        data.nest(with, |inner| {
            inner.bytes(value, bytes);
        });
    });
}

/// Loads 0, 1, 2, … `modulus` - 1, 0, 1, … into the register.
pub(super) fn number_packets(list: &mut Builder, modulus: u32) {
    let (destination, modulus_of, kind) = (1, 2, 3);
    expression(list, "numgen", |data| {
        data.be32(destination, REGISTER).be32(modulus_of, modulus).be32(kind, libc::NFT_NG_INCREMENTAL as u32);
    });
}

/// Continues for packets beyond the rate, once the bucket is empty. The kernel keeps a packet's cost in whole
/// nanoseconds (`nft_limit_init` in net/netfilter/nft_limit.c).
pub(super) fn above_rate(list: &mut Builder, packets_per_second: u64, burst: u32) {
    const SECOND: u64 = 1;
    let (rate, unit, burst_of, kind, flags) = (1, 2, 3, 4, 5);
    expression(list, "limit", |data| {
        data.be64(rate, packets_per_second).be64(unit, SECOND);
        data.be32(burst_of, burst).be32(kind, libc::NFT_LIMIT_PKTS as u32);
        // Above the rate.
        data.be32(flags, libc::NFT_LIMIT_F_INV as u32);
    });
}

/// Counts packets and bytes that reach it.
pub(super) fn count(list: &mut Builder) {
    expression(list, "counter", |_| {});
}

pub(super) fn drop_packet(list: &mut Builder) {
    let (destination, data_of, verdict, code) = (1, 2, 2, 1);
    expression(list, "immediate", |data| {
        data.be32(destination, libc::NFT_REG_VERDICT as u32);
        data.nest(data_of, |inner| {
            inner.nest(verdict, |inner| {
                inner.be32(code, libc::NF_DROP as u32);
            });
        });
    });
}

/// Adds the packet's connection to a flow table.
pub(super) fn offload_flow(list: &mut Builder, flow_table: &str) {
    let name = 1;
    expression(list, "flow_offload", |data| {
        data.text(name, flow_table);
    });
}
