//! What a controller answers who asks how its fleet is.

use super::command::{Later, now_ms};
use narrows_fleet::control::Control;
use narrows_fleet::plan::Fleet;
use narrows_fleet::truth::Truth;
use narrows_model::run::fleet::{
    AgentState, FleetBad, FleetHost, FleetIncident, FleetMute, FleetPaths, FleetStatus, FleetTests, STATUS_SCHEMA,
};
use narrows_model::run::mesh::MeshReport;
use std::collections::{BTreeMap, BTreeSet};

/// With more results the thread that decides would be busy for seconds to find late paths and the times of tests. Scrapers ask often, so
/// they get neither.
const DATED_MAX: usize = 200_000;
/// From this loss of probes on a pair is bad, as on the page.
const LOSS_BAD: f64 = 0.01;

/// How a fleet is, and which paths are tested. What this means of a million paths takes seconds, for which no agent waits: the thread that
/// decides only copies what it knows. The troubles: the store's, and that of alerts.
pub(super) fn look<T: Truth>(
    control: &mut Control<'_, T>,
    fleet: &Fleet,
    with_paths: bool,
    [trouble, alerts_trouble]: [Option<String>; 2],
) -> Later {
    let at = now_ms();
    let incident = |it: &narrows_fleet::incident::Incident| FleetIncident {
        number: it.number,
        element: it.element.clone(),
        says: it.says.clone(),
        since_unix_ms: it.since_ms,
        acknowledged: it.acknowledged.clone(),
        diagnosis: it.verdict.clone(),
        reported: it.reported,
    };
    let incidents = control.judge().open().into_iter().map(incident).collect();
    let mute = |(element, until_unix_ms): &(String, u64)| FleetMute {
        element: element.clone(),
        until_unix_ms: *until_unix_ms,
    };
    let muted = control.judge().incidents().muted().iter().filter(|(_, until)| *until > at).map(mute).collect();
    let groups = fleet.hosts.values().map(|host| host.group.clone());
    let hosts = control.agents().zip(groups).enumerate().map(|(nth, (member, group))| FleetHost {
        name: member.name.to_owned(),
        group,
        state: match (member.version.is_some(), control.is_silent(nth, at)) {
            _ if member.drained => AgentState::Drained,
            (false, _) => AgentState::Never,
            (true, true) => AgentState::Silent,
            (true, false) => AgentState::Up,
        },
        address: member.from.map(|from| from.to_string()),
        version: member.version.map(str::to_owned),
        heard_unix_ms: member.version.map(|_| member.heard_ms),
        clock_behind_ms: member.behind_ms,
        clock_error_us: member.clock_error_us,
        loaded_unix_ms: member.last_ms[0],
        probed_unix_ms: member.last_ms[1],
    });
    let tests = control.counts().map(|((mesh, test), counts)| FleetTests {
        mesh: fleet.meshes[mesh].name.clone(),
        test: fleet.meshes[mesh].tests[test].word(),
        done: counts.done,
        failed: counts.failed,
        missed: counts.missed,
    });
    let (hosts, tests): (Vec<FleetHost>, Vec<FleetTests>) = (hosts.collect(), tests.collect());
    let (name, paused_until_unix_ms) = (fleet.name.clone(), control.paused(at));
    let record = control.record(at);
    let is_small = record.loads.len() + record.paths.len() <= DATED_MAX;
    let paths = if with_paths || is_small { control.paths() } else { FleetPaths::default() };
    Box::new(move || {
        let mesh = narrows_views::mesh::report(&record);
        let status = FleetStatus {
            schema: STATUS_SCHEMA.to_owned(),
            name,
            at_unix_ms: at,
            paused_until_unix_ms,
            incidents,
            hosts,
            tests,
            bad: bad(&mesh, &paths),
            mesh,
            trouble,
            alerts_trouble,
            muted,
        };
        (status, paths)
    })
}

