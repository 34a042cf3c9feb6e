//! A forwarding benchmark on a terminal: the verdict, then the tables, the books, and what was asked for.

use super::procedures::{ALL, results};
use super::summary::{findings, reconciliation, title};
use super::tables;
use crate::style::{Style, Tone};
use crate::table::{Table, text};
use crate::text::page::Page;
use crate::words::{clean, columns, left};
use narrows_model::forwarding::report::{BooksView, ForwardingReport};
use narrows_model::words::units::micros;

/// Invalid trials that are listed unless everything is shown.
const INVALID: usize = 12;

pub fn report(report: &ForwardingReport, style: Style) -> String {
    let mut page = Page::new(style);
    page.labelled("", &format!("forwarding benchmark of {}", clean(&report.name)), Some(Tone::Strong));
    if let Some(run) = &report.run {
        let took = micros(crate::words::rounded(run.elapsed_s * 1e6));
        page.labelled("  ", &format!("run {}, {}, {took}", clean(&run.id), clean(&run.made_by)), Some(Tone::Faint));
    }
    verdict(&mut page, report);
    for table in results(report) {
        text(&mut page, &table);
    }
    text(&mut page, &tables::losses(report));
    for view in &report.books {
        account(&mut page, view);
    }
    let most = if style.full { usize::MAX } else { INVALID };
    pairs(&mut page, &tables::invalid(report, most));
    pairs(&mut page, &tables::not_measured(report));
    pairs(&mut page, &tables::plan(report, ALL));
    page.finish()
}

fn verdict(page: &mut Page, report: &ForwardingReport) {
    let verdict = &report.verdict;
    page.blank();
    for line in &verdict.throughput {
        page.labelled("", &clean(line), Some(Tone::Strong));
    }
    for (at, line) in verdict.losses.iter().enumerate() {
        page.labelled(if at == 0 { "lost        " } else { "            " }, &clean(line), None);
    }
    for (at, line) in verdict.invalid.iter().enumerate() {
        page.labelled(if at == 0 { "invalid     " } else { "            " }, &clean(line), Some(Tone::Bad));
    }
    page.labelled("accounting  ", &reconciliation(report), None);
    for remark in &report.remarks {
        page.labelled("! ", &clean(remark), Some(Tone::Mark));
    }
    if let Some(why) = &report.ended {
        page.labelled("ended early: ", &clean(why), Some(Tone::Bad));
    }
}

fn account(page: &mut Page, view: &BooksView) {
    page.heading(&crate::words::fit(&clean(&title(view)), page.width()), &clean(&view.telling));
    text(page, &tables::account(view));
    for line in findings(view) {
        page.labelled("  ", &clean(&line), None);
    }
    if let Some(why) = &view.invalid {
        page.labelled("  invalid: ", &clean(why), Some(Tone::Bad));
    }
}

/// A table of two columns whose second holds sentences: they wrap.
fn pairs(page: &mut Page, table: &Table) {
    if table.rows.is_empty() {
        return;
    }
    page.heading(&table.title, &table.remark);
    let first = |row: &crate::table::Row| row.cells.first().map_or(0, |cell| columns(&cell.text));
    let wide = table.rows.iter().map(first).max().unwrap_or(0).min(page.width() / 2 - 4);
    for row in &table.rows {
        let [name, says] = [0, 1].map(|at| row.cells.get(at));
        let mut name = name.map_or("", |cell| cell.text.as_str());
        if columns(name) > wide {
            // A long name has lines of its own.
            page.labelled("  ", name, None);
            name = "";
        }
        page.labelled(
            &format!("  {}  ", left(name, wide)),
            says.map_or("", |cell| cell.text.as_str()),
            says.and_then(|cell| cell.tone),
        );
    }
}
