//! A diagnosis as a picture: the verdict with its figures and the fix, the limits of the path, where the sender's time went, and the
//! path profile (offered against delivered rate, and the queue that each step made).

use crate::diagnosis::budget::parts;
use crate::diagnosis::kept::{first_cause, found_at_first, is_kept, remains};
use crate::diagnosis::path_profile::sentences;
use crate::diagnosis::places::on;
use crate::diagnosis::roofline::{binds, farthest};
use crate::diagnosis::verdict::{tone, word};
use crate::figures::{ratio, tick};
use crate::style::Tone;
use crate::svg::{Anchor, Canvas, Entry, Font, Look, Marker, Panel, Scale, Stroke, legend, palette};
use crate::words::{clean, predicted, range, share, times};
use narrows_model::run::report::{PathProfileView, ProofView};
use narrows_model::words::show::nominal;
use narrows_model::words::units::{bps, percent};
use narrows_model::{Ceiling, Report, TimeBudget};

const WIDTH: f64 = 960.0;
const MARGIN: f64 = 24.0;
const TITLE_HIGH: f64 = 72.0;
const LEFT: f64 = 100.0;
/// Of the three figures, of each command, of each limit and of the time budget.
const FIGURES_HIGH: f64 = 76.0;
const COMMAND_HIGH: f64 = 20.0;
const LIMIT_HIGH: f64 = 22.0;
const TIME_HIGH: f64 = 88.0;
const HEADING_HIGH: f64 = 34.0;
/// Of the path profile: its legend, the upper panel, and all of it.
const LEGEND_HIGH: f64 = 46.0;
const HIGH: f64 = 220.0;
const QUEUE_HIGH: f64 = 120.0;
const PROFILE_HIGH: f64 = LEGEND_HIGH + HIGH + 96.0 + QUEUE_HIGH + 50.0;
/// Limits shown, lowest first.
const SHOWN: usize = 6;
const COMMANDS: usize = 3;
/// Steps that span more than this factor get a logarithmic scale.
const WIDE: f64 = 12.0;

const CAPACITY: Look = Look { color: palette::GREEN, marker: Marker::Circle, dash: "7 4" };
const ALL: Look = Look { color: palette::AXIS, marker: Marker::Circle, dash: "2 4" };
const HEADING: Font = Font::LABEL.bold();

/// The picture of a diagnosis, as SVG.
pub fn picture(report: &Report) -> String {
    drawn(report, TITLE_HIGH)
}

/// The same for a page that says the verdict above it.
pub(crate) fn on_page(report: &Report) -> String {
    drawn(report, MARGIN)
}

