//! Recoveries and resets.

use super::super::section::Section;
use super::super::sized::{each, row, sized};
use super::super::words::{size, time, times};
use crate::data::report::ForwardingReport;
use crate::data::{Test, Tests};
use narrows_model::run::sweep::Spread;
use narrows_render::figures::nanos;
use narrows_render::style::Tone;
use narrows_render::table::{Cell, Column, Table};
use narrows_render::words::rounded;

pub(super) const SECTION: Section = Section {
    asked: &[(Test::Recovery, recovery), (Test::Reset, reset)],
    ..Section::of("outages", "Recovery and reset", |it| vec![outages(it)])
};

fn recovery(tests: &Tests) -> Option<String> {
    let it = tests.recovery.as_ref()?;
    Some(format!("{}: {} of 110 %, {} of half", times(it.repetitions), time(it.overload_ms), time(it.after_ms)))
}

fn reset(tests: &Tests) -> Option<String> {
    let it = tests.reset.as_ref()?;
    Some(format!("by `{}`, within {}", it.command.first().map_or("", String::as_str), time(it.within_ms)))
}

fn outages(report: &ForwardingReport) -> Table {
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
            (Test::Recovery, view.results.recovery.time_ns, &view.results.recovery.notes),
            (Test::Reset, view.results.reset.outage_ns, &view.results.reset.notes),
        ];
        for (test, it, notes) in tests {
            if it.is_none() && notes.is_empty() {
                continue;
            }
            let time = |of: fn(&Spread) -> f64| Cell::maybe(it.as_ref().map(|it| nanos(rounded(of(it)))));
            let cells = vec![
                Cell::new(test.title()),
                time(|it| it.min),
                time(|it| it.median).tone(Tone::Strong),
                time(|it| it.max),
                Cell::new(it.as_ref().map_or(0, |it| it.n).to_string()),
            ];
            let line = row(report, &table, traffic, Cell::new(size(view.size)), cells);
            table.rows.push(notes.iter().fold(line, |line, note| line.note(Some(note.clone()))));
        }
    }
    table
}
