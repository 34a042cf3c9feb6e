//! A trace for its reader: hops, path MTU, paths and findings, from its probes and answers.

mod findings;
mod hops;
mod mtu;
mod paths;
mod place;

#[cfg(test)]
mod sim;
#[cfg(test)]
mod tests;

use narrows_model::trace::report::{TraceEnd, TraceHop};
use narrows_model::words::figures::float;
use narrows_model::{AnswerKind, TraceRecord, TraceReport};
use place::router;

/// The view of a record.
pub fn report(record: &TraceRecord) -> TraceReport {
    let plan = &record.plan;
    let last = hops::last(record);
    let mut hops: Vec<TraceHop> = (plan.first_ttl.max(1)..=last).map(|ttl| hops::hop(record, ttl, last)).collect();
    hops::mark_limits(&mut hops);
    let mtu = mtu::path(record, &hops);
    for hop in hops.iter_mut().filter(|hop| hop.answered > 0) {
        hop.pmtu_bytes = mtu.as_ref().and_then(|_| mtu::at(record, hop.ttl));
    }
    let end = end(record, &hops);
    let newest = record.probes.iter().map(|it| it.answer.as_ref().map_or(it.sent_us, |answer| answer.at_us)).max();
    let paths = paths::paths(record, last);
    let mut view = TraceReport {
        asked: plan.asked.clone(),
        target: plan.target.to_string(),
        protocol: plan.protocol,
        plan: plan.clone(),
        started_unix_us: record.started_unix_us,
        elapsed_s: float(newest.unwrap_or(record.started_unix_us).saturating_sub(record.started_unix_us)) / 1e6,
        hops,
        end,
        mtu,
        paths,
        findings: Vec::new(),
        remarks: Vec::new(),
        ending: record.ending.clone(),
        back: record
            .back
            .as_deref()
            .map(|back| Box::new(TraceReport { asked: format!("back from {}", plan.asked), ..report(back) })),
    };
    view.findings = findings::findings(record, &view);
    view.remarks = findings::remarks(record, &view);
    view
}

/// How the path ends: the target, if any flow came there.
fn end(record: &TraceRecord, hops: &[TraceHop]) -> TraceEnd {
    let answers = || record.probes.iter().filter_map(|probe| probe.answer.as_ref().map(|answer| (probe.ttl, answer)));
    let reached =
        |refused: bool| answers().filter(move |(_, it)| it.kind == AnswerKind::Reached && it.refused == refused);
    let nearest = |refused| reached(refused).map(|(ttl, _)| ttl).min();
    if let Some(ttl) = nearest(false) {
        return TraceEnd::Reached { ttl };
    }
    if let Some(ttl) = nearest(true) {
        return TraceEnd::Refused { ttl };
    }
    if let Some((ttl, answer)) = answers().filter(|(_, it)| it.kind.is_end()).min_by_key(|(ttl, _)| *ttl) {
        let address = answer.from.to_string();
        let hop = router(record, answer.from);
        return TraceEnd::Rejected { ttl, hop, address, mark: answer.kind.mark() };
    }
    let after_hop = hops.iter().filter(|hop| hop.answered > 0).map(|hop| hop.ttl).max().unwrap_or(0);
    if after_hop == record.plan.max_ttl { TraceEnd::MaxHops } else { TraceEnd::Silent { after_hop } }
}
