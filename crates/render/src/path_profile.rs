//! The path profile as a picture: what was offered against what arrived, with the capacity and its interval, and below it the
//! queue that each step made.

use crate::figures::{ratio, tick};
use crate::svg::{Canvas, Entry, Font, Look, Marker, Panel, Scale, legend, palette};
use crate::text::path_profile::sentences;
use crate::words::{clean, range};
use narrows_model::Report;
use narrows_model::run::report::PathProfileView;
use narrows_model::words::show::nominal;
use narrows_model::words::units::bps;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 100.0;
const TOP: f64 = 130.0;
const HIGH: f64 = 320.0;
const QUEUE_TOP: f64 = TOP + HIGH + 96.0;
const QUEUE_HIGH: f64 = 140.0;
/// Steps that span more than this factor get a logarithmic scale.
const WIDE: f64 = 12.0;

const CAPACITY: Look = Look { color: palette::GREEN, marker: Marker::Circle, dash: "7 4" };
const ALL: Look = Look { color: palette::AXIS, marker: Marker::Circle, dash: "2 4" };

/// The picture of a report's path profile; `None` where it has none.
#[must_use]
pub fn picture(report: &Report) -> Option<String> {
    let profile = report.accounts.path_profile.as_ref()?;
    let title = format!("Path profile of {}, {}", clean(&report.run.target.asked), report.verdict.direction);
    let subtitle = sentences(profile).first().map(|it| Font::SUBTITLE.fit(&clean(it), WIDTH - 48.0));
    let mut canvas = Canvas::titled(WIDTH, QUEUE_TOP + QUEUE_HIGH + 62.0, &title, &subtitle.unwrap_or_default());
    let (delivered, queue) = (Look::nth(0), Look::nth(1));
    let mut entries = vec![Entry::line("delivered", delivered), Entry::plain("all that was offered", ALL)];
    if let Some(capacity) = profile.capacity_bps {
        let interval = profile.capacity_interval_bps.map(|it| format!(" ({})", range(it))).unwrap_or_default();
        entries.push(Entry::plain(format!("capacity {}{interval}", bps(capacity)), CAPACITY));
    }
    entries.push(Entry::line("queueing delay", queue));
    legend(&mut canvas, (LEFT, 84.0), WIDTH - 20.0, &entries);
    let Some(scale) = scale(profile) else {
        canvas.text((LEFT, TOP + 20.0), "No step was made.", Font::LABEL);
        return Some(canvas.finish());
    };
    let panel = |top, high, ys| Panel { left: LEFT, top, wide: WIDTH - LEFT - 40.0, high, xs: scale, ys };
    rates(&mut canvas, &panel(TOP, HIGH, scale), profile, delivered);
    let delays = profile.steps.iter().map(|step| step.queue_us / 1e3);
    let below = panel(QUEUE_TOP, QUEUE_HIGH, Scale::from_zero(delays));
    below.grid_y(&mut canvas, "Queueing delay at the end of the step, ms", tick);
    axis(&mut canvas, &below, "offered rate");
    let points: Vec<_> = profile.steps.iter().map(|step| (step.offered_bps, step.queue_us.max(0.0) / 1e3)).collect();
    below.series(&mut canvas, &points, queue, |(offered, ms)| format!("at {}: {ms:.1} ms", bps(offered)));
    Some(canvas.finish())
}

/// The same for both rates; `None` without a step.
fn scale(profile: &PathProfileView) -> Option<Scale> {
    let steps = || profile.steps.iter().flat_map(|step| [step.offered_bps, step.delivered_bps]);
    let values = || steps().chain(profile.capacity_interval_bps.into_iter().flatten());
    let (low, high) = Scale::factors(steps())?.ends();
    if high / low > WIDE { Scale::factors(values()) } else { Some(Scale::from_zero(values())) }
}

fn axis(canvas: &mut Canvas, panel: &Panel, title: &str) {
    panel.axis_x(canvas, &panel.xs.ticks(8.0), title, |value| nominal(&bps(value)));
}

fn rates(canvas: &mut Canvas, panel: &Panel, profile: &PathProfileView, look: Look) {
    panel.grid_y(canvas, "Delivered rate", |value| nominal(&bps(value)));
    axis(canvas, panel, "offered rate, IP packets");
    let (left, right) = (panel.left, panel.right());
    if let Some([low, high]) = profile.capacity_interval_bps {
        let (low, high) = (panel.y(low), panel.y(high));
        canvas.polygon(&[(left, low), (right, low), (right, high), (left, high)], CAPACITY.color, 0.18);
    }
    if let Some(capacity) = profile.capacity_bps {
        let y = panel.y(capacity);
        canvas.line([left, y, right, y], CAPACITY.stroke(1.6));
    }
    let (low, high) = panel.xs.ends();
    panel.plain(canvas, &[(low, low), (high, high)], ALL);
    let points: Vec<_> = profile.steps.iter().map(|step| (step.offered_bps, step.delivered_bps)).collect();
    let hint = |(offered, got): (f64, f64)| {
        let step = profile.steps.iter().find(|step| (step.offered_bps, step.delivered_bps) == (offered, got));
        let lost = step.map(|step| format!(", {} lost", ratio(step.loss))).unwrap_or_default();
        format!("at {}: {} delivered{lost}", bps(offered), bps(got))
    };
    panel.series(canvas, &points, look, hint);
}
