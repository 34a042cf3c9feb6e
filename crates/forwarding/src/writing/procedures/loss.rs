//! Loss over the load (RFC 2544, section 26.3): a table, and a panel for each traffic, a line for each size, named at its end.

use super::super::drawing::{WIDTH, count, sheet};
use super::super::section::Section;
use super::super::words::{size, time};
use crate::data::report::{ForwardingReport, SizeView, TrafficView};
use crate::data::{Test, Tests};
use narrows_model::words::units::percent;
use narrows_render::figures::{float, ratio, tick};
use narrows_render::style::Tone;
use narrows_render::svg::{Anchor, Canvas, Font, Look, Panel, Scale, Stroke, spread_out};
use narrows_render::table::{Cell, Column, Row, Table};
use narrows_render::words::{clean, rounded};

pub(super) const SECTION: Section = Section {
    picture: Some(picture),
    captions: true,
    asked: &[(Test::Loss, asked)],
    ..Section::of("loss", "Frame loss rate", loss)
};

fn asked(tests: &Tests) -> Option<String> {
    tests.loss.as_ref().map(|it| format!("steps of {}, {} each", percent(it.step), time(it.duration_ms)))
}

/// Loss over the load, a table for each traffic and a column for each size.
fn loss(report: &ForwardingReport) -> Vec<Table> {
    report
        .traffic
        .iter()
        .filter(|it| it.sizes.iter().any(|size| !size.results.loss.curve.is_empty()))
        .map(|it| curve(report, it))
        .collect()
}

fn curve(report: &ForwardingReport, traffic: &TrafficView) -> Table {
    let sizes: Vec<&SizeView> = traffic.sizes.iter().filter(|size| !size.results.loss.curve.is_empty()).collect();
    let spare = |at: usize| u8::try_from(at).unwrap_or(u8::MAX);
    let mut columns = vec![Column::figures("load")];
    columns.extend(sizes.iter().enumerate().map(|(at, it)| Column::figures(&size(it.size)).spare(spare(at))));
    let name = if report.traffic.len() > 1 {
        format!("Frame loss rate, {}", traffic.name)
    } else {
        "Frame loss rate".to_owned()
    };
    let mut table = Table::new(
        name,
        "lost and unsent, share of the frames due; load in % of the maximum \
        load",
        &columns,
    );
    let tenths = |percent: f64| rounded(percent * 10.0);
    let mut loads: Vec<u64> =
        sizes.iter().flat_map(|it| &it.results.loss.curve).map(|it| tenths(it.load_percent)).collect();
    loads.sort_unstable_by(|a, b| b.cmp(a));
    loads.dedup();
    for load in loads {
        let mut cells = vec![Cell::new(format!("{:.1} %", float(load) / 10.0))];
        let mut unsent = Vec::new();
        for it in &sizes {
            let point = it.results.loss.curve.iter().find(|point| tenths(point.load_percent) == load);
            let bad = point.is_some_and(|point| point.loss_ratio > 0.0);
            let cell = Cell::maybe(point.map(|point| ratio(point.loss_ratio)));
            cells.push(if bad { cell.tone(Tone::Bad) } else { cell });
            if let Some(point) = point.filter(|point| point.unsent_ratio > 0.0) {
                unsent.push(format!("{} {}", size(it.size), ratio(point.unsent_ratio)));
            }
        }
        let note = (!unsent.is_empty()).then(|| format!("unsent (tester): {}", unsent.join(", ")));
        table.rows.push(Row::new(cells).note(note));
    }
    table
}

const LEFT: f64 = 62.0;
const RIGHT: f64 = 150.0;
const HIGH: f64 = 270.0;
const EACH: f64 = HIGH + 84.0;
const TOP: f64 = 104.0;

/// The picture; `None` where no loss curve was measured.
fn picture(report: &ForwardingReport, _: &[Section]) -> Option<String> {
    let drawn: Vec<&TrafficView> =
        report.traffic.iter().filter(|it| it.sizes.iter().any(|it| !it.results.loss.curve.is_empty())).collect();
    if drawn.is_empty() {
        return None;
    }
    let title = format!("Frame loss rate of {}", clean(&report.name));
    let subtitle = "lost and unsent, share of the frames due, from the maximum load down to two loads without loss";
    let mut canvas = sheet(TOP + count(drawn.len()) * EACH - 10.0, &title, subtitle);
    for (at, traffic) in drawn.iter().enumerate() {
        one(&mut canvas, report, traffic, TOP + count(at) * EACH);
    }
    Some(canvas.finish())
}

/// Lines of the same colour differ by their dashes.
fn look(at: usize) -> Look {
    let look = Look::nth(at);
    match at / 6 {
        0 => look,
        1 => look.dashed("7 3"),
        _ => look.dashed("2 3"),
    }
}

fn one(canvas: &mut Canvas, report: &ForwardingReport, traffic: &TrafficView, top: f64) {
    let with: Vec<&SizeView> = traffic.sizes.iter().filter(|it| !it.results.loss.curve.is_empty()).collect();
    let points = || with.iter().flat_map(|it| &it.results.loss.curve);
    let least = points().map(|it| it.load_percent).fold(100.0, f64::min);
    let from = if least > 50.0 { ((least - 5.0) / 10.0).floor() * 10.0 } else { 0.0 };
    let most = points().map(|it| it.load_percent).fold(100.0, f64::max);
    let panel = Panel {
        left: LEFT,
        top,
        wide: WIDTH - LEFT - RIGHT,
        high: HIGH,
        xs: Scale::Linear(from.max(0.0), most),
        ys: Scale::from_zero(points().map(|it| it.loss_ratio * 100.0)),
    };
    let name =
        if report.traffic.len() > 1 { format!("{}: loss, %", clean(&traffic.name)) } else { "Loss, %".to_owned() };
    panel.grid_y(canvas, &name, tick);
    panel.axis_x(canvas, &panel.xs.ticks(10.0), "offered load, % of the maximum load", tick);
    let mut ends: Vec<(f64, String, Look)> = Vec::new();
    let mut none: Vec<String> = Vec::new();
    for (at, size) in with.iter().enumerate() {
        let name = super::super::words::size(size.size);
        if size.results.loss.curve.iter().all(|it| it.loss_ratio <= 0.0) {
            none.push(name);
            continue;
        }
        let look = look(at);
        let mut line: Vec<(f64, f64)> =
            size.results.loss.curve.iter().map(|it| (it.load_percent, it.loss_ratio * 100.0)).collect();
        line.sort_by(|a, b| a.0.total_cmp(&b.0));
        panel.series(canvas, &line, look, |(load, loss)| format!("{name}, {load:.1} %: loss {}", ratio(loss / 100.0)));
        let last = line.last().map_or(0.0, |it| it.1);
        ends.push((panel.y(last), format!("{name}: {}", ratio(last / 100.0)), look));
    }
    let wanted: Vec<f64> = ends.iter().map(|it| it.0).collect();
    let places = spread_out(&wanted, 16.0, (panel.top + 2.0, panel.bottom() - 2.0));
    for ((y, name, look), place) in ends.iter().zip(places) {
        let x = panel.right();
        canvas.line([x + 5.0, *y, x + 18.0, place], Stroke::new(look.color, 1.0));
        canvas.text((x + 22.0, place + 4.0), name, Font::LABEL.bold().color(look.color));
    }
    if !none.is_empty() {
        let text = format!("no loss at any load: {}", none.join(", "));
        let text = Font::SMALL.fit(&text, panel.wide * 0.6);
        canvas.text((panel.left + panel.wide, panel.top - 12.0), &text, Font::SMALL.anchored(Anchor::End));
    }
}