/// `from`: where the figures begin; below [`TITLE_HIGH`] there is no title.
fn drawn(report: &Report, from: f64) -> String {
    let verdict = &report.verdict;
    let word = word(report).to_uppercase();
    let color = match tone(report) {
        Tone::Good => palette::GREEN,
        Tone::Bad => palette::VERMILION,
        _ => palette::ORANGE,
    };
    let cause = verdict.causes.first();
    // A confidence is that of the verdict before the fix.
    let (of, confidence) = match cause {
        _ if is_kept(report) => (first_cause(report), None),
        it => (it.map(|it| (it.id.as_str(), it.at)), it.map(|it| it.confidence)),
    };
    let of = of.map(|(id, at)| format!(": {} {}", clean(id), on(at, report)));
    let confidence = confidence.map(|it| format!(", confidence {}", percent(it)));
    let title = [Some(word.clone()), of, confidence].into_iter().flatten().collect::<String>();
    // What remains comes first: the rest may be cut.
    let now = remains(report).filter(|_| is_kept(report)).map_or_else(String::new, |now| format!("{now}; "));
    let subtitle = Font::SUBTITLE.fit(&clean(&(now + &found_at_first(report))), WIDTH - 2.0 * MARGIN);
    let commands = cause.filter(|_| !is_kept(report)).map(|cause| cause.fix.commands.as_slice()).unwrap_or_default();
    let limits = &report.accounts.roofline[..SHOWN.min(report.accounts.roofline.len())];
    let profile = report.accounts.path_profile.as_ref();
    let section = |rows: usize, high: f64| if rows == 0 { 0.0 } else { HEADING_HIGH + rows as f64 * high };
    let high = from
        + FIGURES_HIGH
        + section(commands.len().min(COMMANDS), COMMAND_HIGH)
        + section(limits.len(), LIMIT_HIGH)
        + report.accounts.time_budget.map_or(0.0, |_| TIME_HIGH)
        + profile.map_or(0.0, |_| HEADING_HIGH + PROFILE_HIGH)
        + MARGIN;
    let sheet = if from < TITLE_HIGH { Canvas::new } else { Canvas::titled };
    let mut canvas = sheet(WIDTH, high, &title, &subtitle);
    canvas.rect([0.0, 0.0, 8.0, high], color, &word);
    let mut y = from;
    figures(&mut canvas, report, y);
    y += FIGURES_HIGH;
    if !commands.is_empty() {
        heading(&mut canvas, y, "What to do");
        for (row, command) in commands.iter().take(COMMANDS).enumerate() {
            let text = format!("{}: {}", on(command.at, report), clean(&command.run));
            let at = (MARGIN + 8.0, y + HEADING_HIGH + row as f64 * COMMAND_HIGH);
            canvas.text(at, &Font::LABEL.fit(&text, WIDTH - 2.0 * MARGIN), Font::LABEL);
        }
        y += section(commands.len().min(COMMANDS), COMMAND_HIGH);
    }
    if !limits.is_empty() {
        heading(&mut canvas, y, "Limits of the path, lowest first (the line is what you got)");
        ceilings(&mut canvas, report, limits, color, y + HEADING_HIGH);
        y += section(limits.len(), LIMIT_HIGH);
    }
    if let Some(budget) = &report.accounts.time_budget {
        heading(&mut canvas, y, "Where the sender's time went");
        time(&mut canvas, budget, y + HEADING_HIGH - 8.0);
        y += TIME_HIGH;
    }
    if let Some(profile) = profile {
        heading(&mut canvas, y, &sentences(profile).first().map(|it| clean(it)).unwrap_or_default());
        profiled(&mut canvas, profile, y + HEADING_HIGH);
    }
    canvas.finish()
}

fn heading(canvas: &mut Canvas, y: f64, text: &str) {
    canvas.text((MARGIN, y + 16.0), &HEADING.fit(text, WIDTH - 2.0 * MARGIN), HEADING);
}

/// What was got, what is predicted, and what was proven, each as a large figure with a line below it.
fn figures(canvas: &mut Canvas, report: &Report, y: f64) {
    let verdict = &report.verdict;
    let cause = verdict.causes.first();
    let mut all = vec![("you got", bps(verdict.goodput_bps), format!("direction {}", verdict.direction))];
    if let Some((goodput, cause)) = cause.and_then(|cause| Some((cause.predicted_bps?, cause))) {
        let then = cause.then.as_ref().map(|then| format!("; then {}", clean(then))).unwrap_or_default();
        all.push(("you could get", bps(goodput), predicted(cause.predicted_interval_bps) + &then));
    }
    if let Some((proof, after)) = report.proof.as_ref().and_then(|it| Some((it, ProofView::mean(&it.after_bps)?))) {
        // The figure is that of all fixes that helped; the commands below are of the first.
        let fixes = report.rounds.iter().filter(|it| it.is_proven()).count();
        let word = match (proof.helped, fixes) {
            (true, 2..) => "proven with all fixes (see the report)",
            (true, _) => "proven with the fix",
            (false, _) => "with the fix, no help",
        };
        all.push((word, bps(after), times(proof)));
    }
    let wide = (WIDTH - 2.0 * MARGIN) / 3.0;
    for (column, (label, value, below)) in all.iter().enumerate() {
        let x = MARGIN + column as f64 * wide;
        canvas.text((x, y + 14.0), label, Font::SMALL);
        canvas.text((x, y + 40.0), value, Font { size: 24.0, ..Font::TITLE });
        canvas.text((x, y + 58.0), &Font::SMALL.fit(below, wide - 12.0), Font::SMALL);
    }
}

