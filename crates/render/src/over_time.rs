//! Figures over time as a picture, one below the other.

use crate::figures::tick;
use crate::history::value;
use crate::svg::{Canvas, Entry, Look, Panel, Scale, legend};
use narrows_model::Unit;

const WIDTH: f64 = 1080.0;
const LEFT: f64 = 110.0;
const HIGH: f64 = 170.0;
const APART: f64 = 70.0;
/// Points above which a curve has no marker for each.
const MARKERS_MAX: usize = 120;

/// One curve: its name, and for each figure the middle of each interval with the value.
pub(crate) struct Curve {
    pub(crate) name: String,
    pub(crate) figures: Vec<Vec<(f64, f64)>>,
}

/// A plot over time for each figure that is known.
pub(crate) fn plot(title: &str, subtitle: &str, all: &[(&str, Unit)], curves: &[Curve]) -> String {
    let known = |at: &usize| curves.iter().any(|it| !it.figures[*at].is_empty());
    let figures: Vec<usize> = (0..all.len()).filter(known).collect();
    let high = 130.0 + (HIGH + APART) * figures.len() as f64;
    let mut canvas = Canvas::titled(WIDTH, high, &crate::words::clean(title), &crate::words::clean(subtitle));
    let named = |(at, it): (usize, &Curve)| (!it.name.is_empty()).then(|| Entry::plain(it.name.clone(), Look::nth(at)));
    let entries: Vec<Entry> = curves.iter().enumerate().filter_map(named).collect();
    let mut top = 84.0 + legend(&mut canvas, (LEFT, 84.0), WIDTH - 20.0, &entries) + 20.0;
    let end = curves.iter().flat_map(|it| it.figures.iter().flatten()).map(|it| it.0);
    let xs = Scale::from_zero(end);
    let last = curves.iter().flat_map(|it| it.figures.iter().flatten()).map(|it| it.0).fold(0.0, f64::max);
    let (unit, seconds) = match last {
        last if last > 259_200.0 => ("d", 86_400.0),
        last if last > 7_200.0 => ("h", 3_600.0),
        _ => ("s", 1.0),
    };
    for at in figures {
        let (name, of) = all[at];
        let ys = Scale::from_zero(curves.iter().flat_map(|it| &it.figures[at]).map(|it| it.1));
        let panel = Panel { left: LEFT, top, wide: WIDTH - LEFT - 40.0, high: HIGH, xs, ys };
        panel.grid_y(&mut canvas, name, |it| match of {
            Unit::Count if it.fract() != 0.0 => String::new(),
            Unit::Count | Unit::Number => tick(it),
            _ => value(of, it),
        });
        panel.axis_x(&mut canvas, &xs.ticks(10.0), "", |it| format!("{} {unit}", tick(it / seconds)));
        for (nth, curve) in curves.iter().enumerate() {
            let points = &curve.figures[at];
            if points.len() > MARKERS_MAX {
                panel.plain(&mut canvas, points, Look::nth(nth));
            } else {
                panel.series(&mut canvas, points, Look::nth(nth), |(x, y)| format!("{x:.2} s: {}", value(of, y)));
            }
        }
        top += HIGH + APART;
    }
    canvas.finish()
}
