//! Throughput over the frame size (RFC 2544, section 26.1): tables, and a picture beside what the line carries, frames a second above,
//! bits a second on the wire below.

use super::super::drawing::{Columns, LEFT, RIGHT, WIDTH, count, present, sheet, sizes, whisker};
use super::super::section::{Mark, Section};
use super::super::sized::{DIGITS, Figure, bits, each, frames, of_sizes, row, share, sized};
use super::super::words::{size, time, times};
use crate::data::procedures::throughput::{ConfirmationView, GoalOfSize};
use crate::data::report::{ForwardingReport, SizeView};
use crate::data::{Test, Tests};
use narrows_model::load::frames_report::FrameRate;
use narrows_model::run::search::{Goal, Outcome};
use narrows_model::run::sweep::Spread;
use narrows_model::words::units::{bps, percent};
use narrows_render::figures::{grouped, of_line, pps, pps_short, precise, ratio, tick};
use narrows_render::style::Tone;
use narrows_render::svg::{Anchor, Canvas, Entry, Font, Look, Marker, Scale, Stroke, legend, palette};
use narrows_render::table::{Cell, Column, Table};
use narrows_render::words::{clean, rounded};

pub(super) const SECTION: Section = Section {
    picture: Some(picture),
    captions: true,
    asked: &[(Test::Throughput, asked)],
    ..Section::of("throughput", "Throughput", |it| vec![throughput(it), confirmation(it)])
};

fn asked(tests: &Tests) -> Option<String> {
    let it = tests.throughput.as_ref()?;
    let goals: Vec<String> = it.goals.iter().map(goal_words).collect();
    Some(format!("{}; confirmed {}", goals.join("; "), times(it.confirm)))
}

fn goal_words(of: &Goal) -> String {
    let loss = if of.loss_ratio > 0.0 { format!("loss up to {}", ratio(of.loss_ratio)) } else { "no loss".to_owned() };
    format!("{}: {loss}, trials of {}, width {}", of.name, time(of.final_trial_ms), percent(of.width))
}

/// Throughput per traffic, size and goal, with the lines that it is held against.
fn throughput(report: &ForwardingReport) -> Table {
    let goals = each(report)
        .filter_map(|it| it.1.results.throughput.search.as_ref())
        .map(|it| it.goals.len())
        .max()
        .unwrap_or(0);
    let mut columns = Vec::new();
    columns.extend((goals > 1).then(|| Column::words("goal")));
    columns.extend([
        Column::figures("passes"),
        Column::figures("of line"),
        Column::figures("on the wire"),
        Column::figures("fails").spare(3),
        Column::figures("line rate").spare(2),
        Column::words("outcome"),
        Column::figures("trials").spare(4),
    ]);
    let remark = "highest load within the goal; sizes with FCS";
    let mut table = sized(report, "Throughput", remark, &columns);
    for (traffic, view) in each(report) {
        let Some(search) = &view.results.throughput.search else { continue };
        for (at, goal) in search.goals.iter().enumerate() {
            let mut cells = Vec::new();
            cells.extend((goals > 1).then(|| Cell::new(&goal.goal.name)));
            cells.extend([
                match goal.unproven {
                    Some(it) => Cell::new(format!("≥ {}", precise(it.pps, "pps", DIGITS))).tone(Tone::Mark),
                    None => frames(goal.lower).tone(Tone::Strong),
                },
                share(goal.lower.or(goal.unproven)),
                bits(goal.lower.or(goal.unproven)),
                frames(goal.upper),
                frames(Some(view.line)),
                Cell::new(&goal.word).tone(tone(goal)),
                if at == 0 { Cell::new(grouped(search.trials)) } else { Cell::new("") },
            ]);
            let first = if at == 0 { Cell::new(size(view.size)) } else { Cell::new("") };
            let row = row(report, &table, traffic, first, cells).note(goal.why.clone());
            let invalid = (at + 1 == search.goals.len() && search.invalid > 0).then(|| {
                let are = if search.invalid == 1 { "is" } else { "are" };
                format!("{} of its {} trials {are} invalid", grouped(search.invalid), grouped(search.trials))
            });
            table.rows.push(row.note(invalid));
        }
        if let Some(it) = &view.results.throughput.estimate {
            let mut cells = Vec::new();
            cells.extend((goals > 1).then(|| Cell::new("")));
            let rate = Some(it.rate);
            cells.extend([frames(rate), share(rate), bits(rate), Cell::new("–"), frames(Some(view.line))]);
            cells.push(Cell::new("estimate").tone(Tone::Mark));
            let row = row(report, &table, traffic, Cell::new("mix"), cells);
            table.rows.push(row.note(Some(format!("estimate, not measured: {}", it.method))));
        }
    }
    table
}

