//! The flows of a receiver: their sum, and the outliers.

use super::text::{line, plural_of};
use crate::doc::page::Page;
use crate::figures::{float, grouped, pps, ratio};
use crate::style::Tone;
use crate::table::{Cell, Column, Row, Table};
use narrows_model::load::frames::FlowGot;
use narrows_model::load::frames_report::FramesReceived;

/// Maximum number of flows shown; of more, half of them from each end.
const FEW: usize = 10;

pub(super) fn flows(page: &mut Page, it: &FramesReceived) {
    let columns = [
        Column::words("source"),
        Column::words("destination"),
        Column::figures("frames"),
        Column::figures("pps"),
        Column::figures("lost"),
        Column::figures("reordered"),
        Column::figures("duplicated").spare(1),
    ];
    let mut table = Table::new("flows", "by frames received, duplicates included", &columns);
    if it.flows.len() <= FEW || page.style().full {
        table.rows.extend(it.flows.iter().map(|flow| row(flow, it)));
        crate::table::text(page, &table);
    } else {
        let (frequent, lossy) = ends(&it.flows);
        "by frames received, duplicates included".clone_into(&mut table.remark);
        table.rows.extend(frequent.iter().map(|flow| row(flow, it)));
        let mut worst = Table::new("flows", "with the most loss", &columns);
        worst.rows.extend(lossy.iter().map(|flow| row(flow, it)));
        crate::table::text(page, &table);
        crate::table::text(page, &worst);
    }
    if !it.flows.is_empty() {
        total(page, it);
    }
    if it.flows_left_out > 0 {
        let text = format!("{} of flows beyond the table's size", plural_of(it.flows_left_out, "frame"));
        page.labelled("  ! ", &text, Some(Tone::Mark));
    }
}

fn row(flow: &FlowGot, it: &FramesReceived) -> Row {
    let seconds = float(it.elapsed_ns) / 1e9;
    let speed = if seconds > 0.0 { pps(float(flow.received) / seconds) } else { "–".to_owned() };
    Row::new(vec![
        Cell::new(&flow.source),
        Cell::new(&flow.destination),
        Cell::new(grouped(flow.received)),
        Cell::new(speed),
        Cell::maybe(flow.lost.map(grouped)),
        Cell::new(grouped(flow.reordered)),
        Cell::new(grouped(flow.duplicates)),
    ])
}

/// The flows with the most frames and those with the most loss; no flow is in both.
fn ends(flows: &[FlowGot]) -> (Vec<&FlowGot>, Vec<&FlowGot>) {
    let mut order: Vec<&FlowGot> = flows.iter().collect();
    order.sort_by_key(|flow| (std::cmp::Reverse(flow.lost.unwrap_or(0)), flow.received));
    let worst: Vec<&FlowGot> = order.into_iter().take(FEW / 2).collect();
    let not_worst = |flow: &&FlowGot| !worst.iter().any(|it| std::ptr::eq(*it, *flow));
    (flows.iter().filter(not_worst).take(FEW / 2).collect(), worst)
}

fn total(page: &mut Page, it: &FramesReceived) {
    let sum = |of: fn(&FlowGot) -> u64| it.flows.iter().fold(0_u64, |sum, flow| sum.saturating_add(of(flow)));
    let counts = || it.flows.iter().map(|flow| flow.received);
    let mut text = format!(
        "{}, {}, from {} to {} each",
        plural_of(it.flows.len() as u64, "flow"),
        plural_of(sum(|flow| flow.received), "frame"),
        grouped(counts().min().unwrap_or(0)),
        grouped(counts().max().unwrap_or(0)),
    );
    let hurt = it.flows.iter().filter(|flow| flow.lost.is_some_and(|lost| lost > 0)).count() as u64;
    if it.flows.iter().any(|flow| flow.lost.is_none()) {
        text += "; loss per flow unknown: the flows were not round-robin";
    } else {
        let lost = sum(|flow| flow.lost.unwrap_or(0));
        let all = sum(|flow| flow.received).saturating_sub(sum(|flow| flow.duplicates)).saturating_add(lost);
        let share = if all == 0 { String::new() } else { format!(" ({})", ratio(float(lost) / float(all))) };
        let of = if hurt > 0 { format!(" in {}", plural_of(hurt, "flow")) } else { String::new() };
        text += &format!("; {} lost{share}{of}", grouped(lost));
    }
    if let Some(silent @ 1..) = it.flows_silent {
        text += &format!("; nothing received of {}", plural_of(silent, "more flow"));
    }
    page.blank();
    line(page, "all flows", &text, (hurt > 0 || it.flows_silent.is_some_and(|n| n > 0)).then_some(Tone::Mark));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_many_flows_are_shown_and_none_twice() {
        let flow = |n: u64| FlowGot {
            source: n.to_string(),
            received: 100 - n,
            lost: Some(u64::from(n == 2)),
            ..FlowGot::default()
        };
        let flows: Vec<FlowGot> = (0..50).map(flow).collect();
        let (frequent, lossy) = ends(&flows);
        let names = |flows: &[&FlowGot]| flows.iter().map(|flow| flow.source.clone()).collect::<Vec<_>>();
        assert_eq!(names(&frequent), ["0", "1", "3", "4", "5"]);
        assert_eq!(names(&lossy), ["2", "49", "48", "47", "46"]);
    }
}
