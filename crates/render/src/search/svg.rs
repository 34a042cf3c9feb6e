//! The trials of a search as a picture: load over time, each trial's loss by colour and shape, and the goals' bounds as
//! bands that tighten.

use crate::figures::{float, pps, precise, ratio, tick};
use crate::svg::{Anchor, Canvas, Entry, Font, Look, Marker, Panel, Scale, Stroke, legend, palette};
use crate::words::clean;
use narrows_model::Flow;
use narrows_model::search::{GoalBounds, LoadTrial};
use narrows_model::search_report::SearchReport;
use narrows_model::units::bps;

const WIDTH: f64 = 1080.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 210.0;
const HIGH: f64 = 380.0;

/// What a trial's loss says.
#[derive(Clone, Copy, PartialEq)]
enum Class {
    None,
    Within,
    Beyond,
    Invalid,
}

impl Class {
    fn of(trial: &LoadTrial, most: f64) -> Self {
        match trial.seen.loss_ratio() {
            _ if trial.seen.invalid.is_some() => Self::Invalid,
            None => Self::Invalid,
            Some(loss) if loss <= 0.0 => Self::None,
            Some(loss) if loss <= most => Self::Within,
            Some(_) => Self::Beyond,
        }
    }

    const fn look(self) -> Look {
        let (color, marker) = match self {
            Self::None => (palette::GREEN, Marker::Circle),
            Self::Within => (palette::ORANGE, Marker::Diamond),
            Self::Beyond => (palette::VERMILION, Marker::Square),
            Self::Invalid => (palette::AXIS, Marker::Up),
        };
        Look { color, marker, dash: "" }
    }
}

/// The picture of the whole search.
#[must_use]
pub fn picture(report: &SearchReport) -> String {
    let most = report.plan.goals.iter().map(|goal| goal.loss_ratio).fold(0.0, f64::max);
    let way = if report.flow == Flow::Up { "to" } else { "from" };
    let title = format!("Search for the highest load {way} {}", clean(&report.run.target.asked));
    let subtitle = format!(
        "datagrams of {:.0} B · {} trials in {:.0} s",
        report.unit.payload_bytes,
        report.trials.len(),
        float(report.trials.last().map_or(0, |trial| trial.ended_at_ms)) / 1e3
    );
    let mut canvas = Canvas::new(WIDTH, 130.0 + HIGH + 66.0, &title, &subtitle);
    canvas.text((24.0, 34.0), &title, Font::TITLE);
    canvas.text((24.0, 54.0), &subtitle, Font::SUBTITLE);
    let mut entries = vec![Entry::point("no loss", Class::None.look())];
    if most > 0.0 {
        entries.push(Entry::point(format!("loss up to {}", ratio(most)), Class::Within.look()));
    }
    entries.push(Entry::point(if most > 0.0 { "more loss" } else { "loss" }, Class::Beyond.look()));
    entries.push(Entry::point("invalid", Class::Invalid.look()));
    legend(&mut canvas, (LEFT, 84.0), WIDTH - 20.0, &entries);

    let loads = report.trials.iter().map(|trial| trial.load_pps);
    let Some(ys) = Scale::factors(loads) else {
        canvas.text((LEFT, 140.0), "No trial was made.", Font::LABEL);
        return canvas.finish();
    };
    let end = report.trials.iter().map(|trial| trial.ended_at_ms).max().unwrap_or(0);
    let xs = Scale::Linear(0.0, (float(end) / 1e3).max(0.001));
    let panel = Panel { left: LEFT, top: 130.0, wide: WIDTH - LEFT - RIGHT, high: HIGH, xs, ys };
    panel.grid_y(&mut canvas, "Load, packets/s (even factors)", tick);
    panel.axis_x(&mut canvas, &xs.ticks(10.0), "time since the search began, s", tick);
    let mut labels: Vec<f64> = Vec::new();
    for (n, goal) in report.plan.goals.iter().enumerate() {
        band(&mut canvas, &panel, report, &goal.name, Look::nth(n).color, &mut labels);
    }
    for (n, trial) in report.trials.iter().enumerate() {
        one(&mut canvas, &panel, report, n, trial, most);
    }
    canvas.finish()
}

