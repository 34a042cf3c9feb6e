//! The sweep: its report from what was recorded, and that report as table, CSV and picture. As JSON it is
//! [`crate::json::pretty`] of the report.

pub mod csv;
mod groups;
pub mod progress;
mod report;
pub mod svg;

use crate::format::{Document, ONE_OBJECT, Writer, formats};
use crate::style::Style;
use narrows_model::SweepReport;
pub(crate) use report::doc;

impl Document for SweepReport {
    const NAME: &'static str = "a sweep";
    const FORMATS: &'static [Writer<Self>] =
        formats!(doc, ONE_OBJECT, Writer::csv("Comma-separated values", |it, _| Ok(csv::table(it))));
}

/// On a terminal.
pub fn text(report: &SweepReport, style: Style) -> String {
    doc(report, style.full).text(style)
}
