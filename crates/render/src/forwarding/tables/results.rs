//! The results per traffic and size.

use super::super::words::{self, size};
use crate::figures::{grouped, nanos, pps, precise, ratio};
use crate::frames::words::of_line;
use crate::style::Tone;
use crate::table::{Cell, Column, Row, Table};
use crate::udp::text::rounded;
use narrows_model::forwarding_report::{ForwardingReport, GoalOfSize, SizeView, TrafficView};
use narrows_model::frames_report::FrameRate;
use narrows_model::search::Outcome;
use narrows_model::sweep::Spread;
use narrows_model::units::bps;

/// Significant digits of a bound: bounds come close to one another.
const DIGITS: usize = 5;

/// A table whose first columns name traffic and size.
fn sized(report: &ForwardingReport, title: &str, remark: &str, columns: &[Column]) -> Table {
    let mut all = Vec::new();
    all.extend((report.traffic.len() > 1).then(|| Column::words("frames")));
    all.push(Column::figures("size"));
    all.extend_from_slice(columns);
    Table::new(title, remark, &all)
}

/// A row of such a table; the traffic is named in its first row only.
fn row(report: &ForwardingReport, table: &Table, traffic: &TrafficView, first: Cell, cells: Vec<Cell>) -> Row {
    let mut all = Vec::new();
    if report.traffic.len() > 1 {
        let told = table.rows.iter().rev().map(|row| row.cells[0].text.as_str()).find(|name| !name.is_empty());
        all.push(if told == Some(crate::words::clean(&traffic.name).as_str()) {
            Cell::new("")
        } else {
            Cell::new(&traffic.name)
        });
    }
    all.push(first);
    all.extend(cells);
    Row::new(all)
}

fn each(report: &ForwardingReport) -> impl Iterator<Item = (&TrafficView, &SizeView)> {
    report.traffic.iter().flat_map(|traffic| traffic.sizes.iter().map(move |size| (traffic, size)))
}

fn frames(rate: Option<FrameRate>) -> Cell {
    Cell::maybe(rate.map(|it| precise(it.pps, "pps", DIGITS)))
}

fn share(rate: Option<FrameRate>) -> Cell {
    Cell::maybe(rate.and_then(|it| it.of_line).map(of_line))
}

fn bits(rate: Option<FrameRate>) -> Cell {
    Cell::maybe(rate.map(|it| bps(it.wire_bps)))
}

