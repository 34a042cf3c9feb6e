//! The path MTU at each hop, and where it shrinks.

use super::place::router;
use crate::trace::mtu::PAIRS;
use narrows_model::trace::report::{MtuStep, TraceHop, TraceMtu};
use narrows_model::{AnswerKind, ProbePurpose, TraceProbe, TraceRecord};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Range;

fn probes(record: &TraceRecord) -> impl Iterator<Item = &TraceProbe> {
    record.probes.iter().filter(|it| it.purpose == ProbePurpose::Mtu)
}

/// The largest packet that came to a hop: one that was answered by a hop as far or farther, or that a hop reports as too big for the
/// link behind it.
pub(super) fn at(record: &TraceRecord, ttl: u8) -> Option<u32> {
    let came = |probe: &TraceProbe| {
        let answer = probe.answer.as_ref()?;
        let reached = if answer.kind == AnswerKind::TooBig { router(record, answer.from)? } else { probe.ttl };
        (reached >= ttl).then_some(probe.bytes)
    };
    probes(record).filter_map(came).max()
}

/// The MTUs that routers reported, and who did.
fn reports(record: &TraceRecord, range: Range<u32>) -> BTreeMap<u32, IpAddr> {
    let too_big = probes(record).filter_map(|it| it.answer.as_ref()).filter(|it| it.kind == AnswerKind::TooBig);
    too_big.filter_map(|it| Some((it.mtu.filter(|mtu| range.contains(mtu))?, it.from))).collect()
}

/// The path MTU; `None`: not measured to the end.
pub(super) fn path(record: &TraceRecord, hops: &[TraceHop]) -> Option<TraceMtu> {
    let first_link_bytes = record.first_link_mtu.filter(|_| record.mtu_done)?;
    let seen: Vec<u8> = hops.iter().filter(|hop| hop.answered > 0).map(|hop| hop.ttl).collect();
    // The first flow's own way: hops that only other flows see have no figure.
    let known: Vec<(u8, u32)> = seen.iter().filter_map(|ttl| Some((*ttl, at(record, *ttl)?))).collect();
    let (_, path_bytes) = *known.last()?;
    let mut steps = Vec::new();
    let mut before = (0, first_link_bytes.min(u16::MAX.into()));
    for &(ttl, mtu_bytes) in &known {
        if mtu_bytes < before.1 {
            let (after_hop, before_hop) = (before.0, ttl);
            let step = |address, mtu_bytes, reported| MtuStep { after_hop, before_hop, address, mtu_bytes, reported };
            let reports = reports(record, mtu_bytes..before.1);
            steps.extend(reports.iter().rev().map(|(mtu, from)| step(Some(from.to_string()), *mtu, true)));
            if !reports.contains_key(&mtu_bytes) {
                let hop = hops.iter().find(|hop| hop.ttl == after_hop).and_then(|hop| hop.nodes.first());
                steps.push(step(hop.map(|node| node.address.clone()), mtu_bytes, false));
            }
        }
        before = (ttl, mtu_bytes.min(before.1));
    }
    let to_target =
        probes(record).any(|it| it.answer.as_ref().is_some_and(|answer| answer.kind == AnswerKind::Reached));
    Some(TraceMtu { first_link_bytes, path_bytes, to_target, steps })
}

/// A black hole whose size was not found before the trace ended.
pub(super) struct Hole {
    /// The last hop that a packet of `fails_bytes` came to, and the first that it did not.
    pub(super) between: [u8; 2],
    pub(super) passes_bytes: u32,
    pub(super) fails_bytes: u32,
}

/// Where packets vanish, in a trace that ended before it knew their size.
pub(super) fn hole(record: &TraceRecord, hops: &[TraceHop]) -> Option<Hole> {
    let fails_bytes = record.first_link_mtu.filter(|_| !record.mtu_done)?;
    let small = record.plan.probe_bytes;
    let of_mtu: Vec<&TraceProbe> = probes(record).collect();
    // As the planner judges: lost, and the small one right behind it answered.
    let lost = |ttl: u8| {
        let pair = |pair: &&[&TraceProbe]| {
            pair.iter().all(|it| it.ttl == ttl)
                && (pair[0].bytes == fails_bytes && pair[0].answer.is_none())
                && (pair[1].bytes == small && pair[1].answer.is_some())
        };
        of_mtu.windows(2).filter(pair).count() >= usize::from(PAIRS)
    };
    let seen: Vec<u8> = hops.iter().filter(|hop| hop.answered > 0).map(|hop| hop.ttl).collect();
    let first = seen.iter().position(|ttl| lost(*ttl))?;
    let before = first.checked_sub(1).map_or(0, |at| seen[at]);
    // The first link takes it; a router is known to if it answered.
    let came = before == 0 || at(record, before).is_some_and(|bytes| bytes >= fails_bytes);
    let passes_bytes = at(record, seen[first]).unwrap_or(small);
    came.then_some(Hole { between: [before, seen[first]], passes_bytes, fails_bytes })
}
