//! The longest bursts without loss (RFC 9004): a table, and their average with the range over repetitions, and the
//! buffer time
//! that follows.

use super::super::drawing::{Columns, LEFT, RIGHT, WIDTH, count, present, sheet, sizes, whisker};
use super::super::section::Section;
use super::super::sized::{Figure, of_sizes};
use super::super::words::times;
use crate::data::procedures::back_to_back::BurstsOfSize;
use crate::data::report::ForwardingReport;
use crate::data::{Test, Tests};
use narrows_render::figures::{grouped, nanos, pps, pps_short, tick};
use narrows_render::style::Tone;
use narrows_render::svg::{Anchor, Canvas, Entry, Font, Look, Marker, Scale, Stroke, legend, palette};
use narrows_render::table::{Cell, Column, Table};
use narrows_render::words::{clean, round_time, rounded};

pub(super) const SECTION: Section = Section {
    picture: Some(picture),
    asked: &[(Test::BackToBack, asked)],
    ..Section::of("back-to-back", "Back-to-back", |it| vec![back_to_back(it)])
};

fn asked(tests: &Tests) -> Option<String> {
    let test = tests.back_to_back.as_ref();
    test.map(|it| format!("{}, bursts of at most {} frames", times(it.repetitions), grouped(it.most_frames)))
}

/// The longest bursts without loss.
fn back_to_back(report: &ForwardingReport) -> Table {
    let frames = |of: f64| grouped(rounded(of));
    let time = |it: &BurstsOfSize, ns: f64| format!("{}{}", more(it), nanos(rounded(ns)));
    let figures: [Figure<'_, BurstsOfSize>; 8] = [
        (Column::figures("average burst"), &|it| {
            Cell::new(format!("{}{}", more(it), frames(it.mean_frames))).tone(Tone::Strong)
        }),
        (Column::figures("min").spare(2), &|it| Cell::new(frames(it.frames.min))),
        (Column::figures("median").spare(3), &|it| Cell::new(frames(it.frames.median))),
        (Column::figures("max").spare(2), &|it| Cell::new(frames(it.frames.max))),
        (Column::figures("at"), &|it| Cell::new(pps(it.offered_pps))),
        (Column::figures("implied buffer"), &|it| Cell::new(time(it, it.implied_ns))),
        (Column::figures("corrected"), &|it| Cell::maybe(it.corrected_ns.map(|ns| time(it, ns))).tone(Tone::Strong)),
        (Column::figures("bursts").spare(1), &|it| Cell::new(it.frames.n.to_string())),
    ];
    let remark = "frames; RFC 9004: implied = average ÷ rate, corrected = less the frames forwarded during the burst";
    let note = |it: &BurstsOfSize| it.at_least.then(|| "the longest burst tried passed".to_owned());
    of_sizes(report, ["Back-to-back", remark], |it| it.results.back_to_back.bursts.as_ref(), &figures, note)
}

/// The sign of a burst that may be longer.
const fn more(of: &BurstsOfSize) -> &'static str {
    if of.at_least { "≥ " } else { "" }
}

const HIGH: f64 = 260.0;
const TOP: f64 = 138.0;
/// Between the two panels, the right one's axis included.
const GAP: f64 = 86.0;

