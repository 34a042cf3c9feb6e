//! A comparison of runs: as text, Markdown, CSV, and as ministat prints it.

mod c_number;
pub mod csv;
pub mod ministat;
mod picture;
pub mod svg;
pub(crate) mod words;

use crate::doc::{Doc, Sentence};
use crate::format::{Writer, document};
use crate::style::Tone;
use crate::table::{Cell, Column, Row, Table};
use crate::words::clean;
use narrows_model::run::compare::{CompareReport, CompareVerdict, ComparedFigure};
use words::{change, figure, interval, probability, sentence};

document!(
    CompareReport,
    "a comparison of samples",
    |it, _| doc(it),
    Writer::csv("Comma-separated values, one value per line", |it, _| Ok(csv::table(it)))
);

pub(crate) fn doc(report: &CompareReport) -> Doc {
    let doc = Doc::new("Comparison").picture(Some(svg::picture(report)));
    let doc = report.sides.iter().fold(doc, |doc, side| doc.lead(&side.label, &words::side(side), None));
    let doc = report.figures.iter().cloned().fold(doc, |doc, of| {
        let said = of.comparisons.iter().map(|it| {
            Sentence::new(&sentence(report, &of, it)).tone(match it.verdict {
                CompareVerdict::Different => Tone::Mark,
                CompareVerdict::Same => Tone::Good,
                CompareVerdict::CannotTell => Tone::Faint,
            })
        });
        let (doc, tables) = (doc.heading(&of.name).sentences(said), tables(report, &of));
        doc.drawing(move |width| picture::rows(&of, width)).tables(tables)
    });
    let doc = doc.warnings(report.warnings.iter().cloned());
    let doc = inventories(report).fold(doc, |doc, (title, rows, missing)| {
        doc.heading(&title).sentences(missing.iter().map(|why| Sentence::new(why))).table(rows)
    });
    doc.method(&words::method(report))
}

/// The samples, and the comparisons.
fn tables(report: &CompareReport, of: &ComparedFigure) -> [Table; 2] {
    let names = ["n", "min", "median", "max", "mean", "SD", "CV"];
    let mut columns = vec![Column::words("")];
    columns.extend(names.iter().map(|name| Column::figures(name)));
    let mut samples = Table::new("", "", &columns);
    for (side, it) in report.sides.iter().zip(&of.samples) {
        let [min, _, median, _, max] = it.five_numbers.map(|value| figure(of.unit, value));
        let sd = it.sd.map(|sd| figure(of.unit, sd));
        let cv = it.sd.filter(|_| it.mean != 0.0).map(|sd| format!("{:.2} %", sd / it.mean.abs() * 100.0));
        let mut cells = vec![Cell::new(&side.label), Cell::new(it.values.len().to_string())];
        cells.extend([min, median, max, figure(of.unit, it.mean)].map(Cell::new));
        cells.extend([sd, cv].map(Cell::maybe));
        samples.rows.push(Row::new(cells));
    }
    let ranks = if report.paired { "Wilcoxon" } else { "Mann-Whitney" };
    let level = report.level * 100.0;
    let columns = [
        Column::words(""),
        Column::words("method"),
        Column::figures("difference"),
        Column::figures("change"),
        Column::figures(&format!("{level} % interval")).spare(1),
        Column::figures("p"),
    ];
    let means = if report.paired { "paired t" } else { "Welch's t" };
    let remark = format!("the answer has the interval of {ranks}; {means} only decides what is the same");
    let remark = if of.comparisons.iter().any(|it| it.means.is_some()) { remark } else { String::new() };
    let mut tests = Table::new("Differences", remark, &columns);
    for it in &of.comparisons {
        let median = of.samples.first().map_or(0.0, |first| first.five_numbers[2]);
        let mean = of.samples.first().map_or(0.0, |first| first.mean);
        let exact = if it.exact { "" } else { " (approx.)" };
        let rows =
            [Some((format!("{ranks}{exact}"), it.ranks, median)), it.means.map(|it| (means.to_owned(), it, mean))];
        for (method, estimate, base) in rows.into_iter().flatten() {
            tests.rows.push(Row::new(vec![
                Cell::new(format!("{} - A", it.side)),
                Cell::new(method),
                Cell::new(figure(of.unit, estimate.difference)),
                Cell::maybe((base != 0.0).then(|| change(estimate.difference / base.abs(), base))),
                Cell::maybe(estimate.interval.map(|it| interval(of.unit, it))),
                Cell::new(probability(estimate.p)),
            ]));
        }
    }
    [samples, tests]
}

/// What differs in the inventories: heading, table, and why it is not known.
fn inventories(report: &CompareReport) -> impl Iterator<Item = (String, Table, Option<String>)> {
    report.inventory.iter().map(|it| {
        let columns = [Column::words("host"), Column::words("parameter"), Column::words("A"), Column::words(&it.side)];
        let mut table = Table::new("", "", &columns);
        table.rows.extend(it.parameters.iter().map(|at| {
            let [a, b] = &at.cells;
            Row::new(vec![Cell::new(at.at.to_string()), Cell::new(&at.label), Cell::new(&a.text), Cell::new(&b.text)])
        }));
        let missing = match &it.missing {
            Some(why) => Some(clean(why)),
            None if it.parameters.is_empty() => Some("no parameter of either host differs".to_owned()),
            None => None,
        };
        let differ = match it.parameters.len() {
            0 => String::new(),
            1 => ", 1 parameter differs".to_owned(),
            n => format!(", {n} parameters differ"),
        };
        (format!("Inventory of the first runs of A and {}{differ}", it.side), table, missing)
    })
}

#[cfg(test)]
mod tests;
