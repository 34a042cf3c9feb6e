//! The last results of all paths.

use crate::cost::probe_packets;
use crate::plan::{Fleet, Host, Kind};
use crate::protocol::Found;
use crate::schedule::HOUR_MS;
use crate::usual::{Odd, Usual, is_late};
use narrows_mesh::Load;
use narrows_mesh::blame::SLOW;
use narrows_mesh::record::STARVED;
use narrows_model::Snapshot;
use narrows_model::run::mesh::{MeshLoad, MeshMember, MeshPath, MeshPlan, MeshRecord, MeshState};
use std::collections::{BTreeMap, BTreeSet};

/// A result stands for the path for so long.
pub(super) const STANDS_MS: u64 = 25 * HOUR_MS;

/// The last result of a path.
#[derive(Debug)]
struct Last<T> {
    at_ms: u64,
    /// `None`: it was missed since.
    it: Option<T>,
    /// Whether anything of this path ever arrived: what never did may be filtered, and is no outage.
    worked: bool,
    usual: Usual,
    /// When what was judged last was found: it counts once, however many rounds have this path.
    judged_ms: u64,
}

/// The last results of all paths.
#[derive(Debug, Default)]
pub(super) struct Latest {
    loads: BTreeMap<Load, Last<MeshLoad>>,
    paths: BTreeMap<Load, Last<MeshPath>>,
    /// Of these an earlier controller of this process judged the last result.
    pub(super) known: BTreeSet<(Kind, Load)>,
}

/// Whether the agents of a path ran from before a test until after it, which ended at a time. What then arrives nowhere, the network lost.
pub(super) type Ran<'a> = &'a dyn Fn(Load, u64) -> bool;

/// Of what a path carried, and of how long its round trip took: so much was seldom worse.
const LOW: f64 = 0.1;
const HIGH: f64 = 0.9;

fn is_starved(busy: &[Option<f64>; 2]) -> bool {
    busy.iter().flatten().any(|share| *share >= STARVED)
}

pub(super) const fn back(load: Load) -> Load {
    Load { from: load.to, to: load.from }
}

impl Last<MeshLoad> {
    fn is_dead(&self) -> bool {
        self.worked && matches!(self.it, Some(MeshLoad { state: MeshState::Unreachable(_), .. }))
    }
}

impl Last<MeshPath> {
    fn is_dead(&self) -> bool {
        self.worked && self.it.as_ref().is_some_and(|path| path.rtt_us.is_none() && path.packets.is_none())
    }
}

impl Latest {
    pub(super) fn take(&mut self, load: Load, by_receiver: bool, found: Found, now_ms: u64) {
        match found {
            Found::Load(state) => {
                let Load { from, to } = load;
                let before = self.loads.remove(&load);
                let judged_ms = before.as_ref().map_or(0, |it| it.judged_ms);
                let mut worked = before.as_ref().is_some_and(|it| it.worked);
                let mut usual = before.map(|it| it.usual).unwrap_or_default();
                if let MeshState::Measured { goodput_bps, busy, .. } = &state {
                    worked = true;
                    if !is_starved(busy) {
                        let is_worse = usual.quantile(LOW).is_some_and(|low| *goodput_bps < SLOW * low);
                        usual.take(now_ms, *goodput_bps, is_worse);
                    }
                }
                let it = MeshLoad { from, to, opened_by_receiver: by_receiver, state, beside_others_bps: None };
                self.loads.insert(load, Last { at_ms: now_ms, it: Some(it), worked, usual, judged_ms });
            }
            Found::Diagnosis(_) => {}
            Found::Probe(mut path) => {
                // A stored result has the places of an older file.
                (path.from, path.to) = (load.from, load.to);
                let mut before = self.paths.remove(&load);
                // Routers are not looked for in each probe.
                if path.hops.is_empty()
                    && let Some(before) = before.as_mut().and_then(|last| last.it.as_mut())
                {
                    (path.hops, path.mtu_bytes) =
                        (std::mem::take(&mut before.hops), path.mtu_bytes.or(before.mtu_bytes));
                }
                let judged_ms = before.as_ref().map_or(0, |it| it.judged_ms);
                let worked = path.rtt_us.is_some() || before.as_ref().is_some_and(|it| it.worked);
                let mut usual = before.map(|it| it.usual).unwrap_or_default();
                if let Some([least_us, ..]) = path.rtt_us {
                    let is_worse = usual.quantile(HIGH).is_some_and(|high| is_late(least_us, high));
                    usual.take(now_ms, least_us, is_worse);
                }
                self.paths.insert(load, Last { at_ms: now_ms, it: Some(path), worked, usual, judged_ms });
            }
        }
    }