/// Throughput per traffic, size and goal, with the lines that it is held against.
pub(in super::super) fn throughput(report: &ForwardingReport) -> Table {
    let goals = each(report).filter_map(|it| it.1.throughput.as_ref()).map(|it| it.goals.len()).max().unwrap_or(0);
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
        let Some(search) = &view.throughput else { continue };
        for (at, goal) in search.goals.iter().enumerate() {
            let mut cells = Vec::new();
            cells.extend((goals > 1).then(|| Cell::new(&goal.goal.name)));
            cells.extend([
                frames(goal.lower).tone(Tone::Strong),
                share(goal.lower),
                bits(goal.lower),
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
        if let Some(it) = &view.estimate {
            let mut cells = Vec::new();
            cells.extend((goals > 1).then(|| Cell::new("")));
            let rate = Some(it.rate);
            cells.extend([frames(rate), share(rate), bits(rate), Cell::new("–"), frames(Some(view.line))]);
            cells.push(Cell::new("estimate").tone(Tone::Mark));
            let row = row(report, &table, traffic, Cell::new("mix"), cells);
            table.rows.push(row.note(Some(format!("an estimate, not measured: {}", it.method))));
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

/// What the tester carries by itself.
pub(in super::super) fn tester(report: &ForwardingReport) -> Table {
    let columns = [
        Column::figures("carries"),
        Column::figures("of line"),
        Column::figures("on the wire"),
        Column::words("how it was found"),
    ];
    let mut table = sized(report, "The tester by itself", "a result at this limit is the tester's", &columns);
    for (traffic, view) in each(report) {
        let Some(it) = &view.tester else { continue };
        let rate = Some(it.rate);
        let cells = vec![frames(rate), share(rate), bits(rate), Cell::new(&it.method)];
        table.rows.push(row(report, &table, traffic, Cell::new(size(view.size)), cells));
    }
    table
}

/// `0.02 %`: how far the largest and the smallest are apart, of the median.
fn apart(of: &Spread) -> String {
    if of.median > 0.0 { ratio((of.max - of.min) / of.median) } else { "–".to_owned() }
}

/// Repetitions at the throughput.
pub(in super::super) fn confirmation(report: &ForwardingReport) -> Table {
    let columns = [
        Column::figures("load").spare(2),
        Column::figures("passed"),
        Column::figures("received min"),
        Column::figures("median"),
        Column::figures("max"),
        Column::figures("spread"),
        Column::figures("lost").spare(1),
        Column::words("confirmed"),
    ];
    let mut table =
        sized(report, "Repetitions at the throughput", "spread: (max − min) ÷ median of what was received", &columns);
    for (traffic, view) in each(report) {
        let Some(it) = &view.confirmation else { continue };
        let got =
            |of: fn(&Spread) -> f64| Cell::maybe(it.received_pps.as_ref().map(|it| precise(of(it), "pps", DIGITS)));
        let word = match (it.all_passed, it.passed) {
            (true, _) => Cell::new("yes").tone(Tone::Good),
            (false, 0) => Cell::new("no").tone(Tone::Bad),
            (false, passed) if passed == it.repetitions => Cell::new("cut short").tone(Tone::Mark),
            (false, _) => Cell::new("not always").tone(Tone::Bad),
        };
        let lost = it.lost.map(|it| {
            if it.min == it.max { grouped(rounded(it.max.max(0.0))) } else { format!("{}–{}", it.min, it.max) }
        });
        let cells = vec![
            frames(it.load),
            Cell::new(format!("{} of {}", it.passed, it.repetitions.max(it.planned)))
                .tone_if(!it.all_passed, Tone::Bad),
            got(|it| it.min),
            got(|it| it.median).tone(Tone::Strong),
            got(|it| it.max),
            Cell::maybe(it.received_pps.as_ref().map(apart)),
            Cell::maybe(lost),
            word,
        ];
        let are = if it.invalid == 1 { "is" } else { "are" };
        let invalid =
            (it.invalid > 0).then(|| format!("{} of the {} {are} invalid and left out", it.invalid, it.repetitions));
        table.rows.push(row(report, &table, traffic, Cell::new(size(view.size)), cells).note(invalid));
    }
    table
}

/// Latency at the throughput.
pub(in super::super) fn latency(report: &ForwardingReport) -> Table {
    let mut columns = vec![Column::figures("load").spare(2)];
    columns.extend(["min", "mean", "p50", "p99", "p99.9", "max", "PDV"].map(Column::figures));
    columns.push(Column::figures("trials").spare(3));
    columns.push(Column::figures("stamps").spare(4));
    let mut table = sized(report, "Latency", "at the throughput; PDV: p99.9 − min (RFC 8219)", &columns);
    for (traffic, view) in each(report) {
        let Some(it) = &view.latency else { continue };
        let mut cells = vec![Cell::new(pps(it.load_pps))];
        let times = [it.min_ns, rounded(it.mean_ns), it.p50_ns, it.p99_ns, it.p99_9_ns, it.max_ns, it.pdv_ns];
        cells.extend(times.iter().enumerate().map(|(at, ns)| Cell::new(nanos(*ns)).tone_if(at == 1, Tone::Strong)));
        cells.extend([Cell::new(it.repetitions.to_string()), Cell::new(grouped(it.stamps))]);
        table.rows.push(row(report, &table, traffic, Cell::new(size(view.size)), cells));
    }
    table
}

/// Loss over the load, a table for each traffic and a column for each size.
pub(in super::super) fn loss(report: &ForwardingReport) -> Vec<Table> {
    report
        .traffic
        .iter()
        .filter(|it| it.sizes.iter().any(|size| !size.loss.is_empty()))
        .map(|it| curve(report, it))
        .collect()
}

fn curve(report: &ForwardingReport, traffic: &TrafficView) -> Table {
    let sizes: Vec<&SizeView> = traffic.sizes.iter().filter(|size| !size.loss.is_empty()).collect();
    let spare = |at: usize| u8::try_from(at).unwrap_or(u8::MAX);
    let mut columns = vec![Column::figures("load")];
    columns.extend(sizes.iter().enumerate().map(|(at, it)| Column::figures(&size(it.size)).spare(spare(at))));
    let name = if report.traffic.len() > 1 {
        format!("Frame loss rate, {}", traffic.name)
    } else {
        "Frame loss rate".to_owned()
    };
    let mut table = Table::new(name, "lost and unsent of all that was due; load in % of the highest offered", &columns);
    let tenths = |percent: f64| rounded(percent * 10.0);
    let mut loads: Vec<u64> = sizes.iter().flat_map(|it| &it.loss).map(|it| tenths(it.load_percent)).collect();
    loads.sort_unstable_by(|a, b| b.cmp(a));
    loads.dedup();
    for load in loads {
        let mut cells = vec![Cell::new(format!("{:.1} %", crate::figures::float(load) / 10.0))];
        let mut unsent = Vec::new();
        for it in &sizes {
            let point = it.loss.iter().find(|point| tenths(point.load_percent) == load);
            let bad = point.is_some_and(|point| point.loss_ratio > 0.0);
            let cell = Cell::maybe(point.map(|point| ratio(point.loss_ratio)));
            cells.push(if bad { cell.tone(Tone::Bad) } else { cell });
            if let Some(point) = point.filter(|point| point.unsent_ratio > 0.0) {
                unsent.push(format!("{} {}", size(it.size), ratio(point.unsent_ratio)));
            }
        }
        let note = (!unsent.is_empty()).then(|| format!("of it never sent, the tester's part: {}", unsent.join(", ")));
        table.rows.push(Row::new(cells).note(note));
    }
    table
}

/// The longest bursts without loss.
pub(in super::super) fn back_to_back(report: &ForwardingReport) -> Table {
    let columns = [
        Column::figures("average burst"),
        Column::figures("min").spare(2),
        Column::figures("median").spare(3),
        Column::figures("max").spare(2),
        Column::figures("at"),
        Column::figures("implied buffer"),
        Column::figures("corrected"),
        Column::figures("bursts").spare(1),
    ];
    let remark = "frames; RFC 9004: implied = average ÷ rate, corrected for what left meanwhile";
    let mut table = sized(report, "Back-to-back", remark, &columns);
    for (traffic, view) in each(report) {
        let Some(it) = &view.bursts else { continue };
        let more = if it.at_least { "≥ " } else { "" };
        let frames = |of: f64| Cell::new(grouped(rounded(of)));
        let time = |ns: f64| format!("{more}{}", nanos(rounded(ns)));
        let cells = vec![
            Cell::new(format!("{more}{}", grouped(rounded(it.mean_frames)))).tone(Tone::Strong),
            frames(it.frames.min),
            frames(it.frames.median),
            frames(it.frames.max),
            Cell::new(pps(it.offered_pps)),
            Cell::new(time(it.implied_ns)),
            Cell::maybe(it.corrected_ns.map(time)).tone(Tone::Strong),
            Cell::new(it.frames.n.to_string()),
        ];
        let note = it.at_least.then(|| "even the longest burst that was tried passed".to_owned());
        table.rows.push(row(report, &table, traffic, Cell::new(size(view.size)), cells).note(note));
    }
    table
}

/// Recoveries and resets.
pub(in super::super) fn outages(report: &ForwardingReport) -> Table {
    let columns = [
        Column::words("test"),
        Column::figures("min"),
        Column::figures("median"),
        Column::figures("max"),
        Column::figures("times"),
    ];
    let remark = "recovery: from the end of the overload to the last loss; reset: the outage";
    let mut table = sized(report, "Recovery and reset", remark, &columns);
    for (traffic, view) in each(report) {
        let tests = [
            (narrows_model::forwarding::Test::Recovery, view.recovery_ns),
            (narrows_model::forwarding::Test::Reset, view.reset_ns),
        ];
        for (test, it) in tests {
            let Some(it) = it else { continue };
            let time = |of: f64| Cell::new(nanos(rounded(of)));
            let cells = vec![
                Cell::new(words::test(test)),
                time(it.min),
                time(it.median).tone(Tone::Strong),
                time(it.max),
                Cell::new(it.n.to_string()),
            ];
            table.rows.push(row(report, &table, traffic, Cell::new(size(view.size)), cells));
        }
    }
    table
}

/// What is said of trials that say nothing.
fn left_out(invalid: u32) -> Option<String> {
    let are = if invalid == 1 { "trial is" } else { "trials are" };
    (invalid > 0).then(|| format!("{invalid} more {are} invalid and left out"))
}

/// What arrived at line rate.
pub(in super::super) fn worst_case(report: &ForwardingReport) -> Table {
    let columns = [
        Column::figures("sent"),
        Column::figures("received min").spare(1),
        Column::figures("median"),
        Column::figures("max").spare(1),
        Column::figures("of line"),
        Column::figures("lost"),
        Column::figures("trials").spare(2),
    ];
    let mut table = sized(report, "Worst case", "what arrives while the line is full", &columns);
    for (traffic, view) in each(report) {
        let Some(it) = &view.worst_case else { continue };
        let rate = |of: Option<Spread>, what: fn(&Spread) -> f64| {
            Cell::maybe(of.as_ref().map(|it| precise(what(it), "pps", 4)))
        };
        let cells = vec![
            rate(it.offered_pps, |it| it.median),
            rate(it.received_pps, |it| it.min),
            rate(it.received_pps, |it| it.median).tone(Tone::Strong),
            rate(it.received_pps, |it| it.max),
            share(it.received),
            Cell::maybe(it.loss_ratio.map(ratio)),
            Cell::new(it.repetitions.to_string()),
        ];
        let invalid = left_out(it.invalid);
        table.rows.push(row(report, &table, traffic, Cell::new(size(view.size)), cells).note(invalid));
    }
    table
}
