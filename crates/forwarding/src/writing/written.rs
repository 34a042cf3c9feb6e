//! A forwarding benchmark in words: the verdict, then the tables, the books, and what was asked for.

use super::procedures::{ALL, results};
use super::summary::{findings, reconciliation, title};
use super::tables;
use crate::data::report::{BooksView, ForwardingReport};
use narrows_model::words::units::micros;
use narrows_render::doc::{Doc, Pair, Sentence};
use narrows_render::style::Tone;
use narrows_render::table::Table;

/// How many invalid trials are listed, and how many with `--full`; JSON lists all.
const INVALID: usize = 12;
const INVALID_AT_MOST: usize = 200;

pub(crate) fn doc(report: &ForwardingReport, full: bool) -> Doc {
    let name = format!("Forwarding benchmark of {}", report.name);
    let doc = Doc::new(&name).on_terminal(&name);
    let doc = report.run.iter().fold(doc, |doc, run| {
        doc.plain(&format!(
            "run {}, {}, {}",
            run.id,
            run.made_by,
            micros(narrows_render::words::rounded(run.elapsed_s * 1e6))
        ))
    });
    let doc = verdict(doc, report).tables(results(report)).table(tables::losses(report));
    let doc = report.books.iter().fold(doc, account);
    let most = if full { INVALID_AT_MOST } else { INVALID };
    let pairs = [tables::invalid(report, most), tables::not_measured(report), tables::plan(report, ALL)];
    pairs.iter().fold(doc, wrapped)
}

fn verdict(doc: Doc, report: &ForwardingReport) -> Doc {
    let verdict = &report.verdict;
    let bad = |word: &str, line: &String| Pair::new(word, line).tone(Tone::Bad);
    let doc = verdict.throughput.iter().fold(doc, |doc, line| doc.headline(line));
    doc.pairs(
        verdict
            .losses
            .iter()
            .map(|line| Pair::new("lost", line))
            .chain(verdict.invalid.iter().map(|line| bad("invalid", line)))
            .chain([Pair::new("accounting", &reconciliation(report))])
            .chain(report.ended.iter().map(|why| bad("ended early", why))),
    )
    .warnings(report.remarks.iter().cloned())
}

fn account(doc: Doc, view: &BooksView) -> Doc {
    let invalid = view.invalid.iter().map(|why| Sentence::new(&format!("invalid: {why}")).tone(Tone::Bad));
    let found: Vec<_> = findings(view).iter().map(|line| Sentence::new(line)).chain(invalid).collect();
    doc.section(&title(view), &view.telling).table(tables::account(view)).sentences(found)
}

/// A table of two columns whose second holds sentences: they wrap.
fn wrapped(doc: Doc, table: &Table) -> Doc {
    if table.rows.is_empty() {
        return doc;
    }
    let pairs = table.rows.iter().map(|row| {
        let [name, says] = [0, 1].map(|at| row.cells.get(at).map_or("", |cell| cell.text.as_str()));
        let pair = Pair::new(name, says);
        row.cells.get(1).and_then(|cell| cell.tone).into_iter().fold(pair, Pair::tone)
    });
    doc.section(&table.title, &table.remark).pairs(pairs)
}
