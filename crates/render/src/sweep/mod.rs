//! The sweep: its report from what was recorded, and that report as table, CSV and picture. As JSON it is
//! [`crate::json::pretty`] of the report.

pub mod csv;
mod groups;
pub mod progress;
mod report;
pub mod svg;

use crate::style::Style;
use narrows_model::SweepReport;
pub(crate) use report::doc;

/// On a terminal.
pub fn text(report: &SweepReport, style: Style) -> String {
    doc(report, style.full).text(style)
}
