//! The intervals of a measurement as rows and as a picture.

use super::{Measured, Shown, text};
use crate::history::csv::unit;
use crate::over_time::{Curve, plot};
use crate::page;
use crate::style::Style;
use maud::html;
use narrows_model::Flow;

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
