//! What pictures of a benchmark have in common: the sheet, columns of sizes, axes.

use crate::data::report::{ForwardingReport, SizeView, TrafficView};
use narrows_render::svg::{Anchor, Canvas, Font, Panel, Scale, Stroke, palette};

pub(super) const WIDTH: f64 = 1040.0;
pub(super) const LEFT: f64 = 76.0;
pub(super) const RIGHT: f64 = 30.0;

/// A sheet of that height with its title.
pub(super) fn sheet(height: f64, title: &str, subtitle: &str) -> Canvas {
    let mut canvas = Canvas::new(WIDTH, height, title, subtitle);
    canvas.text((24.0, 34.0), &Font::TITLE.fit(title, WIDTH - 48.0), Font::TITLE);
    canvas.text((24.0, 54.0), &Font::SUBTITLE.fit(subtitle, WIDTH - 48.0), Font::SUBTITLE);
    canvas
}

/// A plot whose columns are sizes.
#[derive(Clone, Copy)]
pub(super) struct Columns {
    pub(super) panel: Panel,
    number: usize,
    /// The most bars that stand in one.
    pub(super) bars: usize,
}

impl Columns {
    pub(super) fn new([left, top, wide, high]: [f64; 4], ys: Scale, number: usize, bars: usize) -> Self {
        let xs = Scale::Linear(0.0, count(number.max(1)));
        Self { panel: Panel { left, top, wide, high, xs, ys }, number, bars: bars.max(1) }
    }

    /// Pixels of a column.
    pub(super) fn wide(&self) -> f64 {
        self.panel.wide / count(self.number.max(1))
    }

    /// The middle of a column.
    pub(super) fn middle(&self, at: usize) -> f64 {
        self.panel.left + (count(at) + 0.5) * self.wide()
    }

    /// The left edge of a bar of so many in its column, and how wide it is.
    pub(super) fn bar(&self, at: usize, (bar, of): (usize, usize)) -> (f64, f64) {
        let (wide, gap) = (self.wide(), 3.0);
        let room = (wide * 0.74).min(count(self.bars) * 64.0);
        let each = (room - gap * count(self.bars - 1)) / count(self.bars);
        let taken = each * count(of) + gap * count(of.max(1) - 1);
        (self.middle(at) - taken / 2.0 + count(bar) * (each + gap), each)
    }

    /// The axis with the names of the columns; those without room are left out.
    pub(super) fn axis(&self, canvas: &mut Canvas, names: &[String], title: &str) {
        let base = self.panel.bottom();
        let mut free = f64::NEG_INFINITY;
        for (at, name) in names.iter().enumerate() {
            let (x, half) = (self.middle(at), Font::LABEL.width(name) / 2.0);
            if x - half > free {
                canvas.text((x, base + 19.0), name, Font::LABEL.anchored(Anchor::Middle));
                free = x + half + 4.0;
            }
        }
        canvas.line([self.panel.left, base, self.panel.right(), base], Stroke::new(palette::AXIS, 1.2));
        if !title.is_empty() {
            canvas.text(
                (self.panel.left + self.panel.wide / 2.0, base + 40.0),
                title,
                Font::SMALL.anchored(Anchor::Middle),
            );
        }
    }
}

pub(super) const fn count(n: usize) -> f64 {
    n as f64
}

/// The sizes over all traffics that have something to draw, in the order of the first that has each.
pub(super) fn sizes(report: &ForwardingReport, has: impl Fn(&SizeView) -> bool) -> Vec<(Option<u32>, String)> {
    let mut all: Vec<(Option<u32>, String)> = Vec::new();
    for size in report.traffic.iter().flat_map(|it| &it.sizes).filter(|size| has(size)) {
        if all.iter().all(|(other, _)| *other != size.size) {
            all.push((size.size, super::words::short_size(size)));
        }
    }
    // The mix stands behind all sizes.
    all.sort_by_key(|(size, _)| size.map_or(u32::MAX, |size| size));
    all
}

/// A size of a traffic.
fn find(traffic: &TrafficView, size: Option<u32>) -> Option<&SizeView> {
    traffic.sizes.iter().find(|it| it.size == size)
}

/// The traffics that have something of that size to draw, each with its place among all.
pub(super) fn present(
    report: &ForwardingReport,
    size: Option<u32>,
    has: impl Fn(&SizeView) -> bool,
) -> Vec<(usize, &TrafficView, &SizeView)> {
    let all = report.traffic.iter().enumerate();
    all.filter_map(|(at, traffic)| Some((at, traffic, find(traffic, size).filter(|it| has(it))?))).collect()
}

/// A vertical span with a short bar at each end.
pub(super) fn whisker(canvas: &mut Canvas, x: f64, (from, to): (f64, f64), half: f64, stroke: Stroke) {
    canvas.line([x, from, x, to], stroke);
    canvas.line([x - half, from, x + half, from], stroke);
    canvas.line([x - half, to, x + half, to], stroke);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_stay_in_their_column() {
        let columns = Columns::new([0.0, 0.0, 800.0, 100.0], Scale::Linear(0.0, 1.0), 8, 3);
        for at in 0..8 {
            let (first, _) = columns.bar(at, (0, 3));
            let (last, wide) = columns.bar(at, (2, 3));
            assert!(first >= count(at) * 100.0 && last + wide <= count(at + 1) * 100.0);
        }
    }
}
