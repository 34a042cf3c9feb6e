//! The influence of one or two factors on a figure: a table with bars, and a picture.

mod svg;
#[cfg(test)]
mod tests;

pub use svg::picture;

use crate::campaign;
use crate::compare::words::figure;
use crate::doc::{Doc, Sentence};
use crate::format::{Document, Writer, formats};
use crate::table::{Cell, Column, Row, Table};
use narrows_model::run::campaign::{CampaignCell, CampaignReport};
use narrows_model::words::show::plural;
use serde::Serialize;

impl Document for Influence {
    const NAME: &'static str = "a sweep over factors";
    const FORMATS: &'static [Writer<Self>] = formats!(
        |it: &Influence, _| doc(&it.0),
        "For programs; the schema is in docs/ (campaign)",
        Writer::csv("Comma-separated values, one run per line", |it, _| Ok(campaign::csv(&it.0)))
    );
}

/// A campaign of one or two factors, shown as their influence.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Influence(pub CampaignReport);

/// Characters of the longest bar.
const BAR: usize = 20;

pub(crate) fn doc(report: &CampaignReport) -> Doc {
    let failed = report.runs.iter().filter_map(|it| Some(format!("run {} failed: {}", it.step, it.failed.as_ref()?)));
    Doc::new("Influence")
        .picture(Some(picture(report)))
        .headline(&title(report))
        .sentences([Sentence::new(&subtitle(report))])
        .table(cells(report))
        .warnings(report.warnings.iter().cloned().chain(failed))
}

/// `Influence of gro on goodput up`.
fn title(report: &CampaignReport) -> String {
    let names: Vec<&str> = report.factors.iter().map(|it| it.name.as_str()).collect();
    let of = if report.figure.is_empty() { "the figure" } else { &report.figure };
    format!("Influence of {} on {of}", names.join(" and "))
}

fn subtitle(report: &CampaignReport) -> String {
    format!(
        "{}, {} of each, in random order; {} % intervals",
        report.hosts.join(", "),
        plural(report.blocks, "run"),
        report.level * 100.0
    )
}

/// The command that compares the combinations, which decides whether they differ. `None` where it has none to compare, or more than
/// `sides_max`.
pub fn comparison(report: &CampaignReport, sides_max: usize) -> Option<String> {
    let ids = |cell: &CampaignCell| {
        let of = report.runs.iter().filter(|run| run.levels == cell.levels && run.value.is_some());
        of.map(|run| run.id.as_str()).collect::<Vec<_>>().join(",")
    };
    let sides: Vec<String> = report.cells.iter().map(ids).filter(|ids| !ids.is_empty()).collect();
    (2..=sides_max).contains(&sides.len()).then(|| format!("narrows compare {}", sides.join(" ")))
}

/// Every combination, in the order of the values, with its bar: full to the low end of the interval, shaded to the high end.
fn cells(report: &CampaignReport) -> Table {
    let mut columns: Vec<Column> = report.factors.iter().map(|it| Column::words(&it.name)).collect();
    columns.extend([
        Column::figures("runs").spare(3),
        Column::figures("mean"),
        Column::figures("interval").spare(1),
        Column::words("").spare(2),
    ]);
    let most = report.cells.iter().filter_map(high).fold(0.0, f64::max);
    let mut table = Table::new("Means", "", &columns);
    table.rows.extend(report.cells.iter().map(|it| {
        let mut row: Vec<Cell> = it.levels.iter().map(Cell::new).collect();
        row.push(Cell::new(it.runs.to_string()));
        row.push(Cell::maybe(it.mean.map(|mean| figure(report.unit, mean))));
        let interval = |[low, high]: [f64; 2]| format!("{} to {}", figure(report.unit, low), figure(report.unit, high));
        row.push(Cell::maybe(it.interval.map(interval)));
        row.push(Cell::new(bar(it, most)));
        Row::new(row)
    }));
    table
}

/// The high end of what is drawn.
fn high(cell: &CampaignCell) -> Option<f64> {
    Some(cell.interval.map_or(cell.mean?, |it| it[1]))
}

fn bar(cell: &CampaignCell, most: f64) -> String {
    let (Some(mean), true) = (cell.mean, most > 0.0) else { return String::new() };
    let columns = |value: f64| ((value / most).clamp(0.0, 1.0) * BAR as f64).round() as usize;
    let [low, high] = cell.interval.unwrap_or([mean, mean]).map(columns);
    "█".repeat(low) + &"▒".repeat(high.saturating_sub(low))
}
