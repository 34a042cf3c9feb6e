//! Throughput over the frame size beside what the line carries (RFC 2544, section 26.1): frames a second above, bits a
//! second on the wire below.

use super::{Columns, LEFT, RIGHT, WIDTH, present, sheet, sizes, whisker};
use crate::figures::{pps, pps_short, tick};
use crate::frames::words::of_line;
use crate::svg::{Anchor, Canvas, Entry, Font, Look, Marker, Scale, Stroke, legend, palette};
use crate::words::clean;
use narrows_model::forwarding::report::{ForwardingReport, GoalOfSize, SizeView};
use narrows_model::load::frames_report::FrameRate;
use narrows_model::words::units::bps;

const HIGH: f64 = 280.0;
const TOP: f64 = 134.0;
/// Between the two panels.
const GAP: f64 = 78.0;
const LINE: Stroke = Stroke { color: palette::INK, width: 1.6, dash: "" };

/// A figure of a rate, and how it is told.
struct Half {
    title: &'static str,
    of: fn(&FrameRate) -> f64,
    short: fn(f64) -> String,
}

/// The picture; `None` where no size was searched.
#[must_use]
pub fn picture(report: &ForwardingReport) -> Option<String> {
    let sizes = sizes(report, drawn);
    if sizes.is_empty() {
        return None;
    }
    let title = format!("Throughput of {}", clean(&report.name));
    let each = if report.traffic.iter().any(|it| it.traffic.bidirectional) { ", each way" } else { "" };
    #[allow(clippy::cast_precision_loss)]
    let link = narrows_model::words::show::nominal(&bps(report.plan.link_bps as f64));
    let name = report.traffic.iter().flat_map(|it| &it.sizes).find_map(goal).map(|goal| clean(&goal.goal.name));
    let subtitle = format!("highest load that passes{each} ({}) · line rate {link}", name.unwrap_or_default());
    let mut canvas = sheet(TOP + 2.0 * HIGH + GAP + 58.0, &title, &subtitle);
    legend(&mut canvas, (LEFT, 84.0), WIDTH - 20.0, &entries(report));
    let halves = [
        Half { title: "Frames a second", of: |it| it.pps, short: pps_short },
        Half { title: "Bits a second on the wire, preamble and gap included", of: |it| it.wire_bps, short: short_bits },
    ];
    for (at, half) in halves.iter().enumerate() {
        let top = TOP + super::count(at) * (HIGH + GAP);
        let values =
            report.traffic.iter().flat_map(|it| &it.sizes).flat_map(|it| {
                [Some((half.of)(&it.line)), goal(it).and_then(|goal| goal.lower).map(|it| (half.of)(&it))]
            });
        // Room for the figures above the highest.
        let most = values.flatten().filter(|value| value.is_finite()).fold(0.0, f64::max);
        let ys = Scale::Linear(0.0, if most > 0.0 { most * 1.1 } else { 1.0 });
        let columns = Columns::new([LEFT, top, WIDTH - LEFT - RIGHT, HIGH], ys, sizes.len(), report.traffic.len());
        columns.panel.grid_y(&mut canvas, half.title, tick);
        lines(&mut canvas, report, &columns, &sizes, half);
        for (column, (size, _)) in sizes.iter().enumerate() {
            one(&mut canvas, report, &columns, column, *size, half);
        }
        let names: Vec<String> = sizes.iter().map(|(_, name)| name.clone()).collect();
        columns.axis(&mut canvas, &names, if at == 1 { "frame size with FCS, bytes" } else { "" });
    }
    Some(canvas.finish())
}

fn drawn(of: &SizeView) -> bool {
    goal(of).is_some()
}

fn goal(of: &SizeView) -> Option<&GoalOfSize> {
    of.throughput.as_ref()?.goals.first()
}

fn short_bits(value: f64) -> String {
    pps_short(value)
}

/// Marks of what is not the throughput.
const WORST: Look = Look { color: palette::ORANGE, marker: Marker::Down, dash: "" };
const ESTIMATE: Look = Look { color: palette::INK, marker: Marker::Diamond, dash: "" };

fn entries(report: &ForwardingReport) -> Vec<Entry> {
    let all = || report.traffic.iter().flat_map(|it| &it.sizes);
    let square = |at: usize| Look { marker: Marker::Square, ..Look::nth(at) };
    let mut entries: Vec<Entry> = Vec::new();
    for (at, traffic) in report.traffic.iter().enumerate() {
        entries.push(Entry::point(clean(&traffic.name), square(at)));
    }
    entries.push(Entry::plain("line rate", Look { color: LINE.color, marker: Marker::Circle, dash: LINE.dash }));
    if all().filter_map(goal).any(GoalOfSize::is_at_least) {
        entries.push(Entry::point("≥, pale: the device may carry more", Look { color: palette::AXIS, ..square(0) }));
    }
    if all().any(|it| it.worst_case.as_ref().is_some_and(|it| it.received.is_some())) {
        entries.push(Entry::point("arrives at line rate", WORST));
    }
    if all().any(|it| it.estimate.is_some()) {
        entries.push(Entry::point("mix, estimated", ESTIMATE));
    }
    entries
}