    /// What a load carried, bit/s; `None`: it was not measured.
    pub(super) fn carried(&self, load: Load, ran: Ran<'_>) -> Option<f64> {
        let last = self.loads.get(&load)?;
        match last.it.as_ref()?.state {
            MeshState::Measured { goodput_bps, .. } => Some(goodput_bps),
            _ => (last.is_dead() && ran(load, last.at_ms)).then_some(0.0),
        }
    }

    /// What a load carried before, bit/s.
    pub(super) fn usual_bps(&self, load: Load) -> Option<f64> {
        self.loads.get(&load)?.usual.quantile(LOW)
    }

    /// How long the round trip of a path took before, and takes now, microseconds: the least of the packets of a probe, since queues come
    /// and go.
    pub(super) fn round_trip_us(&self, load: Load) -> Option<[f64; 2]> {
        let last = self.paths.get(&load)?;
        Some([last.usual.quantile(HIGH)?, last.it.as_ref()?.rtt_us?[0]])
    }

    /// When a path was last measured.
    pub(super) fn measured_ms(&self, kind: Kind, load: Load) -> Option<u64> {
        match kind {
            Kind::Load => self.loads.get(&load).map(|last| last.at_ms),
            Kind::Probe => self.paths.get(&load).map(|last| last.at_ms),
        }
    }

    /// When the last load and the last probe of each host ended that found something.
    pub(super) fn last_ms(&self) -> BTreeMap<usize, [Option<u64>; 2]> {
        let is_measured = |it: &&MeshLoad| matches!(it.state, MeshState::Measured { .. });
        let loads = self.loads.iter().filter(|(_, last)| last.it.as_ref().filter(is_measured).is_some());
        let loads = loads.map(|(load, last)| (0, load, last.at_ms));
        let probes = self.paths.iter().filter(|(_, last)| last.it.as_ref().is_some_and(|it| it.rtt_us.is_some()));
        let probes = probes.map(|(load, last)| (1, load, last.at_ms));
        let mut of: BTreeMap<usize, [Option<u64>; 2]> = BTreeMap::new();
        for (kind, load, at_ms) in loads.chain(probes) {
            for host in [load.from, load.to] {
                let last = &mut of.entry(host).or_default()[kind];
                *last = Some(last.map_or(at_ms, |it| it.max(at_ms)));
            }
        }
        of
    }

    pub(super) fn has_path(&self, load: Load) -> bool {
        self.paths.get(&load).is_some_and(|last| last.it.is_some())
    }

    /// Whether two paths have a router in common, as far as traces show.
    pub(super) fn share(&self, one: Load, other: Load) -> bool {
        self.hops(one).iter().any(|hop| self.hops(other).contains(hop))
    }

    /// The routers of a path, as far as traces show them.
    pub(super) fn hops(&self, load: Load) -> &[String] {
        let path = |load: Load| self.paths.get(&load)?.it.as_ref().map(|path| path.hops.as_slice());
        path(load).filter(|hops| !hops.is_empty()).or_else(|| path(back(load))).unwrap_or_default()
    }

    /// When the last test of a path ended, of which nothing arrived though something did before; `None`: it is otherwise.
    pub(super) fn dead_since(&self, kind: Kind, load: Load) -> Option<u64> {
        match kind {
            Kind::Load => self.loads.get(&load).filter(|it| it.is_dead()).map(|it| it.at_ms),
            Kind::Probe => self.paths.get(&load).filter(|it| it.is_dead()).map(|it| it.at_ms),
        }
    }

    /// The paths of which something was found since a time.
    pub(super) fn since(&self, kind: Kind, since_ms: u64, ran: Ran<'_>) -> BTreeSet<Load> {
        match kind {
            // What failed, or was limited by a host itself, shows nothing of the network.
            Kind::Load => {
                let shows = |(load, last): &(&Load, &Last<MeshLoad>)| match last.it.as_ref().map(|it| &it.state) {
                    Some(MeshState::Measured { busy, .. }) => !is_starved(busy),
                    _ => last.is_dead() && ran(**load, last.at_ms),
                };
                let new = self.loads.iter().filter(|(_, last)| last.at_ms >= since_ms.max(last.judged_ms + 1));
                new.filter(shows).map(|(load, _)| *load).collect()
            }
            Kind::Probe => {
                let shows = |(load, last): &(&Load, &Last<MeshPath>)| {
                    last.it.as_ref().is_some_and(|path| path.packets.is_some())
                        || last.is_dead() && ran(**load, last.at_ms)
                };
                let new = self.paths.iter().filter(|(_, last)| last.at_ms >= since_ms.max(last.judged_ms + 1));
                // Packets go there and back.
                new.filter(shows).flat_map(|(load, _)| [*load, back(*load)]).collect()
            }
        }
    }

    pub(super) fn miss(&mut self, kind: Kind, load: Load) {
        match kind {
            Kind::Load => _ = self.loads.get_mut(&load).map(|last| last.it = None),
            Kind::Probe => _ = self.paths.get_mut(&load).map(|last| last.it = None),
        }
    }

