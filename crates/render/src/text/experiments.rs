//! The experiments that separated hypotheses.

use super::page::Page;
use crate::words::{clean, columns, left, right};
use narrows_model::Report;
use narrows_model::words::units::bps;

pub(super) fn write(page: &mut Page, report: &Report) {
    if report.experiments.is_empty() {
        return;
    }
    page.heading("experiments", "(goodput under each)");
    let ids = report.experiments.iter().map(|experiment| clean(&experiment.id));
    let longest = ids.map(|id| columns(&id)).max().unwrap_or(0).min(28);
    for experiment in &report.experiments {
        let lead = format!("  {} {}  ", left(&clean(&experiment.id), longest), right(&bps(experiment.goodput_bps), 11));
        page.labelled(&lead, &clean(&experiment.what), None);
    }
}
