//! Hosts by hosts: how each path is, from the last results of a fleet or a mesh, or from the runs of a store.

use narrows_mesh::blame::SLOW;
use narrows_mesh::record::STARVED;
use narrows_model::run::fleet::FleetPaths;
use narrows_model::run::grid::{CellState, Grid, GridCell, GridGroup, GridMetric};
use narrows_model::run::history::StoredRun;
use narrows_model::run::mesh::{MeshLoad, MeshPath, MeshReport, MeshState};
use std::collections::BTreeMap;

/// Larger groups are folded in parts: a reader opens one at a time.
const GROUP_MAX: usize = 40;
/// Loss of probes that a cell shows as bad where nothing is to blame for it yet.
const LOSS_BAD: f64 = 0.01;

/// The last results of all paths. `paths`: those that are planned; `None`: the loads of the report are.
pub fn of_mesh(report: &MeshReport, metric: GridMetric, paths: Option<&FleetPaths>) -> Grid {
    let members: Vec<(&str, &str)> = report.members.iter().map(|it| (it.name.as_str(), it.group.as_str())).collect();
    let (mut grid, place) = empty(metric, &members);
    let planned = paths.map(|paths| if metric == GridMetric::Goodput { &paths.loads } else { &paths.probes });
    let mut cells: BTreeMap<[usize; 2], GridCell> = BTreeMap::new();
    for way in planned.into_iter().flat_map(BTreeMap::keys) {
        let away = way.iter().find_map(|at| report.members.get(*at)?.absent.clone());
        let why = away.unwrap_or_else(|| "no result yet, or its last test was missed".to_owned());
        cells.insert(*way, cell(CellState::Missing, None, why));
    }
    match metric {
        GridMetric::Goodput => {
            let judged = report.expected_bps.iter().zip(&report.slow);
            cells.extend(report.loads.iter().zip(judged).map(|(it, (expected, slow))| {
                let way = [it.from, it.to];
                // As an incident is judged: by the others, and by what the path itself carried before.
                let usual = paths.and_then(|all| all.usual_bps.get(&way)).copied();
                let expected = expected.map(|bps| bps.max(usual.unwrap_or(0.0))).or(usual);
                let fell = |bps: f64| usual.is_some_and(|usual| bps < SLOW * usual);
                let slow = *slow || matches!(it.state, MeshState::Measured { goodput_bps, .. } if fell(goodput_bps));
                (way, GridCell { expected, ..of_load(it, expected, slow) })
            }));
        }
        GridMetric::RoundTrip | GridMetric::Loss => {
            let is_known = |it: &&MeshPath| it.packets.is_some() || it.rtt_us.is_some();
            let known = report.paths.iter().filter(is_known);
            // Nothing was answered at all; the other end may have had more luck.
            for it in report.paths.iter().rev().filter(|it| !is_known(it)) {
                let Some(why) = it.remarks.last() else { continue };
                for way in [[it.from, it.to], [it.to, it.from]] {
                    cells.insert(way, cell(CellState::Failed, None, why.clone()));
                }
            }
            // What an end sent itself says more of that direction than what came back to the other one.
            for part in [2, 1] {
                cells.extend(known.clone().map(|it| {
                    let way = if part == 1 { [it.from, it.to] } else { [it.to, it.from] };
                    (way, of_probe(it.rtt_us, it.packets, part, metric))
                }));
            }
        }
    }
    for (way, cell) in &mut cells {
        let is_late = metric == GridMetric::RoundTrip && paths.is_some_and(|all| all.late.contains(way));
        if is_late && cell.state == CellState::Good {
            cell.state = CellState::Bad;
        }
        cell.at_unix_ms = planned.and_then(|all| *all.get(way)?);
    }
    let moved = cells.into_iter().filter_map(|([from, to], cell)| Some(([*place.get(from)?, *place.get(to)?], cell)));
    grid.cells = moved.collect();
    grid
}

fn cell(state: CellState, value: Option<f64>, why: String) -> GridCell {
    GridCell { state, value, expected: None, at_unix_ms: None, why }
}

fn of_load(load: &MeshLoad, expected_bps: Option<f64>, is_slow: bool) -> GridCell {
    match &load.state {
        MeshState::Measured { goodput_bps, busy, .. } => {
            let lacks = expected_bps.is_none_or(|bps| *goodput_bps < SLOW * bps);
            let starved = lacks && busy.iter().flatten().any(|share| *share >= STARVED);
            let state = match (starved, is_slow) {
                (true, _) => CellState::Monitor,
                (_, true) => CellState::Bad,
                _ => CellState::Good,
            };
            cell(state, Some(*goodput_bps), String::new())
        }
        MeshState::Unreachable(why) => cell(CellState::Failed, None, format!("no connection: {why}")),
        MeshState::Failed(why) => cell(CellState::Failed, None, why.clone()),
        MeshState::NotMade => cell(CellState::NotTested, None, "the mesh ended before".to_owned()),
    }
}

