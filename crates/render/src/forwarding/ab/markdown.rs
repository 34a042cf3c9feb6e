//! A comparison for a ticket or a wiki: GitHub-flavoured Markdown.

use super::{remarks, row_name, steps, tables};
use crate::markdown::text as word;
use crate::table::markdown;
use crate::words::plural;
use narrows_model::forwarding::ab_report::AbReport;

pub fn report(report: &AbReport) -> String {
    let mut out = format!("# Forwarding benchmark of {}, two configurations\n\n", word(&report.name));
    for row in &report.rows {
        out += &format!("- **{}: {}**\n", word(&row_name(report, row)), word(&row.row.says));
    }
    for (side, of) in [("A", &report.a), ("B", &report.b)] {
        let runs = plural(of.runs.into(), "run");
        out += &format!("- {side}: {} ({}; {runs})\n", word(&of.name), word(&steps(&of.steps)));
    }
    for remark in remarks(report) {
        out += &format!("- {}\n", word(&remark));
    }
    for table in [tables::throughputs(report), tables::differences(report), tables::runs(report)] {
        out += &markdown(&table.trimmed(), 2);
    }
    out
}