fn tone(goal: &GoalOfSize) -> Tone {
    match goal.outcome {
        Outcome::Found => Tone::Good,
        Outcome::MaxLoadPasses if !goal.is_at_least() => Tone::Good,
        Outcome::MinLoadFails => Tone::Bad,
        Outcome::MaxLoadPasses | Outcome::Unfinished | Outcome::TesterLimited(_) => Tone::Mark,
    }
}

/// `0.02 %`: how far the largest and the smallest are apart, of the median.
fn apart(of: &Spread) -> String {
    if of.median > 0.0 { ratio((of.max - of.min) / of.median) } else { "–".to_owned() }
}

/// Repetitions at the throughput.
fn confirmation(report: &ForwardingReport) -> Table {
    let got = |it: &ConfirmationView, of: fn(&Spread) -> f64| {
        Cell::maybe(it.received_pps.as_ref().map(|it| precise(of(it), "pps", DIGITS)))
    };
    let sound = |it: &ConfirmationView| it.repetitions - it.invalid;
    let lost = |of: &Spread| {
        if of.min == of.max { grouped(rounded(of.max.max(0.0))) } else { format!("{}–{}", of.min, of.max) }
    };
    let figures: [Figure<'_, ConfirmationView>; 8] = [
        (Column::figures("load").spare(2), &|it| frames(it.load)),
        (Column::figures("passed"), &|it| {
            Cell::new(format!("{} of {}", it.passed, sound(it).max(it.planned))).tone_if(!it.holds, Tone::Bad)
        }),
        (Column::figures("received min"), &|it| got(it, |it| it.min)),
        (Column::figures("median"), &|it| got(it, |it| it.median).tone(Tone::Strong)),
        (Column::figures("max"), &|it| got(it, |it| it.max)),
        (Column::figures("spread"), &|it| Cell::maybe(it.received_pps.as_ref().map(apart))),
        (Column::figures("lost").spare(1), &|it| Cell::maybe(it.lost.as_ref().map(lost))),
        (Column::words("confirmed"), &|it| match (it.all_passed, it.passed) {
            (true, _) => Cell::new("yes").tone(Tone::Good),
            (false, 0) => Cell::new("no").tone(Tone::Bad),
            _ if it.holds => Cell::new("as the goal allows").tone(Tone::Good),
            (false, passed) if passed == sound(it) && it.invalid > 0 => {
                Cell::new("those that are valid").tone(Tone::Mark)
            }
            (false, passed) if passed == sound(it) => Cell::new("cut short").tone(Tone::Mark),
            (false, _) => Cell::new("not always").tone(Tone::Bad),
        }),
    ];
    let remark = "spread: (max − min) ÷ median of what was received";
    let note = |it: &ConfirmationView| {
        let are = if it.invalid == 1 { "is" } else { "are" };
        (it.invalid > 0).then(|| format!("{} of the {} {are} invalid and excluded", it.invalid, it.repetitions))
    };
    let words = ["Repetitions at the throughput", remark];
    of_sizes(report, words, |it| it.results.throughput.confirmation.as_ref(), &figures, note)
}

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
fn picture(report: &ForwardingReport, all: &[Section]) -> Option<String> {
    let sizes = sizes(report, drawn);
    if sizes.is_empty() {
        return None;
    }
    let title = format!("Throughput of {}", clean(&report.name));
    let each = if report.traffic.iter().any(|it| it.traffic.bidirectional) { ", each way" } else { "" };
    let link = narrows_model::words::show::nominal(&bps(report.plan.link_bps as f64));
    let name = report.traffic.iter().flat_map(|it| &it.sizes).find_map(goal).map(|goal| clean(&goal.goal.name));
    let subtitle = format!("highest load that passes{each} ({}) · line rate {link}", name.unwrap_or_default());
    let mut canvas = sheet(TOP + 2.0 * HIGH + GAP + 58.0, &title, &subtitle);
    legend(&mut canvas, (LEFT, 84.0), WIDTH - 20.0, &entries(report, all));
    let halves = [
        Half { title: "Frames per second", of: |it| it.pps, short: pps_short },
        Half { title: "Bits per second on the wire, with preamble and gap", of: |it| it.wire_bps, short: short_bits },
    ];
    for (at, half) in halves.iter().enumerate() {
        let top = TOP + count(at) * (HIGH + GAP);
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
            one(&mut canvas, report, all, &columns, (column, *size), half);
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
    of.results.throughput.search.as_ref()?.goals.first()
}

fn short_bits(value: f64) -> String {
    pps_short(value)
}

/// The mark of an estimate.
const ESTIMATE: Look = Look { color: palette::INK, marker: Marker::Diamond, dash: "" };

fn entries(report: &ForwardingReport, sections: &[Section]) -> Vec<Entry> {
    let all = || report.traffic.iter().flat_map(|it| &it.sizes);
    let square = |at: usize| Look { marker: Marker::Square, ..Look::nth(at) };
    let mut entries: Vec<Entry> = Vec::new();
    for (at, traffic) in report.traffic.iter().enumerate() {
        entries.push(Entry::point(clean(&traffic.name), square(at)));
    }
    entries.push(Entry::plain("line rate", Look { color: LINE.color, marker: Marker::Circle, dash: LINE.dash }));
    if all().filter_map(goal).any(GoalOfSize::is_at_least) {
        entries.push(Entry::point("≥, pale: lower bound", Look { color: palette::AXIS, ..square(0) }));
    }
    for mark in sections.iter().filter_map(|section| section.mark.as_ref()) {
        if all().any(|it| (mark.rate)(&it.results).is_some()) {
            entries.push(Entry::point(mark.legend, mark.look));
        }
    }
    if all().any(|it| it.results.throughput.estimate.is_some()) {
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
fn one(
    canvas: &mut Canvas,
    report: &ForwardingReport,
    sections: &[Section],
    columns: &Columns,
    (at, size): (usize, Option<u32>),
    half: &Half,
) {
    let here = present(report, size, drawn);
    for (place, (look, traffic, view)) in here.iter().enumerate() {
        let (place, color) = (columns.bar(at, (place, here.len())), Look::nth(*look).color);
        bar(canvas, columns, place, (color, &traffic.name), view, sections, half);
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
    (color, name): (&'static str, &str),
    view: &SizeView,
    sections: &[Section],
    half: &Half,
) {
    let (panel, middle) = (&columns.panel, x + wide / 2.0);
    let y = |rate: &FrameRate| panel.y((half.of)(rate));
    let line = y(&view.line);
    let marks: Vec<(FrameRate, &Mark)> = sections
        .iter()
        .filter_map(|section| section.mark.as_ref())
        .filter_map(|mark| Some(((mark.rate)(&view.results)?, mark)))
        .collect();
    let estimate = view.results.throughput.estimate.as_ref().map(|it| it.rate);
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
    for (rate, mark) in &marks {
        let hint = format!("{name}: {} {}", pps(rate.pps), mark.hint);
        canvas.marker(mark.look.marker, (middle, y(rate)), 5.0, mark.look.color, &hint);
    }
    if let Some(rate) = estimate {
        let hint = format!("{name}: estimate, not measured: {}", pps(rate.pps));
        canvas.marker(ESTIMATE.marker, (middle, y(&rate)), 5.0, ESTIMATE.color, &hint);
    }
    let (label, top) = match lower {
        Some((rate, top)) => {
            let more = if goal.is_at_least() { "≥ " } else { "" };
            (format!("{more}{}", (half.short)((half.of)(&rate))), top)
        }
        None => match goal.unproven {
            Some(rate) => (format!("≥ {}?", (half.short)((half.of)(&rate))), panel.bottom()),
            None => ("none".to_owned(), panel.bottom()),
        },
    };
    if Font::SMALL.width(&label) < wide + 14.0 || columns.bars == 1 {
        // Above the bar, and above each mark that would touch it.
        let marks =
            marks.iter().map(|(rate, _)| *rate).chain(estimate).map(|rate| (y(&rate), 7.0)).chain([(line, 0.0)]);
        let base = marks
            .fold(top, |base, (mark, air)| if (base - mark - air).abs() < 20.0 { base.min(mark - air) } else { base });
        canvas.text((middle, base - 5.0), &label, Font::SMALL.color(palette::INK).anchored(Anchor::Middle));
    }
}

fn words(goal: &GoalOfSize, lower: &FrameRate) -> String {
    let line = lower.of_line.map(|part| format!(", {} of line rate", of_line(part))).unwrap_or_default();
    format!("{}, {}{line} ({})", pps(lower.pps), bps(lower.wire_bps), goal.word)
}
