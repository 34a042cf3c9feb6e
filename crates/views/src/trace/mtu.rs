//! The path MTU at each hop, and where it shrinks.

use super::place::router;
use narrows_model::trace::report::{MtuStep, TraceHop, TraceMtu};
use narrows_model::{AnswerKind, ProbePurpose, TraceProbe, TraceRecord};

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
            let report = probes(record)
                .filter_map(|it| it.answer.as_ref())
                .find(|it| it.kind == AnswerKind::TooBig && it.mtu == Some(mtu_bytes));
            let hop = hops.iter().find(|hop| hop.ttl == before.0).and_then(|hop| hop.nodes.first());
            let reporter = report.map(|it| it.from.to_string());
            steps.push(MtuStep {
                after_hop: before.0,
                before_hop: ttl,
                address: reporter.or_else(|| hop.map(|node| node.address.clone())),
                mtu_bytes,
                reported: report.is_some(),
            });
        }
        before = (ttl, mtu_bytes.min(before.1));
    }
    let to_target =
        probes(record).any(|it| it.answer.as_ref().is_some_and(|answer| answer.kind == AnswerKind::Reached));
    Some(TraceMtu { first_link_bytes, path_bytes, to_target, steps })
}
