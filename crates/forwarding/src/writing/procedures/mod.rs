//! The sections of a report: one for each procedure, and what else is shown of every size. A file and a line in the table for each.

mod back_to_back;
mod frmol;
mod latency;
mod loss;
mod outages;
mod scaling;
mod throughput;

use super::section::Section;
use super::tables;
use crate::data::report::ForwardingReport;
use narrows_render::table::Table;

/// Every section, in the order of the report.
pub(super) const ALL: &[Section] = &[
    throughput::SECTION,
    latency::SECTION,
    loss::SECTION,
    back_to_back::SECTION,
    frmol::SECTION,
    outages::SECTION,
    scaling::SECTION,
    Section::of("modifiers", "Modifiers", |it| vec![tables::modifiers(it)]),
    Section::of("devices", "Device under test", |it| vec![tables::dut(it)]),
];

/// The tables of the results, in the order of every format.
pub(super) fn results(report: &ForwardingReport) -> Vec<Table> {
    let tables = ALL.iter().flat_map(|section| (section.tables)(report)).chain([tables::tester(report)]);
    tables.map(Table::trimmed).collect()
}
