//! The accounting of a trial: the hops in path order with what went in and out, and below them each loss at its
//! place, to scale.

use super::drawing::{WIDTH, count, sheet};
use crate::data::AccountLine;
use crate::data::report::BooksView;
use narrows_render::figures::{float, grouped, ratio, tick};
use narrows_render::svg::{Anchor, Canvas, Font, Panel, Scale, Stroke, palette};
use narrows_render::words::clean;

const MARGIN: f64 = 24.0;
/// One hop's box, and the shortest and longest arrow to the next.
const BOX: [f64; 2] = [152.0, 62.0];
const ARROWS: [f64; 2] = [56.0, 128.0];
const TOP: f64 = 84.0;
/// Boxes in a row, and the rows apart.
const ROW: f64 = 92.0;
const PER_ROW: usize = 5;
/// The losses: their names' room, and a row's height.
const NAMES: f64 = 250.0;
const LOSS: f64 = 34.0;
/// The most losses that are drawn.
const MAX_LOSSES: usize = 16;

/// The picture of one trial's books.
pub(super) fn picture(view: &BooksView) -> String {
    let books = &view.books;
    // Counters that disagree do not locate losses.
    let mut losses = if books.disagreement.is_none() { books.losses() } else { Vec::new() };
    let left_out = losses.len().saturating_sub(MAX_LOSSES);
    losses.truncate(MAX_LOSSES);
    let rows = books.lines.len().div_ceil(PER_ROW).max(1);
    let wrong = view.invalid.is_some();
    let below = TOP + count(rows - 1) * ROW + BOX[1];
    let waterfall = if losses.is_empty() { 0.0 } else { count(losses.len()) * LOSS + 66.0 };
    let notes = usize::from(wrong) + usize::from(left_out > 0);
    let height = below + waterfall + count(notes) * 22.0 + 22.0;
    let sent = books.lines.first().and_then(|line| line.output);
    let title = clean(&super::summary::title(view));
    let subtitle = format!("{}: {}", view.telling, lost_words(books.lost, sent));
    let mut canvas = sheet(height, &title, &clean(&subtitle));
    way(&mut canvas, &books.lines);
    if !losses.is_empty() {
        waterfall_of(&mut canvas, &losses, sent, below + 26.0);
    }
    let mut y = height - 14.0;
    if left_out > 0 {
        canvas.text((MARGIN, y), &format!("{left_out} more places not shown"), Font::SMALL);
        y -= 20.0;
    }
    if let Some(why) = &view.invalid {
        let font = Font::LABEL.bold().color(palette::VERMILION);
        canvas.text((MARGIN, y), &font.fit(&format!("Invalid: {}", clean(why)), WIDTH - 2.0 * MARGIN), font);
    }
    canvas.finish()
}

fn lost_words(lost: i64, sent: Option<u64>) -> String {
    let of = sent.map(|sent| format!(" of {} sent", grouped(sent))).unwrap_or_default();
    match lost {
        0 => format!("nothing{of} was lost"),
        lost @ 1.. => format!("{}{of} lost", grouped(lost.unsigned_abs())),
        more => format!("{} more received than sent", grouped(more.unsigned_abs())),
    }
}

/// The hops as boxes, in rows.
fn way(canvas: &mut Canvas, lines: &[AccountLine]) {
    let columns = count(lines.len().clamp(2, PER_ROW));
    let long = ((WIDTH - 2.0 * MARGIN - columns * BOX[0]) / (columns - 1.0)).clamp(ARROWS[0], ARROWS[1]);
    for (at, line) in lines.iter().enumerate() {
        let (row, column) = (at / PER_ROW, at % PER_ROW);
        let (x, y) = (MARGIN + count(column) * (BOX[0] + long), TOP + count(row) * ROW);
        hop(canvas, (x, y), line);
        if let Some(next) = lines.get(at + 1) {
            let turns = column + 1 == PER_ROW;
            arrow(canvas, (x + BOX[0], y + BOX[1] / 2.0), if turns { 20.0 } else { long - 4.0 }, next);
        }
    }
}

