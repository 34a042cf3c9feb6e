//! Each load of a mesh: a line of its CSV, and a row of its page.

use super::{name, round_trip};
use crate::svg::{Canvas, Look, Panel, Scale, palette};
use crate::table::{Cell, Column, Row, Table};
use narrows_model::run::mesh::{MeshLoad, MeshPath, MeshReport, MeshState};
use narrows_model::words::units::{self, bps};

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

/// The band of the round trips of each path, in the order of their medians: who is far away, and whose round trips vary.
pub(super) fn band(report: &MeshReport) -> Option<String> {
    let mut known: Vec<(&MeshPath, [f64; 3])> = report.paths.iter().filter_map(|it| Some((it, it.rtt_us?))).collect();
    if known.len() < 3 {
        return None;
    }
    known.sort_by(|(_, a), (_, b)| a[1].total_cmp(&b[1]));
    // So many show what there is to see; both ends are among them.
    let step = known.len().div_ceil(BANDS_MAX);
    let last = known.len() - 1;
    let known: Vec<_> =
        known.into_iter().enumerate().filter(|(at, _)| at % step == 0 || *at == last).map(|(_, it)| it).collect();
    let known = &known;
    let mut canvas = Canvas::titled(WIDTH, HIGH + 150.0, "Round trips of the paths", BAND_SAYS);
    let xs = Scale::Linear(0.0, (known.len() - 1) as f64);
    let ys = Scale::from_zero(known.iter().map(|(_, all)| all[2]));
    let panel = Panel { left: 90.0, top: 84.0, wide: WIDTH - 120.0, high: HIGH, xs, ys };
    let ms = |us: f64| units::micros(us.max(0.0) as u64);
    panel.grid_y(&mut canvas, "round trip", ms);
    panel.axis_x(&mut canvas, &[], "paths, in the order of their medians", |_| String::new());
    let edge = |nth: usize| known.iter().enumerate().map(move |(at, (_, all))| (at as f64, all[nth]));
    let place = |(x, y): (f64, f64)| (panel.x(x), panel.y(y));
    let outline: Vec<(f64, f64)> = edge(2).chain(edge(0).rev()).map(place).collect();
    canvas.polygon(&outline, palette::BLUE, 0.2);
    let points: Vec<(f64, f64)> = edge(1).collect();
    if points.len() > NAMED_MAX {
        panel.plain(&mut canvas, &points, Look::nth(0));
    } else {
        panel.series(&mut canvas, &points, Look::nth(0), |(x, y)| {
            let path = known.get(x as usize).map(|(path, _)| *path);
            path.map_or_else(String::new, |it| {
                format!("{} to {}: {}", name(report, it.from), name(report, it.to), ms(y))
            })
        });
    }
    Some(canvas.finish())
}

const BAND_SAYS: &str =
    "The line is the median of the probes of each path, the band reaches from their minimum to their 90th percentile";
const WIDTH: f64 = 1080.0;
const HIGH: f64 = 220.0;
const BANDS_MAX: usize = 1_000;
/// More points would hide each other.
const NAMED_MAX: usize = 150;

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
