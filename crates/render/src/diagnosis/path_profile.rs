//! The path profile: what was offered against what arrived, one bar a step.

use super::roofline::Scale;
use crate::doc::{Doc, Sentence};
use crate::table::{Cell, Column, Row, Table};
use crate::words::share;
use narrows_model::Report;
use narrows_model::run::report::PathProfileView;
use narrows_model::words::units::{bps, bytes, micros};

pub(super) fn add(doc: Doc, report: &Report) -> Doc {
    let Some(profile) = &report.accounts.path_profile else { return doc };
    let Some(scale) = Scale::over(profile.steps.iter().map(|step| step.offered_bps)) else { return doc };
    let columns = ["offered", "delivered", "lost", "queue"].map(Column::figures);
    let mut table = Table::new("", "", &columns);
    for step in &profile.steps {
        let (offered, delivered) = (step.offered_bps, step.delivered_bps);
        let queue = micros(step.queue_us.max(0.0) as u64);
        let cells = [bps(offered), bps(delivered), share(step.loss), queue].map(Cell::new);
        table.rows.push(Row::new(cells.into()).bar(None, move |wide| {
            let [delivered, offered] = [delivered, offered].map(|rate| scale.column(rate, wide));
            "█".repeat(delivered) + &"░".repeat(offered.saturating_sub(delivered))
        }));
    }
    doc.drawn_section("path profile", COLUMNS, "█ delivered, ░ offered")
        .sentences(sentences(profile).iter().map(|line| Sentence::new(line)))
        .table(table)
}

/// What the columns are of: delivered rate and loss are those of one part of each step.
const COLUMNS: &str = "UDP steps: offered; delivered and lost after a first burst";

/// What the profile says, in sentences.
pub(crate) fn sentences(profile: &PathProfileView) -> Vec<String> {
    let mut sentences = vec![profile.summary.clone()];
    if let (Some([low, high]), Some(limit)) = (profile.capacity_interval_bps, &profile.limit) {
        // What the load before it left of a bucket is what the steps found.
        let bucket = profile
            .bucket_bytes
            .map_or_else(String::new, |depth| format!(", a bucket of at least {}", bytes(depth as u64)));
        sentences[0] += &format!(" ({} to {}, limit: {limit}{bucket})", bps(low), bps(high));
    }
    if let Some([least, median, high]) = profile.idle_rtt_us {
        let [least, median, high, jitter] =
            [least, median, high, profile.jitter_us].map(|us| micros(us.max(0.0).round() as u64));
        sentences.push(format!(
            "idle RTT: minimum {least}, median {median}, 95th percentile {high}; the one-way delay varies by {jitter}"
        ));
    }
    let [sent, lost] = profile.lost_below;
    if lost > 0 {
        sentences.push(format!("at rates that the path carries, {lost} of {sent} datagrams were lost"));
    }
    if profile.reordered > 0.0 || profile.duplicated > 0.0 {
        sentences.push(format!(
            "{} of the datagrams arrived out of order, {} twice",
            share(profile.reordered),
            share(profile.duplicated)
        ));
    }
    sentences
}