/// `part`: the direction, as [`narrows_model::run::mesh::MeshPath::packets`] counts them.
fn of_probe(rtt_us: Option<[f64; 3]>, packets: Option<[u64; 3]>, part: usize, metric: GridMetric) -> GridCell {
    let loss = packets.and_then(|all| {
        let sent = if part == 1 { all[0] } else { all[0].saturating_sub(all[1]) };
        (sent > 0).then(|| all[part] as f64 / sent as f64)
    });
    let silent = packets.is_some() && rtt_us.is_none();
    let (value, is_bad) = match metric {
        GridMetric::Loss => (loss, loss.is_some_and(|loss| loss >= LOSS_BAD)),
        _ => (rtt_us.map(|[_, median, _]| median), false),
    };
    match value {
        _ if silent => cell(CellState::Failed, None, "no packet was answered".to_owned()),
        Some(value) => cell(if is_bad { CellState::Bad } else { CellState::Good }, Some(value), String::new()),
        None => cell(CellState::Missing, None, "the probe has no figure".to_owned()),
    }
}

/// A grid without cells, and the place in it of each member.
fn empty(metric: GridMetric, members: &[(&str, &str)]) -> (Grid, Vec<usize>) {
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_key(|at| (members[*at].1, *at));
    let mut place = vec![0; members.len()];
    for (at, member) in order.iter().enumerate() {
        place[*member] = at;
    }
    let mut groups = Vec::new();
    let mut begin = 0;
    for group in order.chunk_by(|a, b| members[*a].1 == members[*b].1) {
        let name = members[group[0]].1;
        for (nth, part) in group.chunks(GROUP_MAX).enumerate() {
            let of = match (name, group.len() > GROUP_MAX) {
                ("", false) => String::new(),
                ("", true) => format!("{} to {}", members[part[0]].0, members[part[part.len() - 1]].0),
                (name, false) => name.to_owned(),
                (name, true) => format!("{name}, part {}", nth + 1),
            };
            groups.push(GridGroup { name: of, hosts: [begin, begin + part.len()] });
            begin += part.len();
        }
    }
    let hosts = order.iter().map(|at| members[*at].0.to_owned()).collect();
    (Grid { metric, hosts, groups, cells: BTreeMap::new() }, place)
}

