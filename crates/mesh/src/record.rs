//! What a mesh measured: its loads and paths with what they share, and its elements in words.

use crate::Load;
use crate::blame::{Cell, Element};
use crate::losing::{Losing, Way, losing};
use narrows_model::run::mesh::{MeshLoad, MeshPath, MeshRecord, MeshState};
use std::collections::{BTreeMap, BTreeSet};

/// A host whose CPUs are busy for so much of the time may itself be what is slow.
pub const STARVED: f64 = 0.95;

/// The group of each member: the first member that is of it.
pub fn groups(record: &MeshRecord) -> Vec<usize> {
    let group = |name: &str| record.members.iter().position(|member| member.group == name).unwrap_or_default();
    record.members.iter().map(|member| group(&member.group)).collect()
}

/// The routers that traces saw, and those on each path, as places in that list.
pub fn hops(record: &MeshRecord) -> (Vec<&str>, BTreeMap<[usize; 2], Vec<usize>>) {
    let own: BTreeSet<&str> = record.members.iter().map(|member| member.address.as_str()).collect();
    let is_router = |hop: &&str| !hop.is_empty() && !own.contains(hop);
    let all = record.paths.iter().flat_map(|path| path.hops.iter().map(String::as_str)).filter(is_router);
    let names: Vec<&str> = all.collect::<BTreeSet<_>>().into_iter().collect();
    let way = |path: &MeshPath| {
        let hops = path.hops.iter().map(String::as_str).filter(is_router);
        // A router that answers at two hops is one.
        let of: BTreeSet<usize> = hops.filter_map(|hop| names.binary_search(&hop).ok()).collect();
        ([path.from, path.to], of.into_iter().collect())
    };
    let ways = record.paths.iter().map(way).collect();
    (names, ways)
}

/// The loads that were measured: their places in the list, and what they say.
pub fn cells(record: &MeshRecord) -> (Vec<usize>, Vec<Cell>) {
    let (_, ways) = hops(record);
    let cell = |(place, load): (usize, &MeshLoad)| {
        let MeshState::Measured { goodput_bps, busy, .. } = load.state else { return None };
        // A record may come from elsewhere.
        if load.from.max(load.to) >= record.members.len() {
            return None;
        }
        let full = |share: Option<f64>| share.is_some_and(|share| share >= STARVED);
        let by_host = if full(busy[0]) { Some(load.from) } else { full(busy[1]).then_some(load.to) };
        let hops = ways.get(&[load.from, load.to]).cloned().unwrap_or_default();
        let cell = Cell { load: Load { from: load.from, to: load.to }, goodput_bps, hops, by_host, usual_bps: None };
        Some((place, cell))
    };
    record.loads.iter().enumerate().filter_map(cell).unzip()
}

/// The elements that lose packets of probes.
pub fn losses(record: &MeshRecord) -> Vec<Losing> {
    let (groups, (_, of_way)) = (groups(record), hops(record));
    let way = |from: usize, to: usize, sent, lost| {
        let hops = of_way.get(&[from, to]).cloned().unwrap_or_default();
        Way { load: Load { from, to }, hops, sent, lost }
    };
    let known = |path: &&MeshPath| path.from.max(path.to) < record.members.len();
    let probed = record.paths.iter().filter(known).filter_map(|path| Some((path, path.packets?)));
    // A record may come from elsewhere.
    let probed = probed.filter(|(_, [sent, up, down])| up.checked_add(*down).is_some_and(|lost| lost <= *sent));
    let ways = probed.flat_map(|(path, [sent, up, down])| {
        [way(path.from, path.to, sent, up), way(path.to, path.from, sent.saturating_sub(up), down)]
    });
    losing(&groups, &ways.collect::<Vec<_>>())
}

/// What elements are called.
#[derive(Debug)]
pub struct Names<'a> {
    record: &'a MeshRecord,
    routers: Vec<&'a str>,
}

impl<'a> Names<'a> {
    pub fn of(record: &'a MeshRecord) -> Self {
        Self { record, routers: hops(record).0 }
    }

    pub fn host(&self, member: usize) -> String {
        self.record.members.get(member).map(|it| it.name.clone()).unwrap_or_default()
    }

    fn group(&self, member: usize) -> String {
        let members = &self.record.members;
        let group = members.get(member).map(|it| it.group.clone()).unwrap_or_default();
        match (group.is_empty(), members.iter().all(|it| it.group.is_empty())) {
            (false, _) => format!("group {group}"),
            (true, true) => "all hosts".to_owned(),
            (true, false) => "the hosts without a group".to_owned(),
        }
    }

    pub fn words(&self, element: Element) -> String {
        let (name, group) = (|member| self.host(member), |member| self.group(member));
        match element {
            Element::Host(a) => format!("host {}", name(a)),
            Element::Sends(a) => format!("host {} (sending)", name(a)),
            Element::Receives(a) => format!("host {} (receiving)", name(a)),
            Element::Way(a, b) if a == b => {
                let (of, group) = (group(a), if group(a).starts_with("group ") { "hosts of " } else { "" });
                format!("the network between {group}{of}")
            }
            Element::Way(a, b) => format!("the paths from {} to {}", group(a), group(b)),
            Element::Between(a, b) => format!("the paths between {} and {}", group(a), group(b)),
            Element::Hop(hop) => format!("router {}", self.routers.get(hop).copied().unwrap_or_default()),
            Element::Pair(a, b) => format!("only the path {} to {}", name(a), name(b)),
            Element::Partly(a) => format!("host {} on some of its paths", name(a)),
        }
    }
}