/// Pairs that are slow, lose packets or are late, each once.
fn bad(mesh: &MeshReport, paths: &FleetPaths) -> Vec<FleetBad> {
    let mut bad: BTreeMap<[usize; 2], FleetBad> = BTreeMap::new();
    let at = |of: &BTreeMap<[usize; 2], Option<u64>>, way: [usize; 2]| of.get(&way).copied().flatten();
    for load in mesh.loads.iter().zip(&mesh.slow).filter(|(_, is_slow)| **is_slow).map(|(load, _)| load) {
        let way = [load.from, load.to];
        bad.entry(way).or_default().loaded_unix_ms = at(&paths.loads, way);
    }
    let sends: BTreeSet<[usize; 2]> =
        mesh.paths.iter().filter(|it| it.packets.is_some()).map(|it| [it.from, it.to]).collect();
    for path in &mesh.paths {
        let (way, back) = ([path.from, path.to], [path.to, path.from]);
        let [sent, up, down] = path.packets.unwrap_or_default();
        // What was lost on the way there did not set out on the way back. What an end sent itself says more of its direction.
        let ways = [(way, sent, up, true), (back, sent.saturating_sub(up), down, !sends.contains(&back))];
        for (way, sent, lost, _) in ways.into_iter().filter(|(.., counts)| *counts) {
            let loss = lost as f64 / sent.max(1) as f64;
            if loss >= LOSS_BAD {
                let it = bad.entry(way).or_default();
                (it.loss, it.probed_unix_ms) = (Some(loss), at(&paths.probes, way));
            }
        }
        if let Some([_, median_us, _]) = path.rtt_us.filter(|_| paths.late.contains(&way)) {
            let it = bad.entry(way).or_default();
            (it.late_us, it.probed_unix_ms) = (Some(median_us), at(&paths.probes, way));
        }
    }
    bad.into_iter().map(|([from, to], it)| FleetBad { from, to, ..it }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::run::mesh::{MeshLoad, MeshPath, MeshPlan, MeshRecord, MeshState};

    fn mesh(goodput_bps: f64, packets: [u64; 3]) -> MeshReport {
        let load = |from, to, goodput_bps| MeshLoad {
            from,
            to,
            opened_by_receiver: false,
            state: MeshState::Measured { goodput_bps, retransmits: None, busy: [None; 2] },
            beside_others_bps: None,
        };
        let path =
            MeshPath { from: 0, to: 1, rtt_us: Some([1e3, 2e3, 3e3]), packets: Some(packets), ..MeshPath::default() };
        let plan = MeshPlan {
            duration_ms: 3_000,
            streams: 1,
            probe_ms: 3_000,
            diagnose: false,
            try_fixes: false,
            budget_ms: None,
            budget_bytes: None,
        };
        let record = MeshRecord {
            plan,
            members: Vec::new(),
            paths: vec![path],
            loads: vec![load(0, 1, 1e9), load(1, 0, goodput_bps)],
            diagnoses: Vec::new(),
            ended_early: None,
            interrupted: false,
        };
        MeshReport { slow: vec![false, goodput_bps < 8e8], ..narrows_views::mesh::report(&record) }
    }

    #[test]
    fn a_pair_is_bad_for_as_long_as_its_last_results_are() {
        let at = |from, to, ms| BTreeMap::from([([from, to], Some(ms))]);
        let mut paths = FleetPaths { loads: at(1, 0, 7), probes: at(0, 1, 8), ..FleetPaths::default() };
        paths.probes.extend(at(1, 0, 8));
        paths.late.extend([[0, 1], [1, 0]]);
        let there = FleetBad { to: 1, late_us: Some(2e3), probed_unix_ms: Some(8), ..FleetBad::default() };
        // 5 of the 90 that came there.
        let loss = Some(5.0 / 90.0);
        let back = FleetBad { from: 1, loss, loaded_unix_ms: Some(7), probed_unix_ms: Some(8), ..FleetBad::default() };
        let lossy = FleetBad { loss: Some(0.1), ..there.clone() };
        assert_eq!(bad(&mesh(5e8, [100, 10, 5]), &paths), [lossy, back]);
        assert_eq!(bad(&mesh(1e9, [1_000, 9, 0]), &paths), [there]);
        paths.late.clear();
        assert!(bad(&mesh(1e9, [1_000, 9, 0]), &paths).is_empty());
    }
}
