//! The books: where frames were lost, what each hop counted, what is invalid, what was not measured.

use crate::data::AccountLine;
use crate::data::report::{BooksView, ForwardingReport};
use narrows_render::figures::{grouped, grouped_signed};
use narrows_render::style::Tone;
use narrows_render::table::{Cell, Column, Row, Table};

/// Where frames were lost, over the valid trials of the record: of a search it keeps those that tell most.
pub(in super::super) fn losses(report: &ForwardingReport) -> Table {
    let columns =
        [Column::words("where"), Column::words("reason"), Column::figures("frames"), Column::figures("in trials")];
    let mut table = Table::new("Lost frames by place", "over the valid trials whose counts are kept", &columns);
    for it in &report.losses {
        let cells = vec![
            Cell::new(&it.hop).tone(Tone::Strong),
            Cell::new(&it.reason),
            Cell::new(grouped(it.frames)),
            Cell::new(grouped(it.trials)),
        ];
        table.rows.push(Row::new(cells));
    }
    table
}

/// One trial's books; its title is left to the caller.
pub(in super::super) fn account(view: &BooksView) -> Table {
    let columns = [
        Column::words("hop"),
        Column::figures("in"),
        Column::figures("out"),
        Column::figures("dropped"),
        Column::figures("lost before"),
        Column::figures("unexplained"),
        Column::figures("±").spare(1),
    ];
    let mut table = Table::new("", "", &columns);
    for line in &view.books.lines {
        let mut row = Row::new(cells(line));
        for drop in line.drops.iter().filter(|drop| drop.frames > 0) {
            row = row.note(Some(format!("{} dropped: {}", grouped(drop.frames), drop.reason)));
        }
        let kept = (line.not_forwarded > 0)
            .then(|| format!("{} to the broadcast MAC address, correctly not forwarded", grouped(line.not_forwarded)));
        table.rows.push(row.note(kept).note(line.trouble.clone()));
    }
    table
}

fn cells(line: &AccountLine) -> Vec<Cell> {
    let dropped = line.drops.iter().fold(0u64, |sum, drop| sum.saturating_add(drop.frames));
    let count = |count: Option<u64>| Cell::maybe(count.map(grouped));
    let signed = |count: Option<i64>| {
        let cell = Cell::maybe(count.map(grouped_signed));
        match count {
            Some(count) if count.unsigned_abs() > line.uncertainty => cell.tone(Tone::Bad),
            Some(_) => cell.tone(Tone::Good),
            None => cell,
        }
    };
    vec![
        Cell::new(&line.hop).tone_if(line.trouble.is_some(), Tone::Bad),
        count(line.input),
        count(line.output),
        Cell::new(grouped(dropped)).tone_if(dropped > 0, Tone::Bad),
        signed(line.lost_before),
        signed(line.unexplained),
        Cell::new(grouped(line.uncertainty)),
    ]
}

/// The trials that say nothing, at most so many of them.
pub(in super::super) fn invalid(report: &ForwardingReport, most: usize) -> Table {
    let mut table =
        Table::new("Invalid trials", "excluded from all results", &[Column::words("trial"), Column::words("why")]);
    for it in report.invalid.iter().take(most) {
        table.rows.push(Row::new(vec![Cell::new(&it.trial.name), Cell::new(&it.why).tone(Tone::Bad)]));
    }
    let left_out = report.invalid.len().saturating_sub(most);
    if left_out > 0 {
        table.rows.push(Row::new(vec![Cell::new(format!("and {left_out} more"))]));
    }
    table
}

/// What was not measured, and why.
pub(in super::super) fn not_measured(report: &ForwardingReport) -> Table {
    let mut table = Table::new("Not measured", "", &[Column::words("what"), Column::words("why")]);
    for it in &report.not_measured {
        table.rows.push(Row::new(vec![Cell::new(&it.what), Cell::new(&it.why)]));
    }
    table
}
