//! One plot: a rectangle with two axes, its grid, and series in it.

use super::canvas::{Anchor, Canvas, Font, Stroke};
use super::palette::{self, Look};
use super::scale::Scale;

/// A plot's place on the sheet and its two axes.
#[derive(Debug, Clone, Copy)]
pub struct Panel {
    pub left: f64,
    pub top: f64,
    pub wide: f64,
    pub high: f64,
    pub xs: Scale,
    pub ys: Scale,
}

impl Panel {
    pub fn x(&self, value: f64) -> f64 {
        self.left + self.xs.part(value).clamp(-0.02, 1.02) * self.wide
    }

    pub fn y(&self, value: f64) -> f64 {
        self.top + (1.0 - self.ys.part(value).clamp(-0.02, 1.02)) * self.high
    }

    pub const fn bottom(&self) -> f64 {
        self.top + self.high
    }

    pub const fn right(&self) -> f64 {
        self.left + self.wide
    }

    /// Horizontal lines with their values to the left, and the axis's title above them.
    pub fn grid_y(&self, canvas: &mut Canvas, title: &str, label: impl Fn(f64) -> String) {
        for value in self.ys.ticks((self.high / 38.0).clamp(2.0, 8.0)) {
            let y = self.y(value);
            canvas.line([self.left, y, self.right(), y], Stroke::new(palette::GRID, 1.0));
            canvas.text((self.left - 8.0, y + 4.0), &label(value), Font::SMALL.anchored(Anchor::End));
        }
        canvas.text((self.left, self.top - 12.0), &of_scale(title, self.ys), Font::LABEL.bold());
    }

    /// Ticks at these values with their labels below, and the axis's title.
    pub fn axis_x(&self, canvas: &mut Canvas, values: &[f64], title: &str, label: impl Fn(f64) -> String) {
        let base = self.bottom();
        for &value in values {
            let x = self.x(value);
            canvas.line([x, self.top, x, base], Stroke::new(palette::GRID, 1.0));
            canvas.line([x, base, x, base + 5.0], Stroke::new(palette::AXIS, 1.0));
        }
        // Both ends keep their labels. A label between them that would overlap is left out; its tick stays.
        let mut taken: Vec<(f64, f64)> = Vec::new();
        let order = (0..values.len().min(1)).chain((1..values.len()).rev().take(1)).chain(1..values.len().max(2) - 1);
        for &value in order.filter_map(|at| values.get(at)) {
            let text = label(value);
            let (x, half) = (self.x(value), Font::SMALL.width(&text) / 2.0 + 3.0);
            if !text.is_empty() && taken.iter().all(|(from, to)| x + half < *from || x - half > *to) {
                canvas.text((x, base + 19.0), &text, Font::SMALL.anchored(Anchor::Middle));
                taken.push((x - half, x + half));
            }
        }
        canvas.line([self.left, base, self.right(), base], Stroke::new(palette::AXIS, 1.2));
        let title = of_scale(title, self.xs);
        if !title.is_empty() {
            canvas.text((self.left + self.wide / 2.0, base + 40.0), &title, Font::LABEL.anchored(Anchor::Middle));
        }
    }

    /// The words of a bar from `from` on, behind it, in it or before it: where they have room, with so much air.
    pub fn bar_label(&self, canvas: &mut Canvas, [from, wide, base]: [f64; 3], label: &str, air: f64) {
        let room = Font::LABEL.width(label) + air;
        if from + wide + room < self.right() {
            canvas.text((from + wide + 8.0, base), label, Font::LABEL);
        } else if wide > room + 8.0 {
            let inside = Font::LABEL.bold().color(palette::PAPER).anchored(Anchor::End);
            canvas.text((from + wide - 8.0, base), label, inside);
        } else {
            canvas.text((from - 8.0, base), label, Font::LABEL.anchored(Anchor::End));
        }
    }

    /// A line through the points, without markers.
    pub fn plain(&self, canvas: &mut Canvas, points: &[(f64, f64)], look: Look) {
        let at: Vec<(f64, f64)> = points.iter().map(|(x, y)| (self.x(*x), self.y(*y))).collect();
        canvas.polyline(&at, look.stroke(1.6));
    }

    /// A line through the points, with a marker on each.
    pub fn series(&self, canvas: &mut Canvas, points: &[(f64, f64)], look: Look, hint: impl Fn((f64, f64)) -> String) {
        let at: Vec<(f64, f64)> = points.iter().map(|(x, y)| (self.x(*x), self.y(*y))).collect();
        canvas.polyline(&at, look.stroke(2.0));
        for (point, at) in points.iter().zip(at) {
            canvas.marker(look.marker, at, 4.0, look.color, &hint(*point));
        }
    }
}

/// The title of an axis, which says so where it is logarithmic.
fn of_scale(title: &str, scale: Scale) -> String {
    match scale {
        Scale::Logarithmic(..) if !title.contains("log scale") => {
            format!("{title} (log scale)").trim_start().to_owned()
        }
        _ => title.to_owned(),
    }
}

/// Places near the wanted ones that are at least `apart` from one another and within the two ends; the order stays.
pub fn spread_out(wanted: &[f64], apart: f64, (top, bottom): (f64, f64)) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|a, b| wanted[*a].total_cmp(&wanted[*b]));
    let mut places = wanted.to_vec();
    let mut least = top;
    for at in &order {
        places[*at] = places[*at].max(least);
        least = places[*at] + apart;
    }
    let mut most = bottom;
    for at in order.iter().rev() {
        places[*at] = places[*at].min(most);
        most = places[*at] - apart;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_make_room_for_one_another() {
        let places = spread_out(&[50.0, 51.0, 10.0, 99.0], 14.0, (0.0, 100.0));
        assert_eq!(places, [50.0, 64.0, 10.0, 99.0]);
        let places = spread_out(&[99.0, 98.0], 14.0, (0.0, 100.0));
        assert_eq!(places, [100.0, 86.0]);
    }
}
