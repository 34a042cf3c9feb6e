//! The last results of all paths.

use crate::plan::{Fleet, Host, Kind};
use crate::protocol::Found;
use crate::schedule::HOUR_MS;
use narrows_mesh::Load;
use narrows_mesh::record::STARVED;
use narrows_model::Snapshot;
use narrows_model::run::mesh::{MeshLoad, MeshMember, MeshPath, MeshPlan, MeshRecord, MeshState};
use std::collections::{BTreeMap, BTreeSet};

/// A result stands for the path for so long.
const STANDS_MS: u64 = 25 * HOUR_MS;

/// The last results of all paths.
#[derive(Debug, Default)]
pub(super) struct Latest {
    loads: BTreeMap<Load, (u64, MeshLoad)>,
    paths: BTreeMap<Load, (u64, MeshPath)>,
}

impl Latest {
    pub(super) fn take(&mut self, load: Load, by_receiver: bool, found: Found, now_ms: u64) {
        match found {
            Found::Load(state) => {
                let Load { from, to } = load;
                let kept = MeshLoad { from, to, opened_by_receiver: by_receiver, state, beside_others_bps: None };
                self.loads.insert(load, (now_ms, kept));
            }
            Found::Diagnosis(_) => {}
            Found::Probe(mut path) => {
                // A stored result has the places of an older file.
                (path.from, path.to) = (load.from, load.to);
                // Routers are not looked for in each probe.
                if path.hops.is_empty()
                    && let Some((_, before)) = self.paths.get_mut(&load)
                {
                    (path.hops, path.mtu_bytes) =
                        (std::mem::take(&mut before.hops), path.mtu_bytes.or(before.mtu_bytes));
                }
                self.paths.insert(load, (now_ms, path));
            }
        }
    }

    pub(super) fn load(&self, load: Load) -> Option<&MeshState> {
        self.loads.get(&load).map(|(_, it)| &it.state)
    }

    /// When a path was last measured.
    pub(super) fn measured_ms(&self, kind: Kind, load: Load) -> Option<u64> {
        match kind {
            Kind::Load => self.loads.get(&load).map(|(at_ms, _)| *at_ms),
            Kind::Probe => self.paths.get(&load).map(|(at_ms, _)| *at_ms),
        }
    }

    pub(super) fn has_path(&self, load: Load) -> bool {
        self.paths.contains_key(&load)
    }

    /// Whether two paths have a router in common, as far as traces show.
    pub(super) fn share(&self, one: Load, other: Load) -> bool {
        let back = |load: Load| Load { from: load.to, to: load.from };
        let hops =
            |load: Load| self.paths.get(&load).or_else(|| self.paths.get(&back(load))).map(|(_, path)| &path.hops);
        hops(one).zip(hops(other)).is_some_and(|(one, other)| one.iter().any(|hop| other.contains(hop)))
    }

    /// The paths of which something was found since a time.
    pub(super) fn since(&self, kind: Kind, since_ms: u64) -> BTreeSet<Load> {
        match kind {
            // What failed, or was limited by a host itself, shows nothing of the network.
            Kind::Load => {
                let shows = |it: &MeshLoad| {
                    let MeshState::Measured { busy, .. } = it.state else { return false };
                    busy.iter().flatten().all(|share| *share < STARVED)
                };
                self.loads.iter().filter(|(_, (at, it))| *at >= since_ms && shows(it)).map(|(load, _)| *load).collect()
            }
            Kind::Probe => {
                let found = self.paths.iter().filter(|(_, (at, it))| *at >= since_ms && it.packets.is_some());
                let probed = found.map(|(load, _)| *load);
                // Packets go there and back.
                probed.flat_map(|load| [load, Load { from: load.to, to: load.from }]).collect()
            }
        }
    }

    pub(super) fn miss(&mut self, kind: Kind, load: Load) {
        match kind {
            Kind::Load => _ = self.loads.remove(&load),
            Kind::Probe => _ = self.paths.remove(&load),
        }
    }

    pub(super) fn forget(&mut self, now_ms: u64) {
        self.loads.retain(|_, (at, _)| now_ms < *at + STANDS_MS);
        self.paths.retain(|_, (at, _)| now_ms < *at + STANDS_MS);
    }

    pub(super) fn record(
        &self,
        fleet: &Fleet,
        absent: &dyn Fn(usize) -> Option<String>,
        address: &dyn Fn(usize) -> String,
    ) -> MeshRecord {
        let member = |(at, (name, host)): (usize, (&String, &Host))| MeshMember {
            name: name.clone(),
            group: host.group.clone(),
            address: address(at),
            absent: absent(at),
            host: Snapshot::default(),
        };
        let lasts = |kind| {
            let tests = fleet.meshes.iter().flat_map(|mesh| &mesh.tests).filter(|test| test.kind == kind);
            tests.map(|test| test.lasts_ms).max().unwrap_or(0)
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
            paths: self.paths.values().map(|(_, path)| path.clone()).collect(),
            loads: self.loads.values().map(|(_, load)| load.clone()).collect(),
            diagnoses: Vec::new(),
            ended_early: None,
            interrupted: false,
        }
    }
}
