//! The comparison as a picture: of each row every run's throughput as a mark, A above B, with the mean and the mean's interval, as
//! ministat draws it, and the difference beside them.

use super::tables::percent;
use super::{is_limited, row_name};
use crate::data::ab_report::{AbReport, AbRowView, Sample};
use crate::writing::drawing::{WIDTH, count, sheet};
use narrows_render::figures::{pps, tick};
use narrows_render::svg::{Canvas, Entry, Font, Look, Marker, Panel, Scale, Stroke, legend, palette};
use narrows_render::words::clean;

const TOP: f64 = 126.0;
/// A row's plot, and with its title and axis.
const HIGH: f64 = 74.0;
const EACH: f64 = HIGH + 74.0;
const LEFT: f64 = 44.0;
/// Room for the difference in words.
const RIGHT: f64 = 250.0;
const A: Look = Look { color: palette::BLUE, marker: Marker::Circle, dash: "" };
const B: Look = Look { color: palette::VERMILION, marker: Marker::Diamond, dash: "" };

/// The picture; `None` where no run has a result. `intervals` are those of both means in each row.
pub fn picture(report: &AbReport, intervals: &[[Option<[f64; 2]>; 2]]) -> Option<String> {
    let drawn: Vec<_> =
        report.rows.iter().zip(intervals).filter(|(row, _)| row.a.is_some() || row.b.is_some()).collect();
    if drawn.is_empty() {
        return None;
    }
    let title = format!("Two configurations of {}", clean(&report.name));
    let subtitle = format!("throughput ({}) of every run, frames per second", clean(&report.goal));
    let mut canvas = sheet(TOP + count(drawn.len()) * EACH, &title, &subtitle);
    let entries = [
        Entry::point(format!("A: {}", clean(&report.a.name)), A),
        Entry::point(format!("B: {}", clean(&report.b.name)), B),
        Entry::plain("mean with 95 % interval", Look { color: palette::INK, ..A }),
    ];
    legend(&mut canvas, (LEFT, 84.0), WIDTH - 20.0, &entries);
    for (at, (row, intervals)) in drawn.into_iter().enumerate() {
        one(&mut canvas, report, (row, *intervals), TOP + count(at) * EACH);
    }
    Some(canvas.finish())
}

fn one(canvas: &mut Canvas, report: &AbReport, (row, intervals): (&AbRowView, [Option<[f64; 2]>; 2]), top: f64) {
    let sides = [(&row.row.a_pps, &row.a, A, "A"), (&row.row.b_pps, &row.b, B, "B")];
    let values = sides.iter().flat_map(|(values, ..)| values.iter().copied());
    let all: Vec<f64> =
        values.chain(intervals.iter().flatten().flatten().copied()).filter(|value| value.is_finite()).collect();
    let (low, high) =
        all.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), it| (low.min(*it), high.max(*it)));
    let air = ((high - low) * 0.06).max(high.abs() * 1e-4).max(1e-3);
    let xs = Scale::Linear((low - air).max(0.0), high + air);
    let wide = WIDTH - LEFT - RIGHT;
    let panel = Panel { left: LEFT, top, wide, high: HIGH, xs, ys: Scale::Linear(0.0, 1.0) };
    panel.axis_x(canvas, &xs.ticks(8.0), "", tick);
    canvas.text((LEFT, top - 8.0), &row_name(report, row), Font::LABEL.bold());
    for (nth, ((values, sample, look, word), interval)) in sides.into_iter().zip(intervals).enumerate() {
        let y = top + HIGH * (0.27 + 0.46 * count(nth));
        canvas.text((LEFT - 18.0, y + 4.0), word, Font::LABEL.bold().color(look.color));
        for value in values {
            canvas.marker(look.marker, (panel.x(*value), y), 5.0, look.color, &format!("{word}: {}", pps(*value)));
        }
        mean(canvas, &panel, y, sample.as_ref(), interval);
    }
    let x = WIDTH - RIGHT + 22.0;
    let (head, below) = match &row.row.welch {
        None => ("–".to_owned(), "not comparable"),
        Some(of) if is_limited(report, row) => (percent(of), "limited by the tester or the line"),
        Some(of) if of.is_proven() => (percent(of), "B against A, Welch, 95 %"),
        Some(of) => (percent(of), "B against A: not proven"),
    };
    canvas.text((x, top + HIGH / 2.0), &head, Font::TITLE);
    canvas.text((x, top + HIGH / 2.0 + 18.0), below, Font::SMALL);
}

/// The mean as an upright stroke, its interval as a line through it.
fn mean(canvas: &mut Canvas, panel: &Panel, y: f64, sample: Option<&Sample>, interval: Option<[f64; 2]>) {
    let Some(sample) = sample else { return };
    let (x, stroke) = (panel.x(sample.mean), Stroke::new(palette::INK, 1.6));
    canvas.line([x, y - 13.0, x, y + 13.0], stroke);
    if let Some([low, high]) = interval {
        let (from, to) = (panel.x(low), panel.x(high));
        canvas.line([from, y + 10.0, to, y + 10.0], stroke);
        for end in [from, to] {
            canvas.line([end, y + 6.0, end, y + 14.0], stroke);
        }
    }
}
