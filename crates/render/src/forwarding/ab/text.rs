//! A comparison on a terminal: what is compared, the sentence of each row, then the figures.

use super::{remarks, row_name, steps, tables};
use crate::style::{Style, Tone};
use crate::table::text;
use crate::text::page::Page;
use crate::words::{clean, plural};
use narrows_model::forwarding::ab_report::AbReport;

pub fn report(report: &AbReport, style: Style) -> String {
    let mut page = Page::new(style);
    let title = format!("forwarding benchmark of {}, two configurations", clean(&report.name));
    page.labelled("", &title, Some(Tone::Strong));
    for (word, of) in [("A  ", &report.a), ("B  ", &report.b)] {
        let what = format!("{} ({}; {})", clean(&of.name), clean(&steps(&of.steps)), plural(of.runs.into(), "run"));
        page.labelled(word, &what, None);
    }
    page.blank();
    for row in &report.rows {
        page.labelled(&format!("{}: ", row_name(report, row)), &clean(&row.row.says), Some(Tone::Strong));
    }
    for remark in remarks(report) {
        page.labelled("! ", &clean(&remark), Some(Tone::Mark));
    }
    for table in [tables::throughputs(report), tables::differences(report), tables::runs(report)] {
        text(&mut page, &table.trimmed());
    }
    page.finish()
}
