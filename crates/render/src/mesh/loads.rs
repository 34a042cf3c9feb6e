//! Each load of a mesh: a line of its CSV, and a row of its page.

use super::{name, round_trip};
use crate::table::{Cell, Column, Row, Table};
use narrows_model::run::mesh::{MeshLoad, MeshPath, MeshReport, MeshState};
use narrows_model::words::units::bps;

/// The columns of its CSV.
pub(crate) const COLUMNS: &[&str] = &[
    "from", "to", "state", "goodput_bps", "expected_bps", "beside_others_bps", "retransmits", "rtt_p50_us", "probes",
    "lost", "mtu_bytes",
];

/// The row of a load.
pub(super) fn id(from: usize, to: usize) -> String {
    format!("load-{from}-{to}")
}

/// What is known of each load and its path, for those who look one up in the grid.
pub(super) fn every_load(report: &MeshReport) -> Table {
    let columns = [
        Column::id("from"),
        Column::id("to"),
        Column::figures("goodput"),
        Column::figures("expected").spare(1),
        Column::figures("beside others").spare(1),
        Column::figures("retransmits").spare(1),
        Column::figures("round trip").spare(1),
        Column::figures("lost of probes").spare(1),
        Column::figures("path MTU").spare(1),
        Column::words("routers").spare(1),
        Column::words("why").spare(1),
    ];
    let mut table = Table::new("each load", "round trip: least, median and 90th percentile of probes", &columns);
    for (load, line) in report.loads.iter().zip(lines(report)) {
        let path = report.paths.iter().find(|it| (it.from, it.to) == (load.from, load.to));
        let back = report.paths.iter().find(|it| (it.from, it.to) == (load.to, load.from));
        let rtt = |it: &MeshPath| it.rtt_us.map(|all| all.map(|us| format!("{:.2}", us / 1e3)).join(" / ") + " ms");
        let rate = |bps_of: Option<f64>| Cell::maybe(bps_of.map(bps));
        let mut cells = vec![
            Cell::new(line.from),
            Cell::new(line.to),
            line.goodput_bps.map_or_else(|| Cell::new(line.state), |it| Cell::new(bps(it))),
            rate(line.expected_bps),
            rate(line.beside_others_bps),
            Cell::maybe(line.retransmits.map(|it| it.to_string())),
            Cell::maybe(path.and_then(rtt).or_else(|| back.and_then(rtt))),
            Cell::maybe(line.lost.zip(line.probes).map(|(lost, sent)| format!("{lost} of {sent}"))),
            Cell::maybe(line.mtu_bytes.map(|it| format!("{it} B"))),
            Cell::new(path.map_or_else(String::new, |it| it.hops.join(", "))),
        ];
        let said: Vec<String> = report
            .diagnoses
            .iter()
            .filter(|it| [it.from, it.to] == [load.from, load.to])
            .map(|it| {
                let run = it.run.as_ref().map_or_else(String::new, |id| format!(" (narrows report {id})"));
                format!("{}{run}", it.headline)
            })
            .collect();
        let why = match &load.state {
            MeshState::Unreachable(why) | MeshState::Failed(why) => Some(why.clone()),
            _ => None,
        };
        cells.push(Cell::new(why.into_iter().chain(said).collect::<Vec<_>>().join("; ")));
        table.rows.push(Row::new(cells).id(id(load.from, load.to)));
    }
    table.trimmed()
}

/// A line of its CSV.
#[derive(serde::Serialize)]
pub(crate) struct Line<'a> {
    from: &'a str,
    to: &'a str,
    state: &'static str,
    goodput_bps: Option<f64>,
    expected_bps: Option<f64>,
    beside_others_bps: Option<f64>,
    retransmits: Option<u64>,
    rtt_p50_us: Option<f64>,
    probes: Option<u64>,
    lost: Option<u64>,
    mtu_bytes: Option<u32>,
}

/// A load in each line.
pub(crate) fn lines(report: &MeshReport) -> Vec<Line<'_>> {
    // What one end sends tells of both directions.
    let lost = |from: usize, to: usize| {
        report.paths.iter().find_map(|path| match (path.packets?, [path.from, path.to]) {
            ([sent, up, _], way) if way == [from, to] => Some((sent, up)),
            ([sent, up, down], way) if way == [to, from] => Some((sent.saturating_sub(up), down)),
            _ => None,
        })
    };
    let line = |(load, expected): (&'_ MeshLoad, &Option<f64>)| {
        let (state, goodput_bps, retransmits) = match &load.state {
            MeshState::Measured { goodput_bps, retransmits, .. } => ("measured", Some(*goodput_bps), *retransmits),
            MeshState::Unreachable(_) => ("unreachable", None, None),
            MeshState::Failed(_) => ("failed", None, None),
            MeshState::NotMade => ("not made", None, None),
        };
        Line {
            from: name(report, load.from),
            to: name(report, load.to),
            state,
            goodput_bps,
            expected_bps: *expected,
            beside_others_bps: load.beside_others_bps,
            retransmits,
            rtt_p50_us: round_trip(report, load.from, load.to),
            probes: lost(load.from, load.to).map(|it| it.0),
            lost: lost(load.from, load.to).map(|it| it.1),
            mtu_bytes: report
                .paths
                .iter()
                .find(|it| (it.from, it.to) == (load.from, load.to))
                .and_then(|it| it.mtu_bytes),
        }
    };
    report.loads.iter().zip(&report.expected_bps).map(line).collect()
}
