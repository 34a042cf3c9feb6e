//! # checksum-errors
//!
//! Segments arrive corrupted and fail their checksum.
//!
//! **Shows**: `InCsumErrors` of the receiver's TCP grows about as much as TCP retransmits.
//!
//! **Mistaken for**: loss on the path.
//!
//! **Fix**: find the hop that corrupts them: a cable, NIC memory, an offload.
//!
//! Source: RFC 9293 3.1; `net/ipv4/tcp_ipv4.c`.

use crate::causes::shared::rule::*;
use crate::causes::shared::tcp_stage::dropped_at;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "checksum-errors",
    about: "segments arrive corrupted and fail their checksum",
    roles: &[Role::Path],
    needs: &[keys::NIC_COUNTER_RX_CRC_ERRORS],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["random-loss", "filter-drop"],
    fix: |_, _| advice("find the hop that corrupts packets by its error counters; try without receive checksum offload"),
    rank: 8,
    stages: &["checksum"],
    ..Cause::COMMON
};

fn assess(evidence: &TcpEvidence, _: Role) -> Ruling {
    let crc = evidence.grew(Role::Receiver, keys::NIC_COUNTER_RX_CRC_ERRORS).filter(|n| *n > 0);
    let second = crc.map(|n| counter(format!("the receiver's link counted {n} CRC errors")));
    dropped_at(evidence, "checksum", second)
}

