//! Plots with a row for each thing that is compared: samples as dots over their boxes, and estimates with their intervals.

use super::canvas::{Anchor, Canvas, Font, Stroke};
use super::palette::{self, Look};
use super::panel::Panel;
use super::scale::Scale;

/// The height of a row.
pub const ROW: f64 = 46.0;
/// What a plot needs above and below its rows.
pub const AROUND: f64 = 76.0;
/// Dots of a row that are drawn; of more, evenly spread ones.
const DOTS_MAX: usize = 400;

/// A row of dots.
pub struct Dots<'a> {
    /// To the left of the row.
    pub name: String,
    /// Its values, in the order in which they were measured: from the row's top to its bottom.
    pub values: &'a [f64],
    /// Minimum, lower quartile, median, upper quartile, maximum.
    pub five: [f64; 5],
}

/// A row with an estimate.
pub struct Estimate {
    /// To the left of the row.
    pub name: String,
    /// The estimate; `None`: there is none, the row is empty.
    pub value: Option<f64>,
    pub interval: Option<[f64; 2]>,
    /// To the right of the row.
    pub says: String,
}

/// Where the rows are.
#[derive(Clone, Copy)]
pub struct Place {
    pub left: f64,
    pub top: f64,
    pub wide: f64,
}

/// Draws the rows of dots and returns where they end. A row has the box of its quartiles, a line at its median, and its dots from
/// the first value above to the last below, so that a drift is a slope.
pub fn dots(canvas: &mut Canvas, place: Place, title: &str, rows: &[Dots<'_>], label: impl Fn(f64) -> String) -> f64 {
    let panel = panel(place, rows.len(), rows.iter().flat_map(|row| [row.five[0], row.five[4]]));
    frame(canvas, &panel, title, &label);
    for (at, row) in rows.iter().enumerate() {
        let middle = named(canvas, &panel, at, &row.name);
        let look = Look::nth(at);
        let [low, lower, median, upper, high] = row.five.map(|it| panel.x(it));
        canvas.line([low, middle, high, middle], Stroke::new(palette::AXIS, 1.2));
        canvas.rect([lower, middle - 13.0, upper - lower, 26.0], palette::GRID, "");
        canvas.line([median, middle - 15.0, median, middle + 15.0], Stroke::new(palette::INK, 2.0));
        let step = row.values.len().div_ceil(DOTS_MAX).max(1);
        let down = |nth: usize| (nth as f64 + 0.5) / row.values.len() as f64 * 26.0 - 13.0;
        for (nth, value) in row.values.iter().enumerate().step_by(step) {
            canvas.marker(look.marker, (panel.x(*value), middle + down(nth)), 3.2, look.color, &label(*value));
        }
    }
    panel.bottom() + AROUND / 2.0
}

/// Draws the rows of estimates and returns where they end. `same`: what is no difference, a band around zero.
pub fn estimates(
    canvas: &mut Canvas,
    place: Place,
    title: &str,
    rows: &[Estimate],
    same: Option<f64>,
    label: impl Fn(f64) -> String,
) -> f64 {
    let ends = rows.iter().flat_map(|row| row.interval.into_iter().flatten().chain(row.value));
    let panel = panel(place, rows.len(), ends.chain([0.0]).chain(same.into_iter().flat_map(|it| [-it, it])));
    if let Some(same) = same {
        let from = panel.x(-same);
        canvas.rect([from, panel.top, panel.x(same) - from, panel.high], palette::GRID, "");
    }
    frame(canvas, &panel, title, &label);
    canvas.line([panel.x(0.0), panel.top, panel.x(0.0), panel.bottom()], Stroke::new(palette::INK, 1.2));
    for (at, row) in rows.iter().enumerate() {
        let middle = named(canvas, &panel, at, &row.name);
        if let Some([low, high]) = row.interval {
            canvas.line([panel.x(low), middle, panel.x(high), middle], Stroke::new(palette::BLUE, 3.0));
        }
        if let Some(value) = row.value {
            canvas.marker(super::Marker::Diamond, (panel.x(value), middle), 5.0, palette::BLUE, &label(value));
        }
        canvas.text((panel.right() + 12.0, middle + 4.0), &row.says, Font::LABEL);
    }
    panel.bottom() + AROUND / 2.0
}

/// The panel of so many rows over these values, with some air at both ends.
fn panel(place: Place, rows: usize, values: impl Iterator<Item = f64>) -> Panel {
    let finite = values.filter(|it| it.is_finite());
    let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), it| (low.min(it), high.max(it)));
    let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
    let air = if high > low { (high - low) * 0.06 } else { low.abs().max(1.0) * 0.05 };
    let high_px = ROW * rows as f64;
    let Place { left, top, wide } = place;
    let (xs, ys) = (Scale::Linear(low - air, high + air), Scale::Linear(0.0, 1.0));
    Panel { left, top: top + AROUND / 2.0, wide, high: high_px, xs, ys }
}

fn frame(canvas: &mut Canvas, panel: &Panel, title: &str, label: impl Fn(f64) -> String) {
    canvas.text((panel.left, panel.top - 12.0), title, Font::LABEL.bold());
    panel.axis_x(canvas, &panel.xs.ticks(7.0), "", label);
}

/// Writes the name of a row and returns its middle.
fn named(canvas: &mut Canvas, panel: &Panel, at: usize, name: &str) -> f64 {
    let middle = panel.top + ROW * (at as f64 + 0.5);
    let name = Font::LABEL.fit(name, panel.left - 24.0);
    canvas.text((panel.left - 10.0, middle + 4.0), &name, Font::LABEL.anchored(Anchor::End));
    middle
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_all_equal_or_missing_have_a_panel() {
        let place = Place { left: 0.0, top: 0.0, wide: 100.0 };
        for values in [vec![], vec![0.0], vec![f64::NAN], vec![3.0, 3.0]] {
            let panel = panel(place, 1, values.iter().copied());
            let (low, high) = panel.xs.ends();
            assert!(low < high, "{values:?}: {low} to {high}");
        }
    }
}
