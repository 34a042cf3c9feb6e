//! Times: latency, the buffer that bursts fill, recovery and reset.

use super::super::words::{self, size};
use super::sized::{each, row, sized};
use crate::figures::{grouped, nanos, pps};
use crate::style::Tone;
use crate::table::{Cell, Column, Table};
use crate::udp::text::rounded;
use narrows_model::forwarding::Test;
use narrows_model::forwarding::report::ForwardingReport;
use narrows_model::run::sweep::Spread;

/// Latency at the throughput.
pub(in super::super) fn latency(report: &ForwardingReport) -> Table {
    let mut columns = vec![Column::figures("load").spare(2)];
    columns.extend(["min", "mean", "p50", "p99", "p99.9", "max", "PDV"].map(Column::figures));
    columns.push(Column::figures("trials").spare(3));
    columns.push(Column::figures("stamps").spare(4));
    let mut table = sized(report, "Latency", "at the throughput; PDV: p99.9 − min (RFC 8219)", &columns);
    for (traffic, view) in each(report) {
        let Some(it) = &view.latency else { continue };
        let mut cells = vec![Cell::new(pps(it.load_pps))];
        let times = [it.min_ns, rounded(it.mean_ns), it.p50_ns, it.p99_ns, it.p99_9_ns, it.max_ns, it.pdv_ns];
        cells.extend(times.iter().enumerate().map(|(at, ns)| Cell::new(nanos(*ns)).tone_if(at == 1, Tone::Strong)));
        cells.extend([Cell::new(it.repetitions.to_string()), Cell::new(grouped(it.stamps))]);
        table.rows.push(row(report, &table, traffic, Cell::new(size(view.size)), cells));
    }
    table
}

/// The longest bursts without loss.
pub(in super::super) fn back_to_back(report: &ForwardingReport) -> Table {
    let columns = [
        Column::figures("average burst"),
        Column::figures("min").spare(2),
        Column::figures("median").spare(3),
        Column::figures("max").spare(2),
        Column::figures("at"),
        Column::figures("implied buffer"),
        Column::figures("corrected"),
        Column::figures("bursts").spare(1),
    ];
    let remark = "frames; RFC 9004: implied = average ÷ rate, corrected for what left meanwhile";
    let mut table = sized(report, "Back-to-back", remark, &columns);
    for (traffic, view) in each(report) {
        let Some(it) = &view.bursts else { continue };
        let more = if it.at_least { "≥ " } else { "" };
        let frames = |of: f64| Cell::new(grouped(rounded(of)));
        let time = |ns: f64| format!("{more}{}", nanos(rounded(ns)));
        let cells = vec![
            Cell::new(format!("{more}{}", grouped(rounded(it.mean_frames)))).tone(Tone::Strong),
            frames(it.frames.min),
            frames(it.frames.median),
            frames(it.frames.max),
            Cell::new(pps(it.offered_pps)),
            Cell::new(time(it.implied_ns)),
            Cell::maybe(it.corrected_ns.map(time)).tone(Tone::Strong),
            Cell::new(it.frames.n.to_string()),
        ];
        let note = it.at_least.then(|| "even the longest burst that was tried passed".to_owned());
        table.rows.push(row(report, &table, traffic, Cell::new(size(view.size)), cells).note(note));
    }
    table
}

/// Recoveries and resets.
pub(in super::super) fn outages(report: &ForwardingReport) -> Table {
    let columns = [
        Column::words("test"),
        Column::figures("min"),
        Column::figures("median"),
        Column::figures("max"),
        Column::figures("times"),
    ];
    let remark = "recovery: from the end of the overload to the last loss; reset: the outage";
    let mut table = sized(report, "Recovery and reset", remark, &columns);
    for (traffic, view) in each(report) {
        let tests =
            [(Test::Recovery, view.recovery_ns, &view.recovery_notes), (Test::Reset, view.reset_ns, &view.reset_notes)];
        for (test, it, notes) in tests {
            if it.is_none() && notes.is_empty() {
                continue;
            }
            let time = |of: fn(&Spread) -> f64| Cell::maybe(it.as_ref().map(|it| nanos(rounded(of(it)))));
            let cells = vec![
                Cell::new(words::test(test)),
                time(|it| it.min),
                time(|it| it.median).tone(Tone::Strong),
                time(|it| it.max),
                Cell::new(it.as_ref().map_or(0, |it| it.n).to_string()),
            ];
            let line = row(report, &table, traffic, Cell::new(size(view.size)), cells);
            table.rows.push(notes.iter().fold(line, |line, note| line.note(Some(note.clone()))));
        }
    }
    table
}