/// A bar for each limit, the binding one in its colour, with the observed goodput as a line through all.
fn ceilings(canvas: &mut Canvas, report: &Report, limits: &[Ceiling], bound: &'static str, y: f64) {
    let got = report.verdict.goodput_bps;
    let most = farthest(got, limits);
    let values = || limits.iter().map(|limit| limit.bps.min(most)).chain([got]);
    let Some((low, high)) = Scale::factors(values()).map(Scale::ends) else { return };
    // The shortest bar of a logarithmic scale still is a bar.
    let scale = if high / low > WIDE { Scale::Logarithmic(low / 3.0, high) } else { Scale::from_zero(values()) };
    let (left, right) = (MARGIN + 250.0, WIDTH - MARGIN - 90.0);
    let x = |value: f64| left + (right - left) * scale.part(value).clamp(0.0, 1.0);
    for (row, limit) in limits.iter().enumerate() {
        let top = y + row as f64 * LIMIT_HIGH;
        let (font, color) = if binds(limit, report) { (HEADING, bound) } else { (Font::LABEL, palette::SKY) };
        let name = format!("{}, {}", clean(&limit.id), limit.at.word());
        canvas.text((left - 10.0, top + 2.0), &font.fit(&name, 236.0), font.anchored(Anchor::End));
        canvas.rect([left, top - 10.0, x(limit.bps) - left, 14.0], color, &clean(&limit.how));
        if limit.bps > most {
            canvas.text((right - 4.0, top + 2.0), "»", Font::LABEL.bold().color(palette::PAPER).anchored(Anchor::End));
        }
        let value = if limit.at_least { format!("≥ {}", bps(limit.bps)) } else { bps(limit.bps) };
        canvas.text((WIDTH - MARGIN, top + 2.0), &value, font.anchored(Anchor::End));
    }
    let bottom = y + limits.len() as f64 * LIMIT_HIGH - 14.0;
    canvas.line([x(got), y - 14.0, x(got), bottom], Stroke::new(palette::INK, 2.0));
}

/// The parts of the sender's time as one bar.
fn time(canvas: &mut Canvas, budget: &TimeBudget, y: f64) {
    let wide = WIDTH - 2.0 * MARGIN;
    let (mut x, mut entries) = (MARGIN, Vec::new());
    for (n, (_, name, part)) in parts(budget).into_iter().enumerate().filter(|(_, (.., part))| *part >= 0.0005) {
        let look = Look::nth(n);
        canvas.rect([x, y, wide * part.min(1.0), 16.0], look.color, &format!("{} {name}", share(part)));
        entries.push(Entry::plain(format!("{} {name}", share(part)), look));
        x += wide * part.min(1.0);
    }
    legend(canvas, (MARGIN, y + 38.0), WIDTH - MARGIN, &entries);
}

fn profiled(canvas: &mut Canvas, profile: &PathProfileView, y: f64) {
    let (delivered, queue) = (Look::nth(0), Look::nth(1));
    let mut entries = vec![Entry::line("delivered", delivered), Entry::plain("all that was offered", ALL)];
    if let Some(capacity) = profile.capacity_bps {
        let interval = profile.capacity_interval_bps.map(|it| format!(" ({})", range(it))).unwrap_or_default();
        entries.push(Entry::plain(format!("capacity {}{interval}", bps(capacity)), CAPACITY));
    }
    entries.push(Entry::line("queueing delay", queue));
    legend(canvas, (LEFT, y), WIDTH - 20.0, &entries);
    let top = y + LEGEND_HIGH;
    let Some(scale) = scale(profile) else {
        return canvas.text((LEFT, top), "No step was made.", Font::LABEL);
    };
    let panel = |top, high, ys| Panel { left: LEFT, top, wide: WIDTH - LEFT - 40.0, high, xs: scale, ys };
    rates(canvas, &panel(top, HIGH, scale), profile, delivered);
    let delays = profile.steps.iter().map(|step| step.queue_us / 1e3);
    let below = panel(top + HIGH + 96.0, QUEUE_HIGH, Scale::from_zero(delays));
    below.grid_y(canvas, "Queueing delay at the end of the step, ms", tick);
    axis(canvas, &below, "offered rate");
    let points: Vec<_> = profile.steps.iter().map(|step| (step.offered_bps, step.queue_us.max(0.0) / 1e3)).collect();
    below.series(canvas, &points, queue, |(offered, ms)| format!("at {}: {ms:.1} ms", bps(offered)));
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
