//! A trace as a picture: RTT of each hop with its least and worst, silent hops, and the path MTU below.

use super::{mtu, remark, title};
use crate::figures::tick;
use crate::svg::palette::{BLUE, MUTED, VERMILION};
use crate::svg::{Anchor, Canvas, Entry, Font, Look, Marker, Panel, Scale, Stroke, legend};
use crate::words::clean;
use narrows_model::TraceReport;
use narrows_model::trace::report::TraceHop;

const WIDTH: f64 = 1080.0;
const LEFT: f64 = 90.0;
const HIGH: f64 = 300.0;

pub fn picture(report: &TraceReport) -> String {
    let findings = report.findings.iter().take(8);
    let high = 84.0 + HIGH + 170.0 + 22.0 * findings.len() as f64;
    let subtitle = clean(&remark(report));
    let mut canvas = Canvas::titled(WIDTH, high, &format!("Trace to {}", clean(&title(report))), &subtitle);
    let (median, worst) = (Look::nth(0), Look::nth(1));
    let entries = [Entry::line("median RTT", median), Entry::plain("least to worst", worst)];
    let top = 84.0 + legend(&mut canvas, (LEFT, 84.0), WIDTH - 20.0, &entries) + 40.0;
    let last = report.hops.last().map_or(1, |hop| hop.ttl);
    let xs = Scale::Linear(0.5, f64::from(last) + 0.5);
    let ys = Scale::from_zero(nodes(report).map(|(_, _, [_, _, worst])| worst));
    let panel = Panel { left: LEFT, top, wide: WIDTH - LEFT - 40.0, high: HIGH, xs, ys };
    panel.grid_y(&mut canvas, "RTT, ms", tick);
    let step = f64::from(last / 20 + 1);
    let ticks: Vec<f64> = (1..=last).map(f64::from).filter(|ttl| (ttl - 1.0) % step == 0.0).collect();
    panel.axis_x(&mut canvas, &ticks, "hop", |ttl| format!("{ttl:.0}"));
    for (hop, address, [least, middle, worst]) in nodes(report) {
        let x = panel.x(f64::from(hop.ttl));
        canvas.line([x, panel.y(least), x, panel.y(worst)], Stroke::new(MUTED, 2.0));
        let lossy = hop.loss.is_some_and(|loss| loss > 0.0) && !hop.limits_answers;
        let hint = clean(&format!("hop {}: {address}, {} ms", hop.ttl, tick(middle)));
        canvas.marker(Marker::Circle, (x, panel.y(middle)), 5.0, if lossy { VERMILION } else { BLUE }, &hint);
    }
    let line: Vec<(f64, f64)> =
        report.hops.iter().filter_map(|hop| Some((f64::from(hop.ttl), hop.nodes.first()?.rtt_ms?[1]))).collect();
    panel.plain(&mut canvas, &line, median);
    for hop in report.hops.iter().filter(|hop| hop.nodes.is_empty()) {
        let at = (panel.x(f64::from(hop.ttl)), panel.y(0.0) - 8.0);
        canvas.text(at, "*", Font::LABEL.anchored(Anchor::Middle));
    }
    let mut y = top + HIGH + 70.0;
    for words in mtu(report)
        .map(|line| format!("path MTU: {line}"))
        .into_iter()
        .chain(report.findings.iter().take(8).map(|it| format!("{}: {}", it.id, it.says)))
    {
        canvas.text((LEFT, y), &Font::LABEL.fit(&clean(&words), WIDTH - LEFT - 30.0), Font::LABEL);
        y += 22.0;
    }
    canvas.finish()
}

fn nodes(report: &TraceReport) -> impl Iterator<Item = (&TraceHop, &str, [f64; 3])> {
    report
        .hops
        .iter()
        .flat_map(|hop| hop.nodes.iter().filter_map(move |node| Some((hop, node.address.as_str(), node.rtt_ms?))))
}
