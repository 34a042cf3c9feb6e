//! Latency at the throughput: a table, and for each size the whole range, the part between the median and p99, p99.9, and the mean.

use super::super::drawing::{Columns, LEFT, RIGHT, WIDTH, count, sheet, whisker};
use super::super::section::Section;
use super::super::sized::{each, row, sized};
use super::super::words::{size, time, times};
use crate::data::procedures::latency::LatencyOfSize;
use crate::data::report::{ForwardingReport, TrafficView};
use crate::data::{Test, Tests};
use narrows_render::figures::{float, grouped, nanos, pps};
use narrows_render::style::Tone;
use narrows_render::svg::{Anchor, Canvas, Entry, Font, Look, Marker, Scale, Stroke, legend, palette, spread_out};
use narrows_render::table::{Cell, Column, Table};
use narrows_render::words::{clean, round_time, rounded};

pub(super) const SECTION: Section = Section {
    picture: Some(picture),
    asked: &[(Test::Latency, asked)],
    ..Section::of("latency", "Latency", |it| vec![latency(it)])
};

fn asked(tests: &Tests) -> Option<String> {
    tests.latency.as_ref().map(|it| format!("{} of {}", times(it.repetitions), time(it.duration_ms)))
}

/// Latency at the throughput.
fn latency(report: &ForwardingReport) -> Table {
    let mut columns = vec![Column::figures("load").spare(2)];
    columns.extend(["min", "mean", "p50", "p99", "p99.9", "max", "PDV"].map(Column::figures));
    columns.push(Column::figures("trials").spare(3));
    columns.push(Column::figures("stamps").spare(4));
    let mut table = sized(report, "Latency", "at the throughput; PDV: p99.9 − min (RFC 8219)", &columns);
    for (traffic, view) in each(report) {
        let Some(it) = &view.results.latency.figures else { continue };
        let mut cells = vec![Cell::new(pps(it.load_pps))];
        let times = [it.min_ns, rounded(it.mean_ns), it.p50_ns, it.p99_ns, it.p99_9_ns, it.max_ns, it.pdv_ns];
        cells.extend(times.iter().enumerate().map(|(at, ns)| Cell::new(nanos(*ns)).tone_if(at == 1, Tone::Strong)));
        cells.extend([Cell::new(it.repetitions.to_string()), Cell::new(grouped(it.stamps))]);
        table.rows.push(row(report, &table, traffic, Cell::new(size(view.size)), cells));
    }
    table
}

const HIGH: f64 = 270.0;
const EACH: f64 = HIGH + 78.0;
const TOP: f64 = 138.0;
const MEAN: Look = Look { color: palette::ORANGE, marker: Marker::Diamond, dash: "" };
const MEDIAN: Look = Look { color: palette::BLUE, marker: Marker::Circle, dash: "" };
const RARE: Look = Look { color: palette::VERMILION, marker: Marker::Up, dash: "" };

/// The picture; `None` where no latency was measured.
fn picture(report: &ForwardingReport, _: &[Section]) -> Option<String> {
    let drawn: Vec<&TrafficView> =
        report.traffic.iter().filter(|it| it.sizes.iter().any(|it| it.results.latency.figures.is_some())).collect();
    let all = || drawn.iter().flat_map(|it| &it.sizes).filter_map(|it| it.results.latency.figures.as_ref());
    let ys = Scale::factors(all().flat_map(|it| [float(it.min_ns.max(1)), float(it.max_ns)]))?;
    let title = format!("Latency of {}", clean(&report.name));
    let subtitle = "at the throughput of each size, from timestamps in the frames; logarithmic scale";
    let mut canvas = sheet(TOP + count(drawn.len()) * EACH - 12.0, &title, subtitle);
    let entries = [
        Entry::point("median", MEDIAN),
        Entry::plain("median to p99", Look { color: palette::SKY, ..MEDIAN }),
        Entry::point("mean (RFC 2544)", MEAN),
        Entry::point("p99.9", RARE),
        Entry::plain("smallest to largest", Look { color: palette::AXIS, ..MEDIAN }),
    ];
    legend(&mut canvas, (LEFT, 84.0), WIDTH - 20.0, &entries);
    for (at, traffic) in drawn.iter().enumerate() {
        one(&mut canvas, report, traffic, TOP + count(at) * EACH, ys);
    }
    Some(canvas.finish())
}

fn one(canvas: &mut Canvas, report: &ForwardingReport, traffic: &TrafficView, top: f64, ys: Scale) {
    let of: Vec<(String, &LatencyOfSize)> = traffic
        .sizes
        .iter()
        .filter_map(|it| Some((super::super::words::short_size(it), it.results.latency.figures.as_ref()?)))
        .collect();
    let columns = Columns::new([LEFT, top, WIDTH - LEFT - RIGHT, HIGH], ys, of.len(), 1);
    let name =
        if report.traffic.len() > 1 { format!("{}: latency", clean(&traffic.name)) } else { "Latency".to_owned() };
    columns.panel.grid_y(canvas, &name, |ns| round_time(rounded(ns)));
    for (at, (name, it)) in of.iter().enumerate() {
        let x = columns.middle(at);
        let y = |ns: f64| columns.panel.y(ns.max(1.0));
        let hint = |what: &str, ns: u64| format!("{name} B: {what} {}", nanos(ns));
        whisker(canvas, x, (y(float(it.max_ns)), y(float(it.min_ns))), 6.0, Stroke::new(palette::AXIS, 1.4));
        let (low, high) = (y(float(it.p50_ns)), y(float(it.p99_ns)));
        canvas.rect([x - 6.0, high, 12.0, (low - high).max(1.0)], palette::SKY, &hint("p99", it.p99_ns));
        canvas.marker(RARE.marker, (x, y(float(it.p99_9_ns))), 4.5, RARE.color, &hint("p99.9", it.p99_9_ns));
        canvas.marker(MEDIAN.marker, (x, low), 4.5, MEDIAN.color, &hint("median", it.p50_ns));
        canvas.marker(MEAN.marker, (x, y(it.mean_ns)), 4.0, MEAN.color, &hint("mean", rounded(it.mean_ns)));
        // Beside its mark, those that are near each other apart.
        let wanted = [y(float(it.p99_9_ns)), high, y(it.mean_ns).min(low)];
        let labels = [
            (nanos(it.p99_9_ns), RARE.color),
            (nanos(it.p99_ns), palette::MUTED),
            (nanos(rounded(it.mean_ns)), palette::INK),
        ];
        let room = columns.wide() / 2.0 - 12.0;
        if labels.iter().all(|(text, _)| Font::SMALL.width(text) < room) {
            let places = spread_out(&wanted, 13.0, (columns.panel.top + 4.0, columns.panel.bottom() - 4.0));
            for ((text, color), place) in labels.iter().zip(places) {
                canvas.text((x + 11.0, place + 4.0), text, Font::SMALL.color(color).anchored(Anchor::Start));
            }
        }
    }
    let names: Vec<String> = of.into_iter().map(|(name, _)| name).collect();
    columns.axis(canvas, &names, "frame size with FCS, bytes");
}
