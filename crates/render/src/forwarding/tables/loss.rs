//! Loss over the load.

use super::super::words::size;
use crate::figures::{float, ratio};
use crate::style::Tone;
use crate::table::{Cell, Column, Row, Table};
use crate::udp::text::rounded;
use narrows_model::forwarding::report::{ForwardingReport, SizeView, TrafficView};

/// Loss over the load, a table for each traffic and a column for each size.
pub(in super::super) fn loss(report: &ForwardingReport) -> Vec<Table> {
    report
        .traffic
        .iter()
        .filter(|it| it.sizes.iter().any(|size| !size.loss.is_empty()))
        .map(|it| curve(report, it))
        .collect()
}

fn curve(report: &ForwardingReport, traffic: &TrafficView) -> Table {
    let sizes: Vec<&SizeView> = traffic.sizes.iter().filter(|size| !size.loss.is_empty()).collect();
    let spare = |at: usize| u8::try_from(at).unwrap_or(u8::MAX);
    let mut columns = vec![Column::figures("load")];
    columns.extend(sizes.iter().enumerate().map(|(at, it)| Column::figures(&size(it.size)).spare(spare(at))));
    let name = if report.traffic.len() > 1 {
        format!("Frame loss rate, {}", traffic.name)
    } else {
        "Frame loss rate".to_owned()
    };
    let mut table = Table::new(name, "lost and unsent of all that was due; load in % of the highest offered", &columns);
    let tenths = |percent: f64| rounded(percent * 10.0);
    let mut loads: Vec<u64> = sizes.iter().flat_map(|it| &it.loss).map(|it| tenths(it.load_percent)).collect();
    loads.sort_unstable_by(|a, b| b.cmp(a));
    loads.dedup();
    for load in loads {
        let mut cells = vec![Cell::new(format!("{:.1} %", float(load) / 10.0))];
        let mut unsent = Vec::new();
        for it in &sizes {
            let point = it.loss.iter().find(|point| tenths(point.load_percent) == load);
            let bad = point.is_some_and(|point| point.loss_ratio > 0.0);
            let cell = Cell::maybe(point.map(|point| ratio(point.loss_ratio)));
            cells.push(if bad { cell.tone(Tone::Bad) } else { cell });
            if let Some(point) = point.filter(|point| point.unsent_ratio > 0.0) {
                unsent.push(format!("{} {}", size(it.size), ratio(point.unsent_ratio)));
            }
        }
        let note = (!unsent.is_empty()).then(|| format!("of it never sent, the tester's part: {}", unsent.join(", ")));
        table.rows.push(Row::new(cells).note(note));
    }
    table
}
