//! A comparison as one page that needs no other file.

use super::{is_limited, remarks, row_name, steps, svg, tables};
use crate::page::{document, figure, says};
use crate::table::html as table;
use crate::words::plural;
use maud::html;
use narrows_model::forwarding::ab::Difference;
use narrows_model::forwarding::ab_report::{AbReport, AbRowView, ConfigurationView};

/// The page; `intervals` as for its picture.
pub fn page(report: &AbReport, intervals: &[[Option<[f64; 2]>; 2]]) -> String {
    let class = |row: &AbRowView| {
        let proven = row.row.welch.as_ref().is_some_and(Difference::is_proven) && !is_limited(report, row);
        if proven { "good" } else { "mark" }
    };
    let side =
        |of: &ConfigurationView| [format!("{} ({}; {})", of.name, steps(&of.steps), plural(of.runs.into(), "run"))];
    let tables = [
        ("throughput", tables::throughputs(report)),
        ("difference", tables::differences(report)),
        ("runs", tables::runs(report)),
    ];
    let main = html! {
        section #verdict {
            @for row in &report.rows {
                (says(class(row), &row_name(report, row), std::slice::from_ref(&row.row.says)))
            }
            (says("", "A", &side(&report.a)))
            (says("", "B", &side(&report.b)))
            (says("bad", "Note", &remarks(report)))
        }
        @if let Some(picture) = svg::picture(report, intervals) { section #comparison { (figure(Some(picture))) } }
        @for (id, it) in tables { section id=(id) { (table(&it.trimmed())) } }
    };
    document(&format!("Forwarding benchmark of {}, two configurations", report.name), None, &main)
}
