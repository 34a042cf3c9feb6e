//! The tables of a comparison, the same in every format: the throughputs as ministat lists them, the differences, the runs.

use super::{is_limited, row_name};
use crate::data::ab::{Difference, Side};
use crate::data::ab_report::{AbReport, Sample};
use narrows_model::words::units::micros;
use narrows_render::figures::{grouped, precise};
use narrows_render::style::Tone;
use narrows_render::table::{Cell, Column, Row, Table};

/// Throughputs come close to one another.
const DIGITS: usize = 5;

fn rate(pps: f64) -> String {
    precise(pps, "pps", DIGITS)
}

fn signed(pps: f64) -> String {
    if pps > 0.0 { format!("+{}", rate(pps)) } else { rate(pps) }
}

/// `+1.25 ± 0.30 %`.
pub(super) fn percent(of: &Difference) -> String {
    let sign = if of.ratio < 0.0 { "−" } else { "+" };
    format!("{sign}{:.2} ± {:.2} %", (of.ratio * 100.0).abs(), of.half_ratio * 100.0)
}

/// The throughputs of both, a row for each configuration.
pub(super) fn throughputs(report: &AbReport) -> Table {
    let columns = [
        Column::words(""),
        Column::words("with"),
        Column::figures("runs"),
        Column::figures("min"),
        Column::figures("max").spare(2),
        Column::figures("median"),
        Column::figures("mean"),
        Column::figures("std. dev."),
    ];
    let mut table = Table::new("Throughput", format!("{}, frames per second, over the runs", report.goal), &columns);
    for row in &report.rows {
        let sides = [(Side::A, &row.a), (Side::B, &row.b)];
        for (nth, (side, sample)) in sides.into_iter().enumerate() {
            let name = if nth == 0 { row_name(report, row) } else { String::new() };
            let of = |value: fn(&Sample) -> f64| Cell::maybe(sample.as_ref().map(|it| rate(value(it))));
            table.rows.push(Row::new(vec![
                Cell::new(name),
                Cell::new(side.word()),
                Cell::new(sample.as_ref().map_or(0, |it| it.n).to_string()),
                of(|it| it.min),
                of(|it| it.max),
                of(|it| it.median),
                of(|it| it.mean).tone(Tone::Strong),
                Cell::maybe(sample.as_ref().and_then(|it| it.sd).map(rate)),
            ]));
        }
    }
    table
}

/// B less A, with its intervals.
pub(super) fn differences(report: &AbReport) -> Table {
    let columns = [
        Column::words(""),
        Column::figures("B − A"),
        Column::figures("of A"),
        Column::words("proven"),
        Column::figures("as ministat"),
        Column::figures("pooled s").spare(2),
    ];
    let remark = "95 % intervals: Welch; as ministat: Student's t with pooled deviation";
    let mut table = Table::new("Difference", remark, &columns);
    for row in &report.rows {
        let it = &row.row;
        let pps = |of: &Difference| format!("{} ± {}", signed(of.pps), rate(of.half_pps));
        let limited = is_limited(report, row);
        let proven = it.welch.as_ref().map(|of| match of.is_proven() {
            _ if limited => "limited",
            true => "yes",
            false => "no",
        });
        let mut line = Row::new(vec![
            Cell::new(row_name(report, row)),
            Cell::maybe(it.welch.as_ref().map(pps)),
            Cell::maybe(it.welch.as_ref().map(percent)).tone(Tone::Strong),
            Cell::maybe(proven.map(str::to_owned)),
            Cell::maybe(it.pooled.as_ref().map(percent)),
            Cell::maybe(it.pooled_s.map(rate)),
        ]);
        for remark in &it.remarks {
            line = line.note(Some(remark.clone()));
        }
        table.rows.push(line);
    }
    table
}

/// Every run with what it found.
pub(super) fn runs(report: &AbReport) -> Table {
    let mut columns = vec![Column::figures("run"), Column::words("with"), Column::figures("start")];
    columns.extend(report.rows.iter().map(|row| Column::figures(&row_name(report, row)).spare(1)));
    columns.push(Column::figures("invalid trials").spare(2));
    let mut table = Table::new("Runs", "in order of time", &columns);
    for (at, run) in report.runs.iter().enumerate() {
        let mut cells =
            vec![Cell::new((at + 1).to_string()), Cell::new(run.side.word()), Cell::new(micros(run.at_ms * 1000))];
        for row in &report.rows {
            let of = run.throughputs.iter().find(|it| (it.traffic, it.size) == (row.row.traffic, row.row.size));
            let more = |at_least: bool| if at_least { "≥ " } else { "" };
            cells.push(Cell::maybe(of.map(|of| format!("{}{}", more(of.at_least), rate(of.pps)))));
        }
        cells.push(Cell::new(grouped(run.invalid)));
        table.rows.push(Row::new(cells).note(run.left_out.as_ref().map(|why| format!("excluded: {why}"))));
    }
    table
}
