//! The devices under test while they were measured.

use super::super::sized::{each, row, sized};
use super::super::words::size;
use crate::data::report::{DeviceView, ForwardingReport};
use narrows_model::run::sweep::Spread;
use narrows_render::figures::{digits, grouped, pps_short, ratio};
use narrows_render::style::Tone;
use narrows_render::table::{Cell, Column, Table};

/// One row for each size and device.
pub(in super::super) fn dut(report: &ForwardingReport) -> Table {
    let mut hops: Vec<&str> = Vec::new();
    for it in each(report).flat_map(|(_, view)| &view.devices) {
        if !hops.contains(&it.hop.as_str()) {
            hops.push(&it.hop);
        }
    }
    let mut columns = Vec::new();
    columns.extend((hops.len() > 1).then(|| Column::words("device")));
    columns.extend([
        Column::figures("interrupts/s"),
        Column::figures("a frame"),
        Column::figures("receive softirqs/s").spare(1),
        Column::figures("busiest CPU in them"),
        Column::figures("most"),
        Column::figures("resets"),
        Column::figures("link changes").spare(1),
        Column::figures("trials").spare(2),
    ]);
    let remark = "medians over the trials; CPU time in interrupts and softirqs";
    let mut table = sized(report, "Device under test", remark, &columns);
    for (traffic, view) in each(report) {
        for it in &view.devices {
            let mut cells = Vec::new();
            cells.extend((hops.len() > 1).then(|| Cell::new(&it.hop)));
            cells.extend(figures(it));
            let row = row(report, &table, traffic, Cell::new(size(view.size)), cells);
            table.rows.push(row.note(it.silent.as_ref().map(|why| format!("{} was not monitored: {why}", it.hop))));
        }
    }
    // Told once, not with each size.
    let mut shared: Vec<&str> =
        each(report).flat_map(|(_, view)| &view.devices).filter(|it| it.shared).map(|it| it.hop.as_str()).collect();
    shared.dedup();
    if let (Some(hop), Some(row)) = (shared.first(), table.rows.pop()) {
        let says = format!("{hop} shares its kernel with the tester: interrupts and CPU times include both");
        table.rows.push(row.note(Some(says)));
    }
    table
}

fn figures(it: &DeviceView) -> Vec<Cell> {
    let median = |of: &Option<Spread>| of.as_ref().map(|it| it.median);
    let count = |n: u32| Cell::new(grouped(n)).tone_if(n > 0, Tone::Bad);
    vec![
        Cell::maybe(median(&it.interrupts_per_second).map(pps_short)),
        Cell::maybe(median(&it.interrupts_per_frame).map(digits)),
        Cell::maybe(median(&it.net_rx_per_second).map(pps_short)),
        Cell::maybe(median(&it.interrupt_share).map(ratio)).tone(Tone::Strong),
        Cell::maybe(it.interrupt_share.as_ref().map(|it| ratio(it.max))),
        count(it.resets),
        count(it.link_changes),
        Cell::new(grouped(it.trials)),
    ]
}
