//! The path profile: what was offered against what arrived, one bar a step.

use super::page::Page;
use super::roofline::Scale;
use crate::style::Tone;
use crate::words::{columns, right, share};
use narrows_model::Report;
use narrows_model::run::report::PathProfileView;
use narrows_model::words::units::{bps, bytes, micros};

pub(super) fn write(page: &mut Page, report: &Report) {
    let Some(profile) = &report.accounts.path_profile else { return };
    let Some(scale) = Scale::over(profile.steps.iter().map(|step| step.offered_bps)) else { return };
    page.heading("path profile", &format!("({COLUMNS}; █ delivered, ░ offered)"));
    for line in sentences(profile) {
        page.labelled("  ", &line, None);
    }
    for step in &profile.steps {
        let lead = format!("  {} {} ", right(&bps(step.offered_bps), 11), right(&bps(step.delivered_bps), 11));
        let tail = format!(" {} lost, {} queue", share(step.loss), micros(step.queue_us.max(0.0) as u64));
        if columns(&lead) + columns(&tail) > page.width() {
            page.labelled(&lead, tail.trim_start(), Some(Tone::Faint));
            continue;
        }
        let wide = page.width().saturating_sub(columns(&lead) + columns(&tail) + 1);
        let (delivered, offered) = (scale.column(step.delivered_bps, wide), scale.column(step.offered_bps, wide));
        let bar: String = (0..wide)
            .map(|at| {
                if at < delivered {
                    '█'
                } else if at < offered {
                    '░'
                } else {
                    ' '
                }
            })
            .collect();
        page.line(&format!("{lead}{bar}{}", page.style().paint(Tone::Faint, &tail)));
    }
}

/// What the columns are of: delivered rate and loss are those of one part of each step.
pub(crate) const COLUMNS: &str = "UDP steps: offered; delivered and lost after a first burst";

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