fn hop(canvas: &mut Canvas, (x, y): (f64, f64), line: &AccountLine) {
    let dropped = line.drops.iter().fold(0u64, |sum, drop| sum.saturating_add(drop.frames));
    let beyond = |count: Option<i64>| count.is_some_and(|count| count.unsigned_abs() > line.uncertainty);
    let (color, width) = match () {
        () if line.trouble.is_some() => (palette::VERMILION, 2.0),
        () if dropped > 0 || beyond(line.unexplained) => (palette::ORANGE, 2.0),
        () => (palette::AXIS, 1.2),
    };
    let [wide, high] = BOX;
    let outline = [(x, y), (x + wide, y), (x + wide, y + high), (x, y + high), (x, y)];
    let dash = if line.trouble.is_some() { "5 3" } else { "" };
    canvas.polyline(&outline, Stroke { color, width, dash });
    let name = Font::LABEL.bold();
    canvas.text((x + 10.0, y + 18.0), &name.fit(&clean(&line.hop), wide - 20.0), name);
    let count = |count: Option<u64>| count.map_or_else(|| "not counted".to_owned(), grouped);
    let mut rows = Vec::new();
    if line.input.is_some() || line.hop != "generator" {
        rows.push(("in", count(line.input)));
    }
    if line.output.is_some() || line.hop != "receiver" {
        rows.push(("out", count(line.output)));
    }
    for (at, (word, says)) in rows.iter().enumerate() {
        let base = y + 36.0 + super::drawing::count(at) * 16.0;
        canvas.text((x + 10.0, base), word, Font::SMALL);
        canvas.text((x + wide - 10.0, base), says, Font::SMALL.color(palette::INK).anchored(Anchor::End));
    }
}

/// The way to the next hop, with what was lost on it.
fn arrow(canvas: &mut Canvas, (x, y): (f64, f64), long: f64, next: &AccountLine) {
    let lost = next.lost_before.filter(|lost| lost.unsigned_abs() > next.uncertainty);
    let color = if lost.is_some() { palette::VERMILION } else { palette::AXIS };
    let end = x + long;
    canvas.line([x + 3.0, y, end - 5.0, y], Stroke::new(color, 1.6));
    canvas.polygon(&[(end, y), (end - 8.0, y - 4.5), (end - 8.0, y + 4.5)], color, 1.0);
    if let Some(lost) = lost {
        let font = Font::SMALL.color(palette::VERMILION).anchored(Anchor::Middle);
        let text = narrows_render::figures::pps_short(float(lost.unsigned_abs()));
        let sign = if lost > 0 { "−" } else { "+" };
        canvas.text(((x + end) / 2.0, y - 8.0), &format!("{sign}{text}"), font);
        canvas.text(((x + end) / 2.0, y + 18.0), if lost > 0 { "missing" } else { "too many" }, font);
    }
}

/// Each loss as a bar that begins where the one before ended.
fn waterfall_of(canvas: &mut Canvas, losses: &[(String, String, u64)], sent: Option<u64>, top: f64) {
    let all = losses.iter().fold(0u64, |sum, it| sum.saturating_add(it.2));
    let xs = Scale::Linear(0.0, float(all.max(1)));
    let left = MARGIN + NAMES;
    let high = count(losses.len()) * LOSS;
    let panel = Panel { left, top, wide: WIDTH - left - 40.0, high, xs, ys: Scale::Linear(0.0, 1.0) };
    let ticks: Vec<f64> = xs.ticks(7.0).into_iter().filter(|tick| tick.fract() == 0.0).collect();
    panel.axis_x(canvas, &ticks, "lost frames, in path order", tick);
    let mut before = 0u64;
    for (at, (hop, reason, frames)) in losses.iter().enumerate() {
        let y = top + count(at) * LOSS;
        let (from, to) = (panel.x(float(before)), panel.x(float(before.saturating_add(*frames))));
        before = before.saturating_add(*frames);
        let name = Font::LABEL.bold().anchored(Anchor::End);
        canvas.text((left - 12.0, y + 15.0), &name.fit(&clean(hop), NAMES - 20.0), name);
        let small = Font::SMALL.anchored(Anchor::End);
        canvas.text((left - 12.0, y + 28.0), &small.fit(&clean(reason), NAMES - 20.0), small);
        if at > 0 {
            canvas.line([from, y - 7.0, from, y + 7.0], Stroke::new(palette::AXIS, 1.0));
        }
        let wide = (to - from).max(2.0);
        let share = sent.filter(|sent| *sent > 0).map(|sent| format!(" ({})", ratio(float(*frames) / float(sent))));
        let says = format!("{}{}", grouped(*frames), share.unwrap_or_default());
        canvas.rect([from, y + 7.0, wide, LOSS - 14.0], palette::VERMILION, &format!("{hop}, {reason}: {says}"));
        panel.bar_label(canvas, [from, wide, y + LOSS / 2.0 + 4.0], &says, 12.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_lost_is_told_in_words() {
        assert_eq!(lost_words(0, Some(1000)), "nothing of 1,000 sent was lost");
        assert_eq!(lost_words(7, None), "7 lost");
        assert_eq!(lost_words(-3, Some(10)), "3 more received than sent");
    }
}
