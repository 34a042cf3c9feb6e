//! Hops by address and by TTL.

use narrows_model::trace::report::TraceHop;
use narrows_model::{AnswerKind, TraceRecord};
use std::net::IpAddr;

/// The first hop at which an address is a router.
pub(super) fn router(record: &TraceRecord, address: IpAddr) -> Option<u8> {
    let answered = record.probes.iter().filter(|probe| {
        probe.answer.as_ref().is_some_and(|it| it.kind == AnswerKind::TimeExceeded && it.from == address)
    });
    answered.map(|probe| probe.ttl).min()
}

/// `hop 3 (10.0.3.1)`, `this host` for 0.
pub(super) fn place(hops: &[TraceHop], ttl: u8) -> String {
    if ttl == 0 {
        return "this host".to_owned();
    }
    let node = hops.iter().find(|hop| hop.ttl == ttl).and_then(|hop| hop.nodes.first());
    node.map_or_else(|| format!("hop {ttl}"), |node| format!("hop {ttl} ({})", node.address))
}
