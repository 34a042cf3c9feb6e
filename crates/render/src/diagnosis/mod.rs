//! A diagnosis: the verdict first, on one screen, then the accounts behind it.

pub(crate) mod budget;
pub(crate) mod hosts;
pub(crate) mod kept;
mod latency;
pub(crate) mod path_profile;
pub(crate) mod places;
pub(crate) mod roofline;
pub(crate) mod rounds;
pub(crate) mod verdict;
mod weighed;

pub use weighed::weighed;

use crate::doc::{Doc, Pair};
use crate::format::document;
use crate::style::Style;
use narrows_model::Report;
use narrows_model::words::units::bps;

document!(Report, "a diagnosis", doc);

/// The whole report. On a terminal of 100 columns it usually has at most 45 lines, unless it is `full`.
pub(crate) fn doc(report: &Report, full: bool) -> Doc {
    Doc::new(&verdict::name(report))
        .picture(Some(crate::picture::on_page(report)))
        .then(|doc| verdict::add(doc, report, full))
        .then(|doc| roofline::add(doc, report, full))
        .then(|doc| path_profile::add(doc, report))
        .then(|doc| latency::add(doc, report))
        .then(|doc| budget::add(doc, report))
        .then(|doc| crate::ledger::add(doc, report, full))
        .then(|doc| experiments(doc, report))
        .then(|doc| rounds::add(doc, report))
        .then(|doc| hosts::add(doc, report, full))
}

/// On a terminal.
pub fn text(report: &Report, style: Style) -> String {
    doc(report, style.full).text(style)
}

/// For a ticket or a wiki.
pub fn markdown(report: &Report) -> String {
    doc(report, true).markdown()
}

/// The experiments that separated hypotheses.
fn experiments(doc: Doc, report: &Report) -> Doc {
    if report.experiments.is_empty() {
        return doc;
    }
    let of = |it: &narrows_model::run::report::ExperimentView| Pair::new(&it.id, &it.what).figure(&bps(it.goodput_bps));
    doc.section("experiments", "goodput under each").pairs(report.experiments.iter().map(of))
}
