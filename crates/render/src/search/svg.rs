//! The trials of a search as a picture: load over time, the loss of each trial by colour and shape, and the goals' bounds as
//! bands that tighten.

use crate::figures::{float, pps, precise, ratio, tick};
use crate::svg::{Canvas, Entry, Font, Look, Marker, Panel, Scale, Stroke, legend, palette, spread_out};
use crate::words::{clean, or_dash};
use narrows_model::Flow;
use narrows_model::run::search::{GoalBounds, LoadTrial};
use narrows_model::run::search_report::{GoalView, LoadView, SearchReport};
use narrows_model::words::units::bps;

const WIDTH: f64 = 1080.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 232.0;
/// The whole search, and the part around the result enlarged.
const WHOLE: f64 = 220.0;
const ZOOM: f64 = 300.0;
const TOP: f64 = 130.0;
/// Pixels between the labels of two goals.
const LABEL: f64 = 52.0;
/// Colours of the goals' bands, different from those of the trials.
const BANDS: [&str; 4] = [palette::BLUE, palette::PURPLE, palette::SKY, palette::MUTED];

/// A trial's loss, by its relation to the goals.
#[derive(Clone, Copy, PartialEq)]
enum Class {
    None,
    Within,
    Beyond,
    Invalid,
}

impl Class {
    fn of(trial: &LoadTrial, max_loss: f64) -> Self {
        match trial.seen.loss_ratio() {
            _ if trial.seen.invalid.is_some() => Self::Invalid,
            None => Self::Invalid,
            Some(loss) if loss <= 0.0 => Self::None,
            Some(loss) if loss <= max_loss => Self::Within,
            Some(_) => Self::Beyond,
        }
    }

