//! For a terminal.

use super::csv;
use super::{signed, value};
use crate::doc::page::Page;
use crate::doc::{Doc, Sentence};
use crate::format::{Writer, document};
use crate::style::{Style, Tone};
use crate::table::{Cell, Column, Row, Table};
use crate::words::sparkline;
use narrows_model::run::history::{HistoryReport, StoredRun, TREND_RUNS_MIN, TrendChange, TrendReport, TrendSeries};
use narrows_model::words::date;
use narrows_model::words::show::plural;

document!(
    HistoryReport,
    "a list of runs",
    |it, _| list(it),
    Writer::csv("Comma-separated values, one figure per line", |it, _| Ok(csv::list(it)))
);
document!(
    TrendReport,
    "figures over time",
    |it, _| trend(it),
    Writer::csv("Comma-separated values, one run per line", |it, _| Ok(csv::trend(it)))
);

pub(crate) fn list(report: &HistoryReport) -> Doc {
    let doc = Doc::new("Runs");
    if report.runs.is_empty() {
        return doc.sentences([Sentence::new(if report.total == 0 { "no runs match" } else { "no more runs" })]);
    }
    let end = report.offset + report.runs.len() as u64;
    let doc = doc.table(runs(report).trimmed());
    if end == report.total && report.offset == 0 {
        return doc;
    }
    let more = if end < report.total { format!("; older ones: --offset {end}") } else { String::new() };
    doc.method(&format!("{} to {end} of {}{more}", report.offset + 1, plural(report.total, "run")))
}

fn runs(report: &HistoryReport) -> Table {
    let columns = [
        Column::id("run"),
        Column::words("started (UTC)").spare(1),
        Column::words("command"),
        Column::words("server"),
        Column::words("figure").spare(5),
        Column::figures("value"),
        Column::words("verdict").spare(2),
        Column::words("tags").spare(4),
        Column::words("client").spare(6),
    ];
    let mut table = Table::new("", "", &columns);
    for run in &report.runs {
        let first = run.figures.first();
        table.rows.push(Row::new(vec![
            Cell::new(&run.id),
            Cell::new(date::minute(run.started_unix_us)),
            Cell::new(&run.command),
            Cell::new(&run.server),
            Cell::maybe(first.map(|it| it.name.clone())),
            Cell::maybe(first.map(|it| value(it.unit, it.value))),
            Cell::new(&run.verdict),
            Cell::new(run.tags.join(" ")),
            Cell::new(&run.client),
        ]));
    }
    table
}

/// One run as it is listed.
pub fn entry(run: &StoredRun, style: Style) -> String {
    let mut page = Page::new(style);
    let size = format!("{} bytes, {} as JSON", run.stored_bytes, run.raw_bytes);
    let client = if run.client.is_empty() { String::new() } else { format!("{} and ", run.client) };
    let path = format!("{client}{} ({})", run.server, run.family);
    let rows = [
        ("run       ", run.id.clone()),
        ("started   ", format!("{} UTC", date::minute(run.started_unix_us))),
        ("user      ", run.who.clone()),
        ("hosts     ", if run.family.is_empty() { run.server.clone() } else { path }),
        ("command   ", format!("{}, plan {}", run.command, run.plan)),
        ("verdict   ", run.verdict.clone()),
        ("tags      ", run.tags.join(" ")),
        ("made by   ", run.made_by.clone()),
        ("size      ", size),
    ];
    for (label, words) in rows.iter().filter(|(_, words)| !words.is_empty()) {
        page.labelled(label, &crate::words::clean(words), None);
    }
    for it in &run.figures {
        page.labelled("figure    ", &crate::words::clean(&format!("{}: {}", it.name, value(it.unit, it.value))), None);
    }
    page.finish()
}

pub(crate) fn trend(report: &TrendReport) -> Doc {
    let doc = Doc::new("Figures over time");
    if report.series.is_empty() {
        return doc.plain("no runs match");
    }
    report.series.iter().fold(doc, one).picture(Some(super::svg::picture(report)))
}

