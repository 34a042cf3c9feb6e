//! The results of a campaign.

mod csv;
pub mod svg;
mod words;

pub use csv::table as csv;

use crate::compare::words::{figure, probability, share};
use crate::doc::{Doc, Sentence};
use crate::format::{Writer, document};
use crate::style::Tone;
use crate::table::{Cell, Column, Row, Table};
use narrows_model::run::campaign::{Better, CampaignEffect, CampaignReport, EffectVerdict};
use narrows_model::words::show::plural;

document!(
    CampaignReport,
    "a campaign",
    doc,
    Writer::csv("Comma-separated values, one run per line", |it, _| Ok(csv(it)))
);

/// Combinations that a text shows without `--full`: the best ones.
const CELLS: usize = 16;
/// Interactions that are not proven are shown up to this number of interactions.
const INTERACTIONS: usize = 15;

pub(crate) fn doc(report: &CampaignReport, full: bool) -> Doc {
    Doc::new("Campaign")
        .picture(report.mean.map(|_| svg::picture(report)))
        .headline(&words::title(report))
        .sentences(words::findings(report).map(|it| Sentence::new(&it)))
        .tables(tables(report, full))
        .warnings(words::notes(report))
        .method(&words::method(report))
}

/// The effects of so many factors that are shown: of many interactions those that are proven.
fn shown(report: &CampaignReport, terms: usize, full: bool) -> Vec<&CampaignEffect> {
    let of: Vec<_> = report.effects.iter().filter(|it| it.terms.len() == terms).collect();
    let all = full || terms == 1 || of.len() <= INTERACTIONS;
    let proven = |it: &CampaignEffect| matches!(it.verdict, EffectVerdict::Raises | EffectVerdict::Lowers);
    of.into_iter().filter(|it| all || proven(it)).collect()
}

fn tables(report: &CampaignReport, full: bool) -> Vec<Table> {
    let pairs = shown(report, 2, full);
    let left_out = match report.effects.iter().filter(|it| it.terms.len() == 2).count() - pairs.len() {
        0 => String::new(),
        count => format!("{count} that are not proven are left out (--full)"),
    };
    let mut tables = vec![
        effects(report, "Main effects", String::new(), shown(report, 1, full)),
        effects(report, "Two-way interactions", left_out, pairs),
        cells(report, full),
    ];
    tables.retain(|it| !it.rows.is_empty());
    tables
}

fn effects(report: &CampaignReport, title: &str, remark: String, all: Vec<&CampaignEffect>) -> Table {
    let level = format!("{} % interval", report.level * 100.0);
    let columns = [
        Column::words("factor"),
        Column::figures("effect").spare(1),
        Column::figures("of the mean"),
        Column::figures(&level).spare(3),
        Column::figures("p").spare(2),
        Column::words("verdict"),
    ];
    let mut table = Table::new(title, remark, &columns);
    let of_mean = |value: f64| report.mean.filter(|it| *it != 0.0).map(|mean| share(value / mean.abs()));
    table.rows.extend(all.into_iter().map(|it| {
        let good = match (it.verdict, report.better) {
            (EffectVerdict::Raises, Better::Higher) | (EffectVerdict::Lowers, Better::Lower) => Some(Tone::Good),
            (EffectVerdict::Raises | EffectVerdict::Lowers, _) => Some(Tone::Mark),
            _ => Some(Tone::Faint),
        };
        let interval = it.interval.and_then(|[low, high]| Some(format!("{} to {}", of_mean(low)?, of_mean(high)?)));
        Row::new(vec![
            Cell::new(words::terms(&it.terms)),
            Cell::maybe(it.effect.map(|it| figure(report.unit, it))),
            Cell::maybe(it.effect.and_then(of_mean)),
            Cell::maybe(interval),
            Cell::maybe(it.p_holm.map(probability)),
            Cell { tone: good, ..Cell::new(words::verdict(it, report)) },
        ])
    }));
    table
}

fn cells(report: &CampaignReport, full: bool) -> Table {
    let mut columns: Vec<Column> = report.factors.iter().map(|it| Column::words(&it.name)).collect();
    columns.push(Column::figures("runs").spare(2));
    columns.push(Column::figures("mean"));
    columns.push(Column::figures(&format!("{} % interval", report.level * 100.0)).spare(1));
    let mut shown: Vec<_> = report.cells.iter().filter(|it| it.mean.is_some()).collect();
    shown.sort_by(|a, b| {
        let order = a.mean.partial_cmp(&b.mean).unwrap_or(std::cmp::Ordering::Equal);
        if report.better == Better::Higher { order.reverse() } else { order }
    });
    let more = if full { 0 } else { shown.len().saturating_sub(CELLS) };
    shown.truncate(shown.len() - more);
    let remark = match more {
        0 => "best first".to_owned(),
        more => format!("best first; {} left out (--full)", plural(more as u64, "combination")),
    };
    let mut table = Table::new("Combinations", remark, &columns);
    table.rows.extend(shown.into_iter().map(|it| {
        let mut row: Vec<Cell> = words::levels(report, &it.levels).map(|(_, level)| Cell::new(level)).collect();
        row.push(Cell::new(it.runs.to_string()));
        row.push(Cell::maybe(it.mean.map(|mean| figure(report.unit, mean))));
        let interval = |[low, high]: [f64; 2]| format!("{} to {}", figure(report.unit, low), figure(report.unit, high));
        row.push(Cell::maybe(it.interval.map(interval)));
        Row::new(row)
    }));
    table
}

#[cfg(test)]
mod tests;