    /// What was found of these paths was judged.
    pub(super) fn judged(&mut self, kind: Kind, paths: &BTreeSet<Load>) {
        for path in paths {
            match kind {
                Kind::Load => _ = self.loads.get_mut(path).map(|last| last.judged_ms = last.at_ms),
                Kind::Probe => _ = self.paths.get_mut(path).map(|last| last.judged_ms = last.at_ms),
            }
        }
    }

    /// The paths whose last result was judged.
    pub(super) fn are_judged(&self) -> impl Iterator<Item = (Kind, Load)> {
        let loads = self.loads.iter().filter(|(_, last)| last.judged_ms >= last.at_ms);
        let paths = self.paths.iter().filter(|(_, last)| last.judged_ms >= last.at_ms);
        loads.map(|(load, _)| (Kind::Load, *load)).chain(paths.map(|(load, _)| (Kind::Probe, *load)))
    }

    /// The same results were taken again.
    pub(super) fn judged_again(&mut self) {
        for (kind, load) in std::mem::take(&mut self.known) {
            self.judged(kind, &BTreeSet::from([load]));
        }
    }

    /// What was found before a time says nothing of now. What was usual stays.
    pub(super) fn forget(&mut self, kind: Kind, before_ms: u64) {
        match kind {
            Kind::Load => self.loads.values_mut().filter(|it| it.at_ms < before_ms).for_each(|it| it.it = None),
            Kind::Probe => self.paths.values_mut().filter(|it| it.at_ms < before_ms).for_each(|it| it.it = None),
        }
    }

    /// The paths that are worse than usual, each with since when and what was usual at the edge.
    pub(super) fn odd(&self) -> impl Iterator<Item = (Kind, Load, Odd)> {
        let loads = self.loads.iter().filter_map(|(load, last)| Some((Kind::Load, *load, last.usual.odd(LOW)?)));
        let paths = self.paths.iter().filter_map(|(load, last)| Some((Kind::Probe, *load, last.usual.odd(HIGH)?)));
        loads.chain(paths)
    }

    /// Takes over that a path was worse than usual.
    pub(super) fn restore(&mut self, kind: Kind, load: Load, odd: Odd) {
        match kind {
            Kind::Load => _ = self.loads.get_mut(&load).map(|last| last.usual = Usual::restored(odd)),
            Kind::Probe => _ = self.paths.get_mut(&load).map(|last| last.usual = Usual::restored(odd)),
        }
    }

    /// As a mesh. `ran`: what is dead carries nothing, and loses all; without it, it is as its test ended.
    pub(super) fn record(
        &self,
        fleet: &Fleet,
        absent: &dyn Fn(usize) -> Option<String>,
        address: &dyn Fn(usize) -> String,
        ran: Option<Ran<'_>>,
    ) -> MeshRecord {
        let member = |(at, (name, host)): (usize, (&String, &Host))| MeshMember {
            name: name.clone(),
            group: host.group.clone(),
            address: address(at),
            absent: absent(at),
            is_shared: false,
            host: Snapshot::default(),
        };
        let lasts = |kind| {
            let tests = fleet.meshes.iter().flat_map(|mesh| &mesh.tests).filter(|test| test.kind == kind);
            tests.map(|test| test.lasts_ms).max().unwrap_or(0)
        };
        let sent = probe_packets(lasts(Kind::Probe));
        let has_run = |load: &Load, at_ms: u64| ran.is_some_and(|ran| ran(*load, at_ms));
        let path = |(load, last): (&Load, &Last<MeshPath>)| {
            let packets = (last.is_dead() && has_run(load, last.at_ms)).then_some([sent, sent, 0]);
            last.it.as_ref().map(|path| MeshPath { packets: packets.or(path.packets), ..path.clone() })
        };
        let load = |(load, last): (&Load, &Last<MeshLoad>)| {
            let nothing = MeshState::Measured { goodput_bps: 0.0, retransmits: None, busy: [None; 2] };
            let dead = (last.is_dead() && has_run(load, last.at_ms)).then_some(nothing);
            last.it.as_ref().map(|it| MeshLoad { state: dead.unwrap_or_else(|| it.state.clone()), ..it.clone() })
        };
        MeshRecord {
            plan: MeshPlan {
                duration_ms: lasts(Kind::Load),
                streams: 1,
                probe_ms: lasts(Kind::Probe),
                diagnose: false,
                try_fixes: false,
                budget_ms: None,
                budget_bytes: None,
            },
            members: fleet.hosts.iter().enumerate().map(member).collect(),
            paths: self.paths.iter().filter_map(path).collect(),
            loads: self.loads.iter().filter_map(load).collect(),
            diagnoses: Vec::new(),
            ended_early: None,
            interrupted: false,
        }
    }
}
