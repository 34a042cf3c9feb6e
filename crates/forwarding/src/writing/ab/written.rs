//! A comparison in words.

use super::{is_limited, remarks, row_name, steps, svg, tables};
use crate::data::ab::Difference;
use crate::data::ab_report::AbReport;
use narrows_render::doc::{Doc, Pair};
use narrows_render::style::{Style, Tone};
use narrows_render::table::Table;
use narrows_render::words::plural;

/// On a terminal.
pub fn text(report: &AbReport, style: Style) -> String {
    doc(report, &[]).text(style)
}

/// For a ticket or a wiki.
pub fn markdown(report: &AbReport) -> String {
    doc(report, &[]).markdown()
}

/// The page; `intervals` as for its picture.
pub fn html(report: &AbReport, intervals: &[[Option<[f64; 2]>; 2]]) -> String {
    doc(report, intervals).html()
}

/// What is compared, the sentence of each row, then the figures.
fn doc(report: &AbReport, intervals: &[[Option<[f64; 2]>; 2]]) -> Doc {
    let name = format!("Forwarding benchmark of {}, two configurations", report.name);
    let sides = [("A", &report.a), ("B", &report.b)].map(|(word, of)| {
        Pair::new(word, &format!("{} ({}; {})", of.name, steps(&of.steps), plural(of.runs.into(), "run")))
    });
    let says = report.rows.iter().map(|row| {
        let proven = row.row.welch.as_ref().is_some_and(Difference::is_proven) && !is_limited(report, row);
        Pair::new(&row_name(report, row), &row.row.says).tone(if proven { Tone::Good } else { Tone::Mark })
    });
    let tables = [tables::throughputs(report), tables::differences(report), tables::runs(report)];
    Doc::new(&name)
        .on_terminal(&name)
        .pairs(sides.into_iter().chain(says))
        .warnings(remarks(report))
        .picture(svg(report, intervals))
        .tables(tables.map(Table::trimmed))
}