    const fn style(self) -> Look {
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
pub fn picture(report: &SearchReport) -> String {
    let max_loss = report.plan.goals.iter().map(|goal| goal.loss_ratio).fold(0.0, f64::max);
    let way = if report.flow == Flow::Up { "to" } else { "from" };
    let title = format!("Search for the highest load {way} {}", clean(&report.run.target.asked));
    let subtitle = format!(
        "{} · {} trials in {:.0} s · bands: undecided range of a goal (solid: passes, dashed: fails)",
        report.unit.words(&report.sizes),
        report.trials.len(),
        float(report.trials.last().map_or(0, |trial| trial.ended_at_ms)) / 1e3
    );
    let zoom = zoom(report);
    let height = TOP + WHOLE + if zoom.is_some() { 92.0 + ZOOM } else { 0.0 } + 56.0;
    let mut canvas = Canvas::titled(WIDTH, height, &title, &subtitle);
    let mut entries = vec![Entry::point("no loss", Class::None.style())];
    if max_loss > 0.0 {
        entries.push(Entry::point(format!("loss up to {}", ratio(max_loss)), Class::Within.style()));
    }
    entries.push(Entry::point(if max_loss > 0.0 { "above all goals" } else { "loss" }, Class::Beyond.style()));
    entries.push(Entry::point("invalid", Class::Invalid.style()));
    legend(&mut canvas, (LEFT, 84.0), WIDTH - 20.0, &entries);

    let loads = report.trials.iter().map(|trial| trial.load_pps);
    let Some(ys) = Scale::factors(loads) else {
        canvas.text((LEFT, 140.0), "No trials.", Font::LABEL);
        return canvas.finish();
    };
    let end = report.trials.iter().map(|trial| trial.ended_at_ms).max().unwrap_or(0);
    let xs = Scale::Linear(0.0, (float(end) / 1e3).max(0.001));
    let panel = |top, high, ys| Panel { left: LEFT, top, wide: WIDTH - LEFT - RIGHT, high, xs, ys };
    let whole = panel(TOP, WHOLE, ys);
    whole.grid_y(&mut canvas, "Load, packets/s: whole search", tick);
    plot(&mut canvas, &whole, report, max_loss);
    let named = zoom.map_or(whole, |ys| {
        let zoomed = panel(TOP + WHOLE + 92.0, ZOOM, ys);
        zoomed.grid_y(&mut canvas, "Load, packets/s: around the result", tick);
        plot(&mut canvas, &zoomed, report, max_loss);
        zoomed
    });
    labels(&mut canvas, &named, report);
    canvas.finish()
}

/// The loads around the result; `None` without a result or where nothing would be enlarged.
fn zoom(report: &SearchReport) -> Option<Scale> {
    let found = || report.goals.iter().flat_map(|view| [view.lower, view.upper]).flatten().map(|load| load.pps);
    let (low, high) = found().fold((f64::INFINITY, 0.0f64), |(low, high), pps| (low.min(pps), high.max(pps)));
    let air = (high - low).max(high * 0.01);
    let (from, to) = ((low - air).max(0.0), high + air);
    let outside = report.trials.iter().any(|trial| !(from / 2.0..to * 2.0).contains(&trial.load_pps));
    (high > 0.0 && outside).then_some(Scale::Linear(from, to))
}

/// Everything within one panel: bands, then trials.
fn plot(canvas: &mut Canvas, panel: &Panel, report: &SearchReport, max_loss: f64) {
    panel.axis_x(canvas, &panel.xs.ticks(10.0), "time since start, s", tick);
    for (goal, color) in report.plan.goals.iter().zip(BANDS.iter().cycle()) {
        band(canvas, panel, report, &goal.name, color);
    }
    let (low, high) = panel.ys.ends();
    for (n, trial) in report.trials.iter().enumerate().filter(|(_, trial)| (low..=high).contains(&trial.load_pps)) {
        one(canvas, panel, report, n, trial, max_loss);
    }
}

fn one(canvas: &mut Canvas, panel: &Panel, report: &SearchReport, n: usize, trial: &LoadTrial, max_loss: f64) {
    let look = Class::of(trial, max_loss).style();
    let (from, to) = (trial.ended_at_ms.saturating_sub(trial.duration_ms), trial.ended_at_ms);
    let (x1, x2, y) = (panel.x(float(from) / 1e3), panel.x(float(to) / 1e3), panel.y(trial.load_pps));
    canvas.line([x1, y, x2, y], look.stroke(2.0));
    let loss = match (&trial.seen.invalid, trial.seen.loss_ratio()) {
        (Some(why), _) => format!("invalid: {why}"),
        (None, Some(loss)) => format!("loss {}", ratio(loss)),
        (None, None) => "no load".to_owned(),
    };
    let bits = bps(report.unit.load(trial.load_pps).payload_bps);
    let hint = format!("trial {}: {} ({bits}), {loss}", n + 1, pps(trial.load_pps));
    canvas.marker(look.marker, ((x1 + x2) / 2.0, y), 4.5, look.color, &hint);
}

/// One goal's bounds over time as a band.
fn band(canvas: &mut Canvas, panel: &Panel, report: &SearchReport, name: &str, color: &'static str) {
    let (low, high) = panel.ys.ends();
    let find = |bounds: &[GoalBounds]| bounds.iter().find(|it| it.goal == name).cloned();
    let steps: Vec<(f64, GoalBounds)> =
        report.history.iter().filter_map(|at| Some((float(at.at_ms) / 1e3, find(&at.bounds)?))).collect();
    let edge = |of: fn(&GoalBounds) -> Option<f64>, missing: f64| {
        let mut points: Vec<(f64, f64)> = Vec::new();
        for (at, bounds) in &steps {
            let (x, y) = (panel.x(*at), panel.y(of(bounds).unwrap_or(missing).clamp(low, high)));
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
}

/// The result of each goal beside the panel; labels that would overlap are moved apart.
fn labels(canvas: &mut Canvas, panel: &Panel, report: &SearchReport) {
    let anchor = |view: &GoalView| match view.lower.or(view.upper) {
        Some(load) => panel.y(load.pps),
        None => panel.bottom(),
    };
    let mut rows: Vec<(f64, &GoalView, &'static str)> =
        report.goals.iter().zip(BANDS.iter().cycle()).map(|(view, color)| (anchor(view), view, *color)).collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let anchors: Vec<f64> = rows.iter().map(|(anchor, ..)| *anchor).collect();
    let places = spread_out(&anchors, LABEL, (panel.top + 8.0, panel.bottom() - 30.0));
    let x = panel.right() + 18.0;
    let (font, room) = (Font::LABEL, RIGHT - 26.0);
    let load = |of: Option<LoadView>| {
        or_dash(of.map(|it| format!("{}, {}", precise(it.pps, "pps", 4), precise(it.payload_bps, "bit/s", 4))))
    };
    for ((anchor, view, color), y) in rows.into_iter().zip(places) {
        canvas.line([panel.right() + 2.0, anchor, x - 4.0, y - 4.0], Stroke::new(color, 1.0));
        canvas.text((x, y), &font.fit(&clean(&view.goal.name), room), font.bold().color(color));
        canvas.text((x, y + 15.0), &font.fit(&format!("fails at {}", load(view.upper)), room), Font::SMALL);
        canvas.text((x, y + 30.0), &font.fit(&format!("passes at {}", load(view.lower)), room), Font::SMALL);
    }
}
