//! What is known of paths: which are planned and when each was last measured, and what the tests of one found over time.

use super::{Control, Load, Truth};
use crate::plan::Kind;
use crate::protocol::Found;
use crate::truth::Point;
use crate::usual::is_late;
use narrows_model::run::fleet::{FleetPaths, FleetPoint, FleetSeries, FleetSetting, SERIES_SCHEMA};
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
                    Kind::Load => {
                        paths.loads.insert(way, at_ms);
                        paths.usual_bps.extend(self.latest.usual_bps(*load).map(|bps| (way, bps)));
                    }
                    // Packets go there and back.
                    Kind::Probe => {
                        paths.probes.insert(way, at_ms);
                        paths.probes.insert(back, at_ms);
                        if self.latest.round_trip_us(*load).is_some_and(|[was_us, is_us]| is_late(is_us, was_us)) {
                            paths.late.extend([way, back]);
                        }
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
            let (mesh, kind) = (self.fleet.meshes[place.0].name.clone(), self.test(place).kind);
            let named = |point: FleetPoint| FleetPoint { mesh: mesh.clone(), kind: kind.word().to_owned(), ..point };
            let ways = if kind == Kind::Probe { vec![there, back] } else { vec![there] };
            for load in ways {
                let days = self.truth.days(place.0, place.1, load, since_ms)?;
                points.extend(days.iter().map(|it| named(day(kind, it, load == there))));
                for (at_unix_ms, result) in self.truth.series(place.0, place.1, load, since_ms)? {
                    let found = result.and_then(|result| serde_json::from_slice::<Found>(&result).ok());
                    let missed = || FleetPoint { failure: Some("missed".to_owned()), ..FleetPoint::default() };
                    let found = found.map_or_else(missed, |found| point(found, load == there));
                    points.push(named(FleetPoint { at_unix_ms, ..found }));
                }
            }
        }
        points.sort_by_key(|it| it.at_unix_ms);
        let name = |host: usize| self.names[host].to_owned();
        let schema = SERIES_SCHEMA.to_owned();
        let notes = self.truth.notes([from, to], since_ms)?.into_iter();
        let settings =
            notes.map(|(at_unix_ms, host, says)| FleetSetting { at_unix_ms, host: name(host), says }).collect();
        Ok(FleetSeries { schema, from: name(from), to: name(to), points, changes: Vec::new(), settings })
    }
}

/// The tests of a day.
fn day(kind: Kind, it: &Point, is_there: bool) -> FleetPoint {
    let is_load = kind == Kind::Load;
    FleetPoint {
        at_unix_ms: it.due_ms,
        goodput_bps: it.figures.filter(|_| is_load).map(|[_, mean, _]| mean),
        rtt_us: it.figures.filter(|_| !is_load),
        packets: (it.packets[0] > 0).then(|| lost(it.packets, is_there)),
        failure: (it.failed > 0).then(|| format!("{} of {} tests of this day", it.failed, it.tests)),
        of_tests: Some(it.tests),
        ..FleetPoint::default()
    }
}

/// The packets of one direction, and those of them that were lost: of probes that go there, or whose answers do.
const fn lost([sent, up, down]: [u64; 3], is_there: bool) -> [u64; 2] {
    if is_there { [sent, up] } else { [sent.saturating_sub(up), down] }
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
            point.rtt_us = path.rtt_us;
            point.packets = path.packets.map(|packets| lost(packets, is_there));
            point.one_way_us = path.one_way.map(|it| [it.median_us[usize::from(!is_there)], it.error_us]);
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
    use narrows_model::run::mesh::{MeshPath, OneWay};

    #[test]
    fn each_direction_of_a_probe_has_its_own_loss() {
        let probe = || Found::Probe(MeshPath { packets: Some([100, 10, 9]), ..MeshPath::default() });
        assert_eq!((point(probe(), true).packets, point(probe(), false).packets), (Some([100, 10]), Some([90, 9])));
        let one_way = Some(OneWay { median_us: [700.0, 300.0], error_us: 50.0 });
        let probe = || Found::Probe(MeshPath { one_way, ..MeshPath::default() });
        let delays = [true, false].map(|is_there| point(probe(), is_there).one_way_us);
        assert_eq!(delays, [Some([700.0, 50.0]), Some([300.0, 50.0])]);
        let failed = Found::Load(MeshState::Unreachable("why".to_owned()));
        assert_eq!(point(failed, true).failure.as_deref(), Some("why"));
    }
}
