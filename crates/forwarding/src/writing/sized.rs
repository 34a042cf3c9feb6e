//! Tables with a row for each traffic and size, and the cells that they share.

use super::words::size;
use crate::data::report::{ForwardingReport, SizeView, TrafficView};
use narrows_model::load::frames_report::FrameRate;
use narrows_model::words::units::bps;
use narrows_render::figures::{of_line, precise};
use narrows_render::table::{Cell, Column, Row, Table};

/// Significant digits of a bound: bounds come close to one another.
pub(super) const DIGITS: usize = 5;

/// A table whose first columns name traffic and size.
pub(super) fn sized(report: &ForwardingReport, title: &str, remark: &str, columns: &[Column]) -> Table {
    let mut all = Vec::new();
    all.extend((report.traffic.len() > 1).then(|| Column::words("frames")));
    all.push(Column::figures("size"));
    all.extend_from_slice(columns);
    Table::new(title, remark, &all)
}

/// A row of such a table; the traffic is named in its first row only.
pub(super) fn row(
    report: &ForwardingReport,
    table: &Table,
    traffic: &TrafficView,
    first: Cell,
    cells: Vec<Cell>,
) -> Row {
    let mut all = Vec::new();
    if report.traffic.len() > 1 {
        let told = table.rows.iter().rev().map(|row| row.cells[0].text.as_str()).find(|name| !name.is_empty());
        all.push(if told == Some(narrows_render::words::clean(&traffic.name).as_str()) {
            Cell::new("")
        } else {
            Cell::new(&traffic.name)
        });
    }
    all.push(first);
    all.extend(cells);
    Row::new(all)
}

/// A column of what a size has, and its cell.
pub(super) type Figure<'a, T> = (Column, &'a dyn Fn(&T) -> Cell);

/// A table with a row for each size of which `of` finds something, and its notes.
pub(super) fn of_sizes<T, N: IntoIterator<Item = String>>(
    report: &ForwardingReport,
    [title, remark]: [&str; 2],
    of: fn(&SizeView) -> Option<&T>,
    figures: &[Figure<'_, T>],
    notes: impl Fn(&T) -> N,
) -> Table {
    let columns: Vec<Column> = figures.iter().map(|(column, _)| column.clone()).collect();
    let mut table = sized(report, title, remark, &columns);
    for (traffic, view) in each(report) {
        if let Some(it) = of(view) {
            let cells = figures.iter().map(|(_, cell)| cell(it)).collect();
            let row = row(report, &table, traffic, Cell::new(size(view.size)), cells);
            table.rows.push(notes(it).into_iter().fold(row, |row, note| row.note(Some(note))));
        }
    }
    table
}

pub(super) fn each(report: &ForwardingReport) -> impl Iterator<Item = (&TrafficView, &SizeView)> {
    report.traffic.iter().flat_map(|traffic| traffic.sizes.iter().map(move |size| (traffic, size)))
}

pub(super) fn frames(rate: Option<FrameRate>) -> Cell {
    Cell::maybe(rate.map(|it| precise(it.pps, "pps", DIGITS)))
}

pub(super) fn share(rate: Option<FrameRate>) -> Cell {
    Cell::maybe(rate.and_then(|it| it.of_line).map(of_line))
}

pub(super) fn bits(rate: Option<FrameRate>) -> Cell {
    Cell::maybe(rate.map(|it| bps(it.wire_bps)))
}
