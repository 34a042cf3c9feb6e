//! Forwarding rate at maximum offered load.

use super::super::section::{Mark, Section};
use super::super::sized::{each, row, share, sized};
use super::super::words::{size, time, times};
use crate::figures::{precise, ratio};
use crate::style::Tone;
use crate::svg::{Look, Marker, palette};
use crate::table::{Cell, Column, Table};
use narrows_model::forwarding::report::ForwardingReport;
use narrows_model::forwarding::{Test, Tests};
use narrows_model::run::sweep::Spread;

pub(super) const SECTION: Section = Section {
    asked: &[(Test::Frmol, asked)],
    mark: Some(Mark {
        rate: |it| it.frmol.rate.as_ref()?.received,
        legend: "arrives at line rate",
        hint: "arrive at line rate",
        look: Look { color: palette::ORANGE, marker: Marker::Down, dash: "" },
    }),
    ..Section::of("worst-case", "Worst case", |it| vec![frmol(it)])
};

fn asked(tests: &Tests) -> Option<String> {
    tests.frmol.as_ref().map(|it| format!("{} of {}", times(it.repetitions), time(it.duration_ms)))
}

/// What is said of trials that say nothing.
fn left_out(invalid: u32) -> Option<String> {
    let are = if invalid == 1 { "trial is" } else { "trials are" };
    (invalid > 0).then(|| format!("{invalid} more {are} invalid and left out"))
}

/// What arrived at line rate.
fn frmol(report: &ForwardingReport) -> Table {
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
        let Some(it) = &view.results.frmol.rate else { continue };
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