/// What the line carries from size to size.
fn lines(
    canvas: &mut Canvas,
    report: &ForwardingReport,
    columns: &Columns,
    sizes: &[(Option<u32>, String)],
    half: &Half,
) {
    let mut before: Option<(f64, f64)> = None;
    for (at, (size, _)) in sizes.iter().enumerate().filter(|(_, (size, _))| size.is_some()) {
        let here = present(report, *size, drawn);
        let (Some((_, _, view)), Some(last)) = (here.first(), here.len().checked_sub(1)) else { continue };
        let y = columns.panel.y((half.of)(&view.line));
        // From mark to mark: what stands on a mark stays readable.
        let (first, (right, wide)) = (columns.bar(at, (0, here.len())), columns.bar(at, (last, here.len())));
        if let Some((x, from)) = before {
            let stroke = Stroke { color: palette::AXIS, width: 1.2, dash: "2 3" };
            canvas.line([x, from, first.0 - 2.0, y], stroke);
        }
        before = Some((right + wide + 2.0, y));
    }
}

/// One column: the bars of each traffic with what they are held against.
fn one(canvas: &mut Canvas, report: &ForwardingReport, columns: &Columns, at: usize, size: Option<u32>, half: &Half) {
    let here = present(report, size, drawn);
    for (place, (look, traffic, view)) in here.iter().enumerate() {
        bar(canvas, columns, columns.bar(at, (place, here.len())), Look::nth(*look).color, &traffic.name, view, half);
    }
    let Some((_, _, view)) = here.first() else { return };
    // The line's own figure stands on it where no bar's does.
    let panel = &columns.panel;
    let highest = here.iter().filter_map(|it| goal(it.2)?.lower).map(|it| panel.y((half.of)(&it)));
    let line = panel.y((half.of)(&view.line));
    if highest.fold(panel.bottom(), f64::min) - line >= 36.0 {
        let label = (half.short)((half.of)(&view.line));
        canvas.text((columns.middle(at), line - 5.0), &label, Font::SMALL.anchored(Anchor::Middle));
    }
}

/// The throughput of one traffic, and its marks.
fn bar(
    canvas: &mut Canvas,
    columns: &Columns,
    (x, wide): (f64, f64),
    color: &'static str,
    name: &str,
    view: &SizeView,
    half: &Half,
) {
    let (panel, middle) = (&columns.panel, x + wide / 2.0);
    let y = |rate: &FrameRate| panel.y((half.of)(rate));
    let line = y(&view.line);
    let worst = view.worst_case.as_ref().and_then(|it| it.received);
    let estimate = view.estimate.as_ref().map(|it| it.rate);
    let Some(goal) = goal(view) else { return };
    let lower = goal.lower.map(|rate| (rate, y(&rate)));
    if let Some((rate, top)) = lower {
        let corners = [(x, panel.bottom()), (x, top), (x + wide, top), (x + wide, panel.bottom())];
        if goal.is_at_least() {
            canvas.polygon(&corners, color, 0.3);
            canvas.polyline(&corners, Stroke { color, width: 1.2, dash: "4 3" });
        } else {
            let hint = format!("{name}, {}: {}", super::super::words::size(view.size), words(goal, &rate));
            canvas.rect([x, top, wide, panel.bottom() - top], color, &hint);
        }
        if let Some(upper) = goal.upper.map(|it| y(&it)).filter(|upper| top - upper > 2.0) {
            whisker(canvas, middle, (upper, top), 4.0, Stroke::new(palette::INK, 1.0));
        }
    }
    canvas.line([x - 2.0, line, x + wide + 2.0, line], LINE);
    if let Some(rate) = worst {
        let hint = format!("{name}: {} arrive at line rate", pps(rate.pps));
        canvas.marker(WORST.marker, (middle, y(&rate)), 5.0, WORST.color, &hint);
    }
    if let Some(rate) = estimate {
        let hint = format!("{name}: an estimate, not measured: {}", pps(rate.pps));
        canvas.marker(ESTIMATE.marker, (middle, y(&rate)), 5.0, ESTIMATE.color, &hint);
    }
    let (label, top) = match lower {
        Some((rate, top)) => {
            let more = if goal.is_at_least() { "≥ " } else { "" };
            (format!("{more}{}", (half.short)((half.of)(&rate))), top)
        }
        None => ("none".to_owned(), panel.bottom()),
    };
    if Font::SMALL.width(&label) < wide + 14.0 || columns.bars == 1 {
        // Above the bar, and above each mark that would touch it.
        let marks = [worst, estimate].into_iter().flatten().map(|rate| (y(&rate), 7.0)).chain([(line, 0.0)]);
        let base = marks
            .fold(top, |base, (mark, air)| if (base - mark - air).abs() < 20.0 { base.min(mark - air) } else { base });
        canvas.text((middle, base - 5.0), &label, Font::SMALL.color(palette::INK).anchored(Anchor::Middle));
    }
}

fn words(goal: &GoalOfSize, lower: &FrameRate) -> String {
    let line = lower.of_line.map(|part| format!(", {} of line rate", of_line(part))).unwrap_or_default();
    format!("{}, {}{line} ({})", pps(lower.pps), bps(lower.wire_bps), goal.word)
}