fn one(canvas: &mut Canvas, panel: &Panel, report: &SearchReport, n: usize, trial: &LoadTrial, most: f64) {
    let look = Class::of(trial, most).look();
    let (from, to) = (trial.ended_at_ms.saturating_sub(trial.duration_ms), trial.ended_at_ms);
    let (x1, x2, y) = (panel.x(float(from) / 1e3), panel.x(float(to) / 1e3), panel.y(trial.load_pps));
    canvas.line([x1, y, x2, y], look.stroke(2.0));
    let loss = match (&trial.seen.invalid, trial.seen.loss_ratio()) {
        (Some(why), _) => format!("invalid: {why}"),
        (None, Some(loss)) => format!("loss {}", ratio(loss)),
        (None, None) => "nothing was due".to_owned(),
    };
    let bits = bps(report.unit.load(trial.load_pps).payload_bps);
    let hint = format!("trial {}: {} ({bits}), {loss}", n + 1, pps(trial.load_pps));
    canvas.marker(look.marker, ((x1 + x2) / 2.0, y), 4.5, look.color, &hint);
}

/// One goal's bounds over time as a band, and their last values beside the plot.
fn band(
    canvas: &mut Canvas,
    panel: &Panel,
    report: &SearchReport,
    name: &str,
    color: &'static str,
    labels: &mut Vec<f64>,
) {
    let (low, high) = panel.ys.ends();
    let find = |bounds: &[GoalBounds]| bounds.iter().find(|it| it.goal == name).cloned();
    let steps: Vec<(f64, GoalBounds)> =
        report.history.iter().filter_map(|at| Some((float(at.at_ms) / 1e3, find(&at.bounds)?))).collect();
    let edge = |of: fn(&GoalBounds) -> Option<f64>, missing: f64| {
        let mut points: Vec<(f64, f64)> = Vec::new();
        for (at, bounds) in &steps {
            let (x, y) = (panel.x(*at), panel.y(of(bounds).unwrap_or(missing)));
            if let Some(&(_, before)) = points.last() {
                points.push((x, before));
            }
            points.push((x, y));
        }
        if let Some(&(_, y)) = points.last() {
            points.push((panel.right(), y));
        }
        points
    };
    let (lower, upper) = (edge(|it| it.lower_pps, low), edge(|it| it.upper_pps, high));
    let area: Vec<(f64, f64)> = lower.iter().chain(upper.iter().rev()).copied().collect();
    canvas.polygon(&area, color, 0.12);
    canvas.polyline(&lower, Stroke::new(color, 1.3));
    canvas.polyline(&upper, Stroke { color, width: 1.3, dash: "5 3" });
    let Some(result) = report.goals.iter().find(|view| view.goal.name == name) else { return };
    let anchor = result.lower.or(result.upper).map_or(panel.top + panel.high / 2.0, |load| panel.y(load.pps));
    // Labels of goals that ended near each other make room for one another, downwards.
    let mut y = anchor;
    while labels.iter().any(|taken| (taken - y).abs() < 52.0) {
        y += 13.0;
    }
    labels.push(y);
    let x = panel.right() + 16.0;
    canvas.line([panel.right() + 2.0, anchor, x - 3.0, y - 4.0], Stroke::new(color, 1.0));
    let font = Font::LABEL.anchored(Anchor::Start);
    let room = RIGHT - 24.0;
    let load = |of: Option<narrows_model::search_report::LoadView>| {
        of.map_or_else(
            || "–".to_owned(),
            |it| format!("{}, {}", precise(it.pps, "pps", 4), precise(it.payload_bps, "bit/s", 4)),
        )
    };
    canvas.text((x, y), &font.fit(&clean(name), room), font.bold().color(color));
    canvas.text((x, y + 15.0), &font.fit(&format!("↑ {}", load(result.upper)), room), Font::SMALL);
    canvas.text((x, y + 30.0), &font.fit(&format!("↓ {}", load(result.lower)), room), Font::SMALL);
}