/// The newest run of each pair of hosts that has a goodput, newest first as the store lists them; none that was cut off, of many sizes or of
/// many hosts.
pub fn of_runs(runs: &[StoredRun]) -> Grid {
    // Each with whether the server sends.
    let goodputs = |run: &StoredRun| -> Vec<(f64, bool)> {
        let all = run.figures.iter().filter(|it| it.name.starts_with("goodput"));
        all.map(|it| (it.value, it.name.split(' ').any(|word| word == "down"))).collect()
    };
    let says = |run: &StoredRun| run.verdict == "failed" || !goodputs(run).is_empty();
    let is_of_a_path = |run: &StoredRun| {
        !run.client.is_empty() && !run.server.is_empty() && !["sweep", "mesh"].contains(&run.command.as_str())
    };
    let is_whole = |run: &StoredRun| !["interrupted", "ended early"].contains(&run.verdict.as_str());
    let is_known = |it: &&StoredRun| is_of_a_path(it) && is_whole(it) && says(it);
    let known: Vec<&StoredRun> = runs.iter().filter(is_known).collect();
    let mut names: Vec<&str> = known.iter().flat_map(|it| [it.client.as_str(), it.server.as_str()]).collect();
    names.sort_unstable();
    names.dedup();
    let members: Vec<(&str, &str)> = names.iter().map(|it| (*it, "")).collect();
    let (mut grid, place) = empty(GridMetric::Goodput, &members);
    for run in known {
        let at = |name: &String| names.binary_search(&name.as_str()).ok().map(|at| place[at]);
        let Some(way) = at(&run.client).zip(at(&run.server)) else { continue };
        let (state, why) = match run.verdict.split(':').next().unwrap_or_default() {
            _ if run.verdict.ends_with(": tester-limited") => (CellState::Monitor, run.verdict.as_str()),
            "limited" | "suspected" => (CellState::Bad, run.verdict.as_str()),
            "failed" => (CellState::Failed, run.verdict.as_str()),
            // Whether the figure is what the path can carry is not known.
            "unknown" => (CellState::Missing, "no verdict: the evidence does not suffice"),
            _ => (CellState::Good, run.verdict.as_str()),
        };
        let at_unix_ms = Some(run.started_unix_us / 1_000);
        if goodputs(run).is_empty() {
            let new = GridCell { at_unix_ms, ..cell(CellState::Failed, None, format!("{} failed", run.command)) };
            grid.cells.entry([way.0, way.1]).or_insert(new);
        }
        for (bps, is_down) in goodputs(run) {
            let way = if is_down { [way.1, way.0] } else { [way.0, way.1] };
            let new = GridCell { at_unix_ms, ..cell(state, Some(bps), why.to_owned()) };
            grid.cells.entry(way).or_insert(new);
        }
    }
    grid
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::Unit;
    use narrows_model::run::history::Headline;

    #[test]
    fn hosts_stand_by_group_and_large_groups_in_parts() {
        let names: Vec<String> = (0..100).map(|nth| format!("h{nth:03}")).collect();
        let members: Vec<(&str, &str)> =
            names.iter().enumerate().map(|(nth, name)| (name.as_str(), if nth % 2 == 0 { "b" } else { "a" })).collect();
        let (grid, place) = empty(GridMetric::Loss, &members);
        assert_eq!((grid.hosts[0].as_str(), grid.hosts[50].as_str(), place[1]), ("h001", "h000", 0));
        let groups: Vec<(&str, [usize; 2])> = grid.groups.iter().map(|it| (it.name.as_str(), it.hosts)).collect();
        assert_eq!(
            groups,
            [("a, part 1", [0, 40]), ("a, part 2", [40, 50]), ("b, part 1", [50, 90]), ("b, part 2", [90, 100])]
        );
        assert!(empty(GridMetric::Loss, &[("x", "")]).0.groups[0].name.is_empty());
    }

    #[test]
    fn what_a_host_without_cpu_time_measured_accuses_nobody() {
        let load = |busy: f64, state: Option<MeshState>| MeshLoad {
            from: 0,
            to: 1,
            opened_by_receiver: false,
            state: state.unwrap_or(MeshState::Measured {
                goodput_bps: 1e8,
                retransmits: None,
                busy: [Some(busy), None],
            }),
            beside_others_bps: None,
        };
        assert_eq!(of_load(&load(0.99, None), None, true).state, CellState::Monitor);
        assert_eq!(of_load(&load(0.99, None), Some(1.0), false).state, CellState::Good);
        assert_eq!(of_load(&load(0.5, None), None, true).state, CellState::Bad);
        assert_eq!(
            of_load(&load(0.5, Some(MeshState::Unreachable("no".to_owned()))), None, false).state,
            CellState::Failed
        );
    }

    #[test]
    fn a_run_without_a_verdict_is_not_good_and_what_is_cut_off_hides_none() {
        let run = |command: &str, verdict: &str| StoredRun {
            client: "a".to_owned(),
            server: "b".to_owned(),
            verdict: verdict.to_owned(),
            ..crate::history::empty(command, vec![Headline::new("goodput up", 1e8, Unit::BitsPerSecond)])
        };
        let state = |newest: StoredRun| of_runs(&[newest, run("diagnose", "limited: x")]).state(0, 1);
        assert_eq!(state(run("diagnose", "unknown")), CellState::Missing);
        assert_eq!(state(run("diagnose", "healthy: link-speed")), CellState::Good);
        assert_eq!(state(run("diagnose", "limited: tester-limited")), CellState::Monitor);
        for (command, verdict) in
            [("diagnose", "interrupted"), ("measure tcp", "ended early"), ("sweep", "complete"), ("mesh", "even")]
        {
            assert_eq!(state(run(command, verdict)), CellState::Bad, "{command}: {verdict}");
        }
    }

    #[test]
    fn each_direction_has_its_own_loss() {
        let of = |part| of_probe(Some([1.0, 2.0, 3.0]), Some([100, 0, 50]), part, GridMetric::Loss);
        assert_eq!(
            (of(1).state, of(1).value, of(2).state, of(2).value),
            (CellState::Good, Some(0.0), CellState::Bad, Some(0.5))
        );
        assert_eq!(of_probe(None, Some([9, 9, 0]), 1, GridMetric::RoundTrip).state, CellState::Failed);
    }
}
