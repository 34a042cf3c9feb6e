//! The device under test with larger tables (RFC 3222): throughput and latency over the number of entries.

use super::super::drawing::{Columns, LEFT, RIGHT, WIDTH, count, sheet};
use super::super::section::Section;
use super::super::sized::{each, frames, row, sized};
use super::super::words::{short_size, size};
use crate::data::modifiers::TableSeen;
use crate::data::report::{ForwardingReport, ModifierView, SizeView, TrafficView};
use narrows_model::host::table::{TableFill, TableKind};
use narrows_model::load::frame_traffic::Traffic;
use narrows_render::figures::{digits, float, grouped, nanos, pps, tick};
use narrows_render::style::Tone;
use narrows_render::svg::{Anchor, Canvas, Entry, Font, Look, Scale, legend};
use narrows_render::table::{Cell, Column, Table};
use narrows_render::words::{clean, round_time, rounded};

pub(super) const SECTION: Section =
    Section { picture: Some(picture), ..Section::of("tables", "Tables", |it| vec![table(it)]) };

fn fill(of: &TrafficView) -> Option<TableFill> {
    of.traffic.table()
}

fn seen(of: &SizeView) -> Option<&TableSeen> {
    match of.modified.as_ref()?.seen.as_ref()? {
        ModifierView::Table(seen) => Some(seen),
        _ => None,
    }
}

/// A row for each size through each table.
fn table(report: &ForwardingReport) -> Table {
    let columns = [
        Column::figures("entries"),
        Column::figures("passes"),
        Column::figures("without").spare(1),
        Column::figures("of that"),
        Column::figures("latency p50"),
        Column::figures("p99.9").spare(3),
        Column::figures("added in").spare(4),
        Column::figures("forwards after").spare(2),
    ];
    let remark = "added before the trials, checked by frames to the whole table and by control frames";
    let mut table = sized(report, "Tables of the device under test", remark, &columns);
    let time = |ms: u64| Cell::new(round_time(ms.saturating_mul(1_000_000)));
    for (traffic, view) in each(report) {
        let (Some(fill), Some(with)) = (fill(traffic), &view.modified) else { continue };
        let latency = view.results.latency.figures.as_ref();
        let seen = seen(view);
        let cells = vec![
            Cell::new(grouped(u64::from(fill.entries))),
            frames(with.modified).tone(Tone::Strong),
            frames(with.unmodified),
            Cell::maybe(with.ratio.map(|it| format!("{} %", digits(it * 100.0)))).tone(Tone::Strong),
            Cell::maybe(latency.map(|it| nanos(it.p50_ns))),
            Cell::maybe(latency.map(|it| nanos(it.p99_9_ns))),
            seen.map_or_else(|| Cell::new("–"), |it| time(it.install_ms)),
            seen.map_or_else(|| Cell::new("–"), |it| time(it.converge_ms)),
        ];
        let row = row(report, &table, traffic, Cell::new(size(view.size)), cells);
        table.rows.push(row.note(with.remark.clone()));
    }
    table
}

/// The figures of one size of a traffic over the entries of one table: `None` without the table.
struct Series {
    name: String,
    points: Vec<(Option<u32>, f64)>,
}

/// A figure of a size that is drawn.
struct Half {
    title: &'static str,
    of: fn(&SizeView) -> Option<f64>,
    tick: fn(f64) -> String,
    label: fn(f64) -> String,
}

const HALVES: [Half; 2] = [
    Half {
        title: "Throughput, frames per second",
        of: |it| {
            let goal = it.results.throughput.search.as_ref().and_then(|it| it.goals.first()?.lower);
            goal.or_else(|| it.modified.as_ref()?.modified).map(|it| it.pps)
        },
        tick,
        label: pps,
    },
    Half {
        title: "Latency, median",
        of: |it| it.results.latency.figures.as_ref().map(|it| float(it.p50_ns)),
        tick: |ns| round_time(rounded(ns)),
        label: |ns| nanos(rounded(ns)),
    },
];

