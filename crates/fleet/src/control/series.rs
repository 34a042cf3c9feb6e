//! What is known of paths: which are planned and when each was last measured, and what the tests of one found over time.

use super::{Control, Load, Name, Truth};
use crate::plan::Kind;
use crate::protocol::Found;
use narrows_model::run::fleet::{FleetPaths, FleetPoint, FleetSeries, SERIES_SCHEMA};
use narrows_model::run::mesh::MeshState;

impl<T: Truth> Control<'_, T> {
    /// The paths of which tests are planned.
    pub fn paths(&self) -> FleetPaths {
        let mut paths = FleetPaths::default();
        for place in self.places() {
            let rounds = self.schedule.rounds(place.0, place.1);
            for load in rounds.iter().flatten() {
                let (way, back) = ([load.from, load.to], [load.to, load.from]);
                let at_ms = self.latest.measured_ms(self.test(place).kind, *load);
                match self.test(place).kind {
                    Kind::Load => _ = paths.loads.insert(way, at_ms),
                    // Packets go there and back.
                    Kind::Probe => {
                        paths.probes.insert(way, at_ms);
                        paths.probes.insert(back, at_ms);
                    }
                }
            }
        }
        paths
    }

    /// What the tests of a path found since a time.
    /// Errors: the store's.
    pub fn series(&mut self, from: usize, to: usize, since_ms: u64) -> Result<FleetSeries, T::Error> {
        let (there, back) = (Load { from, to }, Load { from: to, to: from });
        let mut points = Vec::new();
        for place in self.places().collect::<Vec<_>>() {
            let is_probe = self.test(place).kind == Kind::Probe;
            for (name, result) in self.truth.results(place.0, place.1, since_ms)? {
                if name.load != there && !(is_probe && name.load == back) {
                    continue;
                }
                let Ok(found) = serde_json::from_slice::<Found>(&result) else { continue };
                points.push(FleetPoint {
                    at_unix_ms: self.slot_ms(&name),
                    mesh: self.fleet.meshes[name.mesh].name.clone(),
                    kind: if is_probe { "probe" } else { "load" }.to_owned(),
                    ..point(found, name.load == there)
                });
            }
        }
        points.sort_by_key(|it| it.at_unix_ms);
        let name = |host: usize| self.names[host].to_owned();
        let schema = SERIES_SCHEMA.to_owned();
        Ok(FleetSeries { schema, from: name(from), to: name(to), points, changes: Vec::new() })
    }

    /// When a test began, as far as its name says: a number of periods, or the time of a test that was asked for.
    fn slot_ms(&self, name: &Name) -> u64 {
        let every_ms = self.test((name.mesh, name.test)).every_ms;
        // A period has ten seconds at least, so no number of periods is so large.
        if name.slot > 1_000_000_000_000 { name.slot } else { name.slot.saturating_mul(every_ms) }
    }
}

fn point(found: Found, is_there: bool) -> FleetPoint {
    let mut point = FleetPoint::default();
    match found {
        Found::Load(MeshState::Measured { goodput_bps, retransmits, .. }) => {
            (point.goodput_bps, point.retransmits) = (Some(goodput_bps), retransmits);
        }
        Found::Load(MeshState::Unreachable(why) | MeshState::Failed(why)) => point.failure = Some(why),
        Found::Load(MeshState::NotMade) => point.failure = Some("not made".to_owned()),
        Found::Diagnosis(Ok(says)) => point.diagnosis = Some(says),
        Found::Diagnosis(Err(why)) => point.failure = Some(why),
        Found::Probe(path) => {
            let lost = |[sent, up, down]: [u64; 3]| {
                if is_there { [sent, up] } else { [sent.saturating_sub(up), down] }
            };
            point.rtt_us = path.rtt_us;
            point.packets = path.packets.map(lost);
            point.failure = if path.rtt_us.is_none() { path.remarks.last().cloned() } else { None };
            if is_there {
                point.hops = path.hops;
            }
        }
    }
    point
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::run::mesh::MeshPath;

    #[test]
    fn each_direction_of_a_probe_has_its_own_loss() {
        let probe = || Found::Probe(MeshPath { packets: Some([100, 10, 9]), ..MeshPath::default() });
        assert_eq!((point(probe(), true).packets, point(probe(), false).packets), (Some([100, 10]), Some([90, 9])));
        let failed = Found::Load(MeshState::Unreachable("why".to_owned()));
        assert_eq!(point(failed, true).failure.as_deref(), Some("why"));
    }
}
