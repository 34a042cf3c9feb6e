//! The frame loss curve as a picture (RFC 2544, section 26.3): loss over the load in percent of the highest.

use crate::figures::{pps, ratio, tick};
use crate::svg::{Canvas, Entry, Look, Panel, Scale, legend};
use crate::words::clean;
use narrows_model::Flow;
use narrows_model::run::search_report::SearchReport;
use narrows_model::words::units::bps;

const WIDTH: f64 = 900.0;
const LEFT: f64 = 70.0;
const HIGH: f64 = 330.0;

/// The picture of a loss curve.
pub fn picture(report: &SearchReport) -> String {
    let way = if report.flow == Flow::Up { "to" } else { "from" };
    let title = format!("Loss at decreasing loads {way} {}", clean(&report.run.target.asked));
    let highest = report.unit.load(report.plan.max_load_pps);
    let subtitle =
        format!("{} · 100 % is {} ({})", report.unit.words(&report.sizes), pps(highest.pps), bps(highest.payload_bps));
    let mut canvas = Canvas::titled(WIDTH, 130.0 + HIGH + 66.0, &title, &subtitle);
    let mut points: Vec<_> = report.curve.clone();
    points.sort_by(|a, b| a.load_percent.total_cmp(&b.load_percent));
    let (all, unsent) = (Look::nth(1), Look::nth(0).dashed("5 3"));
    let mut entries = vec![Entry::line("lost and unsent", all)];
    let tester = points.iter().any(|point| point.unsent_ratio > 0.0);
    if tester {
        entries.push(Entry::line("unsent (tester)", unsent));
    }
    legend(&mut canvas, (LEFT, 84.0), WIDTH - 20.0, &entries);
    let lowest = points.first().map_or(0.0, |point| point.load_percent);
    let from = if lowest > 50.0 { ((lowest - 5.0) / 10.0).floor() * 10.0 } else { 0.0 };
    let xs = Scale::Linear(from.max(0.0), 100.0);
    let ys = Scale::from_zero(points.iter().map(|point| point.loss_ratio * 100.0));
    let panel = Panel { left: LEFT, top: 130.0, wide: WIDTH - LEFT - 40.0, high: HIGH, xs, ys };
    panel.grid_y(&mut canvas, "Loss, %", tick);
    panel.axis_x(&mut canvas, &xs.ticks(10.0), "load, % of the maximum", tick);
    let hint =
        |what: &'static str| move |(load, loss): (f64, f64)| format!("at {load:.1} %: {what} {}", ratio(loss / 100.0));
    let line = |of: fn(&narrows_model::run::search::LossPoint) -> f64| -> Vec<(f64, f64)> {
        points.iter().map(|point| (point.load_percent, of(point) * 100.0)).collect()
    };
    if tester {
        panel.series(&mut canvas, &line(|point| point.unsent_ratio), unsent, hint("unsent"));
    }
    panel.series(&mut canvas, &line(|point| point.loss_ratio), all, hint("loss"));
    canvas.finish()
}
