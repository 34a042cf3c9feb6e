//! What is measured several times over: the throughput's confirmation, and the worst case.

use super::super::words::size;
use super::sized::{DIGITS, each, frames, row, share, sized};
use crate::figures::{grouped, precise, ratio};
use crate::style::Tone;
use crate::table::{Cell, Column, Table};
use crate::udp::text::rounded;
use narrows_model::forwarding::report::ForwardingReport;
use narrows_model::run::sweep::Spread;

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
        let sound = it.repetitions - it.invalid;
        let word = match (it.all_passed, it.passed) {
            (true, _) => Cell::new("yes").tone(Tone::Good),
            (false, 0) => Cell::new("no").tone(Tone::Bad),
            _ if it.holds => Cell::new("as the goal allows").tone(Tone::Good),
            (false, passed) if passed == sound && it.invalid > 0 => Cell::new("those that are valid").tone(Tone::Mark),
            (false, passed) if passed == sound => Cell::new("cut short").tone(Tone::Mark),
            (false, _) => Cell::new("not always").tone(Tone::Bad),
        };
        let lost = it.lost.map(|it| {
            if it.min == it.max { grouped(rounded(it.max.max(0.0))) } else { format!("{}–{}", it.min, it.max) }
        });
        let cells = vec![
            frames(it.load),
            Cell::new(format!("{} of {}", it.passed, sound.max(it.planned))).tone_if(!it.holds, Tone::Bad),
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
