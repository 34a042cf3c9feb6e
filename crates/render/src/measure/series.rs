//! Figures over time as a picture, and the intervals of a measurement as rows.

use super::{Measured, Shown, text};
use crate::figures::tick;
use crate::history::csv::unit;
use crate::history::value;
use crate::page;
use crate::style::Style;
use crate::svg::{Canvas, Entry, Look, Panel, Scale, legend};
use maud::html;
use narrows_model::{Flow, Unit};

const WIDTH: f64 = 1080.0;
const LEFT: f64 = 110.0;
const HIGH: f64 = 170.0;
const APART: f64 = 70.0;
/// Points above which a curve has no marker for each.
const MARKERS_MAX: usize = 120;

fn way(flow: Option<Flow>) -> &'static str {
    flow.map_or("", |flow| flow.direction().word())
}

/// A line for each interval of each stream (RFC 4180). Without a stream it is all of them together; a figure that is not known is empty.
pub(super) fn csv<R: Measured>(report: &R) -> String {
    let mut out = String::from("trial,direction,stream,from_s,to_s,omitted");
    for (name, of) in R::Load::FIGURES {
        out += &format!(",{}_{}", name.to_lowercase().replace(' ', "_"), unit(*of));
    }
    out.push('\n');
    for (trial, views) in (1..).zip(report.trials()) {
        for view in views.intervals {
            let ((stream, omitted), (flow, [from, to], values)) = (R::Load::about(view), R::Load::values(view));
            let stream = stream.map_or_else(String::new, |id| id.to_string());
            out += &format!("{trial},{},{stream},{from:.3},{to:.3},{omitted}", way(flow));
            out.extend(values.iter().map(|it| it.map_or_else(|| ",".to_owned(), |it| format!(",{it}"))));
            out.push('\n');
        }
    }
    out
}

/// One curve: its name, and for each figure the middle of each interval with the value.
pub(crate) struct Curve {
    pub(crate) name: String,
    pub(crate) figures: Vec<Vec<(f64, f64)>>,
}

/// A curve for each trial and way, of all streams together.
fn curves<R: Measured>(report: &R) -> Vec<Curve> {
    let (trials, mut curves) = (report.trials(), Vec::<Curve>::new());
    for (nth, trial) in (1..).zip(&trials) {
        let whole = trial.intervals.iter().any(|view| R::Load::about(view).0.is_none());
        for view in trial.intervals.iter().filter(|view| !whole || R::Load::about(view).0.is_none()) {
            let (flow, [from, to], values) = R::Load::values(view);
            let of = if trials.len() > 1 { format!("trial {nth} ") } else { String::new() };
            let name = format!("{of}{}", way(flow)).trim_end().to_owned();
            let at = curves.iter().position(|it| it.name == name).unwrap_or_else(|| {
                curves.push(Curve { name, figures: vec![Vec::new(); R::Load::FIGURES.len()] });
                curves.len() - 1
            });
            for (points, value) in curves[at].figures.iter_mut().zip(values) {
                points.extend(value.filter(|it| it.is_finite()).map(|it| (f64::midpoint(from, to), it)));
            }
        }
    }
    curves
}

pub(super) fn picture<R: Measured>(report: &R, title: &str) -> String {
    plot(title, &format!("run {}, per interval", report.run().id), R::Load::FIGURES, &curves(report))
}

/// A plot over time for each figure that is known.
pub(crate) fn plot(title: &str, subtitle: &str, all: &[(&str, Unit)], curves: &[Curve]) -> String {
    let known = |at: &usize| curves.iter().any(|it| !it.figures[*at].is_empty());
    let figures: Vec<usize> = (0..all.len()).filter(known).collect();
    #[allow(clippy::cast_precision_loss)] // a few
    let high = 130.0 + (HIGH + APART) * figures.len() as f64;
    let mut canvas = Canvas::titled(WIDTH, high, &crate::words::clean(title), &crate::words::clean(subtitle));
    let named = |(at, it): (usize, &Curve)| (!it.name.is_empty()).then(|| Entry::plain(it.name.clone(), Look::nth(at)));
    let entries: Vec<Entry> = curves.iter().enumerate().filter_map(named).collect();
    let mut top = 84.0 + legend(&mut canvas, (LEFT, 84.0), WIDTH - 20.0, &entries) + 20.0;
    let end = curves.iter().flat_map(|it| it.figures.iter().flatten()).map(|it| it.0);
    let xs = Scale::from_zero(end);
    for at in figures {
        let (name, of) = all[at];
        let ys = Scale::from_zero(curves.iter().flat_map(|it| &it.figures[at]).map(|it| it.1));
        let panel = Panel { left: LEFT, top, wide: WIDTH - LEFT - 40.0, high: HIGH, xs, ys };
        panel.grid_y(&mut canvas, name, |it| match of {
            Unit::Count if it.fract() != 0.0 => String::new(),
            Unit::Count | Unit::Number => tick(it),
            _ => value(of, it),
        });
        panel.axis_x(&mut canvas, &xs.ticks(10.0), "", |it| format!("{} s", tick(it)));
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

pub(super) fn title<R: Measured>(report: &R) -> String {
    report.trials().first().map_or_else(String::new, |it| it.plan.title(&report.run().target))
}

/// The picture, and all of the text below it.
pub(super) fn page<R: Measured>(report: &R) -> String {
    let title = title(report);
    let style = Style { full: true, width: 110, wide: true, ..Style::default() };
    let main = html! { (page::figure(Some(picture(report, "Over time")))) pre tabindex="0" { (text(report, style)) } };
    page::document(&title, Some(&format!("run {}", report.run().id)), &main)
}