/// The picture; `None` where no burst was sought.
fn picture(report: &ForwardingReport, _: &[Section]) -> Option<String> {
    let sizes = sizes(report, |it| it.results.back_to_back.bursts.is_some());
    if sizes.is_empty() {
        return None;
    }
    let title = format!("Back-to-back frames of {}", clean(&report.name));
    let subtitle = "longest burst at the maximum rate without loss (RFC 9004)";
    let mut canvas = sheet(TOP + HIGH + 58.0, &title, subtitle);
    let mut entries: Vec<Entry> = Vec::new();
    for (at, traffic) in report.traffic.iter().enumerate() {
        let look = Look { marker: Marker::Square, ..Look::nth(at) };
        entries.push(Entry::point(clean(&traffic.name), look));
    }
    entries.push(Entry::plain("range over repetitions", Look { color: palette::INK, ..Look::nth(0) }));
    entries.push(Entry::plain("implied, uncorrected", Look { color: palette::AXIS, ..Look::nth(0) }.dashed("4 3")));
    legend(&mut canvas, (LEFT, 84.0), WIDTH - 20.0, &entries);
    let wide = (WIDTH - LEFT - RIGHT - GAP) / 2.0;
    let names: Vec<String> = sizes.iter().map(|(_, name)| name.clone()).collect();
    let all =
        || report.traffic.iter().flat_map(|it| &it.sizes).filter_map(|it| it.results.back_to_back.bursts.as_ref());
    let bursts = Scale::from_zero(all().map(|it| it.frames.max));
    let left = Columns::new([LEFT, TOP, wide, HIGH], bursts, sizes.len(), report.traffic.len());
    left.panel.grid_y(&mut canvas, "Burst, frames", tick);
    let times = Scale::from_zero(all().map(|it| it.implied_ns));
    let right = Columns::new([LEFT + wide + GAP, TOP, wide, HIGH], times, sizes.len(), report.traffic.len());
    right.panel.grid_y(&mut canvas, "Buffer time", axis);
    for (column, (size, _)) in sizes.iter().enumerate() {
        let here = present(report, *size, |it| it.results.back_to_back.bursts.is_some());
        for (place, (look, traffic, view)) in here.iter().enumerate() {
            let Some(it) = &view.results.back_to_back.bursts else { continue };
            let (bar, color) = ((place, here.len()), Look::nth(*look).color);
            burst(&mut canvas, &left, left.bar(column, bar), color, it, &traffic.name);
            time(&mut canvas, &right, right.bar(column, bar), color, it, &traffic.name);
        }
    }
    for columns in [left, right] {
        columns.axis(&mut canvas, &names, "frame size with FCS, bytes");
    }
    Some(canvas.finish())
}

fn axis(ns: f64) -> String {
    if ns == 0.0 { "0".to_owned() } else { round_time(rounded(ns)) }
}

fn burst(canvas: &mut Canvas, columns: &Columns, (x, wide): (f64, f64), color: &str, it: &BurstsOfSize, name: &str) {
    let panel = &columns.panel;
    let y = panel.y(it.mean_frames);
    let hint = format!("{name}: mean {} frames", grouped(rounded(it.mean_frames)));
    canvas.rect([x, y, wide, panel.bottom() - y], color, &hint);
    let (high, low) = (panel.y(it.frames.max), panel.y(it.frames.min));
    whisker(canvas, x + wide / 2.0, (high, low), (wide / 4.0).min(5.0), Stroke::new(palette::INK, 1.2));
    label(
        canvas,
        columns,
        (x + wide / 2.0, high.min(y) - 5.0),
        &format!("{}{}", more(it), pps_short(it.mean_frames.round())),
    );
}

fn time(canvas: &mut Canvas, columns: &Columns, (x, wide): (f64, f64), color: &str, it: &BurstsOfSize, name: &str) {
    let panel = &columns.panel;
    let implied = panel.y(it.implied_ns);
    let shown = it.corrected_ns.unwrap_or(it.implied_ns);
    let y = panel.y(shown);
    if it.corrected_ns.is_some() {
        let hint = format!("{name}: {} corrected, {} implied", nanos(rounded(shown)), nanos(rounded(it.implied_ns)));
        canvas.rect([x, y, wide, panel.bottom() - y], color, &hint);
    }
    let outline = [(x, panel.bottom()), (x, implied), (x + wide, implied), (x + wide, panel.bottom())];
    canvas.polyline(&outline, Stroke { color: palette::AXIS, width: 1.2, dash: "4 3" });
    label(
        canvas,
        columns,
        (x + wide / 2.0, y.min(if y - implied < 18.0 { implied } else { y }) - 5.0),
        &format!("{}{}", more(it), nanos(rounded(shown))),
    );
}

/// A figure above its bar, where the bars leave it room.
fn label(canvas: &mut Canvas, columns: &Columns, at: (f64, f64), text: &str) {
    if Font::SMALL.width(text) < columns.wide() / count(columns.bars) + 6.0 {
        canvas.text(at, text, Font::SMALL.color(palette::INK).anchored(Anchor::Middle));
    }
}