fn one(doc: Doc, series: &TrendSeries) -> Doc {
    let of = &series.of;
    let hosts = [&of.client, &of.server].map(String::as_str).into_iter().filter(|name| !name.is_empty());
    let words =
        [hosts.collect::<Vec<_>>().join(" and "), of.family.clone(), of.command.clone(), format!("plan {}", of.plan)];
    let words: Vec<String> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let values: Vec<f64> = series.points.iter().map(|it| it.value).collect();
    let figure = |it: f64| value(series.unit, it);
    let says = match &series.points[..] {
        [first, .., last] => {
            let [from, to] = [first, last].map(|it| date::minute(it.started_unix_us));
            let runs = plural(series.points.len() as u64, "run");
            let [low, high] =
                [f64::min as fn(f64, f64) -> f64, f64::max].map(|of| values.iter().copied().fold(last.value, of));
            let [median, low, high, last] = [series.median, low, high, last.value].map(figure);
            Some(format!("{from} to {to}, {runs}: median {median}, {low} to {high}, last {last}"))
        }
        [only] => Some(format!("{}, 1 run: {}", date::minute(only.started_unix_us), figure(only.value))),
        [] => None,
    };
    let changes = series.changes.iter().flat_map(|change| changed(series, change));
    let none = Some(unchanged(series.points.len())).filter(|_| series.changes.is_empty());
    let all: Vec<_> = says.iter().map(|says| Sentence::new(says)).chain(changes).chain(none).collect();
    doc.heading(&format!("{}: {}", of.figure, words.join(", ")))
        .drawing(move |wide| vec![sparkline(&values, wide.clamp(10, 100), None)])
        .sentences(all)
}

/// That there is no change point, or can be none.
fn unchanged(runs: usize) -> Sentence {
    let words = if runs < TREND_RUNS_MIN {
        format!("too few runs to find a change: {TREND_RUNS_MIN} are needed")
    } else {
        "no change found".to_owned()
    };
    Sentence::new(&words).tone(Tone::Faint)
}

/// What changed, and what changed in the inventory with it.
fn changed(series: &TrendSeries, change: &TrendChange) -> [Sentence; 2] {
    let of = |it: f64| value(series.unit, it);
    let [low, high] = change.interval.map(signed);
    let better = series.better.map(|it| format!(", {}", it.word(change.after - change.before))).unwrap_or_default();
    let words = format!(
        "! {} {} ({low} to {high}){better}, {} to {}, between {} and {}",
        date::minute(change.between_unix_us[1]),
        signed(change.change),
        of(change.before),
        of(change.after),
        change.between[0],
        change.between[1],
    );
    let mut inventory: Vec<String> = change
        .inventory
        .iter()
        .map(|it| format!("{} {}: {} to {}", it.at, it.label, it.cells[0].text, it.cells[1].text))
        .collect();
    inventory.extend(change.inventory_missing.as_ref().map(|why| format!("inventory: {why}")));
    if inventory.is_empty() {
        inventory.push("no parameter of either host changed".to_owned());
    }
    [Sentence::new(&words).tone(Tone::Mark), Sentence::new(&inventory.join("; "))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::tests;

    #[test]
    fn a_list_and_a_run() {
        let style = Style { width: 140, ..Style::default() };
        insta::assert_snapshot!("list", list(&tests::list()).text(style));
        insta::assert_snapshot!("list-narrow", list(&tests::list()).text(Style { width: 80, ..style }));
        insta::assert_snapshot!("entry", entry(&tests::list().runs[0], style));
    }

    #[test]
    fn figures_over_time() {
        let style = Style { width: 100, ..Style::default() };
        insta::assert_snapshot!("trend", trend(&tests::trend()).text(style));
        let mut steady = tests::trend();
        steady.series[0].changes.clear();
        let text = trend(&steady).text(style);
        assert_eq!(text.matches("\n  no change found\n").count(), 1, "of the series with enough runs: {text}");
    }
}
