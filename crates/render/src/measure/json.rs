//! A measurement as newline-delimited JSON: `start`, an `interval` each, `summary`; one object a line.
//! As one document it is [`crate::json::pretty`] of the report.

use crate::measurement::{event, start, summary};
use narrows_model::run::measure::{MeasureReport, SCHEMA};

/// All lines of a measurement that is over.
///
/// # Errors
/// As [`crate::json::line`].
pub fn lines(report: &MeasureReport) -> serde_json::Result<String> {
    let mut out = start(SCHEMA, &report.plan)?;
    for view in &report.intervals {
        out += &event("interval", view)?;
    }
    Ok(out + &summary(&report.run, &report.streams, &report.remarks, &report.summary)?)
}
