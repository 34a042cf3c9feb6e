//! A forwarding benchmark for a ticket or a wiki: GitHub-flavoured Markdown.

use super::procedures::{ALL, results};
use super::summary::{findings, reconciliation, title};
use super::tables;
use crate::markdown::text as word;
use crate::table::markdown;
use narrows_model::forwarding::report::ForwardingReport;

/// Invalid trials that are listed; JSON has them all.
const INVALID: usize = 200;

pub fn report(report: &ForwardingReport) -> String {
    let mut out = format!("# Forwarding benchmark of {}\n\n", word(&report.name));
    for line in &report.verdict.throughput {
        out += &format!("- **{}**\n", word(line));
    }
    for line in &report.verdict.losses {
        out += &format!("- lost: {}\n", word(line));
    }
    for line in &report.verdict.invalid {
        out += &format!("- **invalid: {}**\n", word(line));
    }
    out += &format!("- accounting: {}\n", word(&reconciliation(report)));
    for remark in &report.remarks {
        out += &format!("- {}\n", word(remark));
    }
    if let Some(why) = &report.ended {
        out += &format!("\n**Ended early: {}**\n", word(why));
    }
    for table in results(report).iter().chain([&tables::losses(report)]) {
        out += &markdown(table, 2);
    }
    for view in &report.books {
        out += &format!(
            "\n## {}\n\n{}: {}.\n\n",
            word(&title(view)),
            word(&view.telling),
            word(&findings(view).join("; "))
        );
        if let Some(why) = &view.invalid {
            out += &format!("**Invalid: {}**\n\n", word(why));
        }
        out += &markdown(&tables::account(view), 2);
    }
    for table in [tables::invalid(report, INVALID), tables::not_measured(report), tables::plan(report, ALL)] {
        out += &markdown(&table, 2);
    }
    if let Some(run) = &report.run {
        out += &format!("\nRun `{}` by {}.\n", crate::markdown::code(&run.id), word(&run.made_by));
    }
    out
}