/// Each plain traffic and size that goes through a table of that kind.
fn series(report: &ForwardingReport, kind: TableKind, half: &Half) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    let through = |it: &&TrafficView| fill(it).is_some_and(|fill| fill.table == kind);
    for plain in report.traffic.iter().filter(|it| it.traffic.modifier.is_none()) {
        let same = |it: &&TrafficView| Traffic { modifier: None, ..it.traffic.clone() } == plain.traffic;
        let with: Vec<&TrafficView> = report.traffic.iter().filter(through).filter(same).collect();
        if with.is_empty() {
            continue;
        }
        for view in &plain.sizes {
            let of = |it: &TrafficView| (half.of)(it.sizes.iter().find(|it| it.size == view.size)?);
            let without = (half.of)(view).map(|value| (None, value));
            let rest = with.iter().filter_map(|it| Some((fill(it).map(|fill| fill.entries), of(it)?)));
            let points: Vec<_> = without.into_iter().chain(rest).collect();
            if points.len() > 1 {
                all.push(Series { name: format!("{}, {} B", clean(&plain.name), short_size(view)), points });
            }
        }
    }
    all
}

const HIGH: f64 = 250.0;
const TOP: f64 = 134.0;
const EACH: f64 = HIGH + 92.0;

/// The picture; `None` where no table was measured.
fn picture(report: &ForwardingReport, _: &[Section]) -> Option<String> {
    let panels = TableKind::ALL.into_iter().flat_map(|kind| HALVES.iter().map(move |half| (kind, half)));
    let panels: Vec<_> = panels.map(|(kind, half)| (kind, half, series(report, kind, half))).collect();
    let panels: Vec<_> = panels.into_iter().filter(|(.., all)| !all.is_empty()).collect();
    let mut names: Vec<&String> = Vec::new();
    for series in panels.iter().flat_map(|(.., all)| all) {
        if !names.contains(&&series.name) {
            names.push(&series.name);
        }
    }
    if panels.is_empty() {
        return None;
    }
    let title = format!("Tables of {}", clean(&report.name));
    let subtitle = "the same frames without entries and through tables of growing size";
    let mut canvas = sheet(TOP + count(panels.len()) * EACH - 20.0, &title, subtitle);
    let entries: Vec<Entry> =
        names.iter().enumerate().map(|(at, name)| Entry::point((*name).clone(), Look::nth(at))).collect();
    legend(&mut canvas, (LEFT, 84.0), WIDTH - 20.0, &entries);
    for (at, (kind, half, all)) in panels.iter().enumerate() {
        let look = |series: &Series| Look::nth(names.iter().position(|name| **name == series.name).unwrap_or(0));
        panel(&mut canvas, TOP + count(at) * EACH, (*kind, half), all, look);
    }
    Some(canvas.finish())
}

/// One figure over the sizes of one table.
fn panel(
    canvas: &mut Canvas,
    top: f64,
    (kind, half): (TableKind, &Half),
    all: &[Series],
    look: impl Fn(&Series) -> Look,
) {
    let values = || all.iter().flat_map(|it| &it.points);
    let mut places: Vec<Option<u32>> = values().map(|(entries, _)| *entries).collect();
    places.sort_unstable();
    places.dedup();
    let ys = Scale::from_zero(values().map(|(_, value)| value * 1.1));
    let columns = Columns::new([LEFT, top, WIDTH - LEFT - RIGHT, HIGH], ys, places.len(), 1);
    columns.panel.grid_y(canvas, half.title, half.tick);
    for series in all {
        let (look, at) = (look(series), |entries| places.iter().position(|it| *it == entries).unwrap_or(0));
        let place = |(entries, value): &(Option<u32>, f64)| (columns.middle(at(*entries)), columns.panel.y(*value));
        canvas.polyline(&series.points.iter().map(place).collect::<Vec<_>>(), look.stroke(1.6));
        for point in &series.points {
            let (x, y) = place(point);
            let label = (half.label)(point.1);
            canvas.marker(look.marker, (x, y), 4.5, look.color, &format!("{}: {label}", series.name));
            if all.len() == 1 {
                canvas.text((x, y - 9.0), &label, Font::SMALL.color(look.color).anchored(Anchor::Middle));
            }
        }
    }
    let names: Vec<String> =
        places.iter().map(|it| it.map_or_else(|| "none".to_owned(), |it| grouped(u64::from(it)))).collect();
    columns.axis(canvas, &names, &format!("{kind} added to the device"));
}
