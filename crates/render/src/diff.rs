//! Two diagnoses side by side: what differs, then in a sentence what is the same.

use crate::doc::{Doc, Sentence};
use crate::figures::ratio;
use crate::format::document;
use crate::table::{Cell, Column, Row, Table};
use crate::words::rounded;
use narrows_model::Unit;
use narrows_model::run::diff::{DiffFigure, DiffGroup, DiffReport, DiffRun};
use narrows_model::words::units::{bps, bytes, micros};

document!(DiffReport, "two diagnoses", doc);

const GROUPS: [(DiffGroup, &str); 5] = [
    (DiffGroup::Goodput, "Goodput"),
    (DiffGroup::Path, "Path"),
    (DiffGroup::TimeBudget, "Sender's time"),
    (DiffGroup::Ceilings, "Ceilings"),
    (DiffGroup::Experiments, "Experiments"),
];

/// With `full` what is the same in both is listed, too.
pub(crate) fn doc(report: &DiffReport, full: bool) -> Doc {
    let doc = Doc::new("Two diagnoses side by side");
    let doc = sides(report).fold(doc, |doc, (side, run)| doc.lead(side, &about(run), Some(&run.headline)));
    let doc = doc
        .heading("What differs")
        .sentences(report.summary.iter().map(|it| Sentence::new(it)))
        .warnings(report.remarks.iter().cloned())
        .tables(tables(report, full));
    same(report).filter(|_| !full).into_iter().fold(doc, |doc, same| doc.method(&same))
}

fn sides(report: &DiffReport) -> impl Iterator<Item = (&'static str, &DiffRun)> {
    ["A", "B"].into_iter().zip(&report.runs)
}

fn about(run: &DiffRun) -> String {
    format!("{}, {} and {}, {}: {}", run.id, run.client, run.target, run.direction, run.status.word())
}

/// A table for each group that has something to show.
fn tables(report: &DiffReport, full: bool) -> Vec<Table> {
    let figures = GROUPS.iter().map(|(group, title)| figures(report, *group, title, full));
    figures.chain([parameters(report)]).map(Table::trimmed).collect()
}

fn figures(report: &DiffReport, group: DiffGroup, title: &str, full: bool) -> Table {
    let columns = [
        Column::words("").spare(3),
        Column::words(""),
        Column::words("at").spare(2),
        Column::figures("A"),
        Column::figures("B"),
        Column::figures("B / A").spare(1),
    ];
    let mut table = Table::new(title, "", &columns);
    let shown = |it: &&DiffFigure| it.group == group && (full || it.differs);
    for it in report.figures.iter().filter(shown) {
        let value = |at: usize| Cell::maybe(it.values[at].map(|value| figure(it.unit, value)));
        table.rows.push(Row::new(vec![
            Cell::new(if full && it.differs { "≠" } else { "" }),
            Cell::new(&it.name),
            Cell::new(it.at.map_or("", |at| at.word())),
            value(0),
            value(1),
            Cell::new(factor(it).unwrap_or_default()),
        ]));
    }
    let limits = report.runs.each_ref().map(|run| run.limit.clone());
    if group == DiffGroup::Path && limits[0] != limits[1] {
        let [a, b] = limits.map(Cell::maybe);
        table.rows.push(Row::new(vec![
            Cell::new(if full { "≠" } else { "" }),
            Cell::new("limit"),
            Cell::new(""),
            a,
            b,
        ]));
    }
    table
}

fn parameters(report: &DiffReport) -> Table {
    let columns = [Column::words("at"), Column::words("parameter"), Column::words("A"), Column::words("B")];
    let mut table = Table::new("Parameters that changed", "", &columns);
    for it in &report.parameters {
        let name = format!("{}: {}", it.group.title(), it.label);
        let [a, b] = it.cells.each_ref().map(|cell| Cell::new(&cell.text));
        table.rows.push(Row::new(vec![Cell::new(it.at.word()), Cell::new(name), a, b]));
    }
    table
}

fn figure(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Microseconds => micros(rounded(value)),
        Unit::Bytes => bytes(rounded(value)),
        Unit::Fraction => ratio(value),
        _ => bps(value),
    }
}

/// B over A, of what is no share.
fn factor(of: &DiffFigure) -> Option<String> {
    let [a, b] = of.values;
    let times = b? / a.filter(|a| *a > 0.0)?;
    (of.unit != Unit::Fraction).then(|| if times >= 10.0 { format!("{times:.1}") } else { format!("{times:.2}") })
}

/// What is the same in both, with the value of A.
fn same(report: &DiffReport) -> Option<String> {
    let same: Vec<String> = report
        .figures
        .iter()
        // No loss and no time in a state say nothing here.
        .filter(|it| !it.differs && it.values[0].is_some_and(|value| value > 0.0))
        .filter_map(|it| {
            let at = it.at.map(|at| format!(" ({at})")).unwrap_or_default();
            Some(format!("{}{at} {}", it.name, figure(it.unit, it.values[0]?)))
        })
        .collect();
    (!same.is_empty()).then(|| format!("About the same in both: {}.", same.join(", ")))
}
