//! The paths that flows took.

use narrows_model::trace::report::TracePath;
use narrows_model::{ProbePurpose, TraceRecord};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Paths that are listed.
const MAX: usize = 64;

/// The distinct paths of the flows that were sent to all hops, most flows first. A hop that was silent for a flow fits any node.
pub(super) fn paths(record: &TraceRecord, last: u8) -> Vec<TracePath> {
    let first = record.plan.first_ttl.max(1);
    let mut by_flow: BTreeMap<u16, BTreeMap<u8, Option<IpAddr>>> = BTreeMap::new();
    for probe in record.probes.iter().filter(|it| it.purpose != ProbePurpose::Mtu && it.ttl <= last) {
        let at = by_flow.entry(probe.flow).or_default().entry(probe.ttl).or_default();
        *at = probe.answer.as_ref().map(|answer| answer.from).or(*at);
    }
    let mut paths: Vec<(Vec<u16>, Vec<Option<IpAddr>>)> = Vec::new();
    for (flow, hops) in by_flow {
        let nodes: Vec<Option<IpAddr>> = (first..=last).map_while(|ttl| hops.get(&ttl).copied()).collect();
        let ended = nodes.last().copied().flatten() == Some(record.plan.target);
        if nodes.len() < usize::from(last.saturating_sub(first)) + 1 && !ended {
            continue;
        }
        let fits = |other: &[Option<IpAddr>]| {
            other.len() == nodes.len() && other.iter().zip(&nodes).all(|(a, b)| a.is_none() || b.is_none() || a == b)
        };
        match paths.iter_mut().find(|(_, other)| fits(other)) {
            Some((flows, other)) => {
                flows.push(flow);
                other.iter_mut().zip(&nodes).for_each(|(a, b)| *a = a.or(*b));
            }
            None => paths.push((vec![flow], nodes)),
        }
    }
    paths.sort_by_key(|(flows, _)| std::cmp::Reverse(flows.len()));
    paths.truncate(MAX);
    let words = |nodes: Vec<Option<IpAddr>>| nodes.into_iter().map(|it| it.map(|ip| ip.to_string())).collect();
    paths.into_iter().map(|(flows, nodes)| TracePath { flows, nodes: words(nodes) }).collect()
}
