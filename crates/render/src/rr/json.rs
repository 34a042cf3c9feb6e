//! A request/response measurement as newline-delimited JSON: of each trial `start`, an `interval` each and `summary`; of two of them
//! `under_load` at the end. As one document it is [`crate::json::pretty`] of the report.

use crate::measurement::{event, start, summary};
use narrows_model::run::measure_rr::{RrReport, SCHEMA};

/// All lines of a measurement that is over.
///
/// # Errors
/// As [`crate::json::line`].
pub fn lines(report: &RrReport) -> serde_json::Result<String> {
    let mut out = String::new();
    for phase in &report.phases {
        out += &start(SCHEMA, &phase.plan)?;
        for view in &phase.intervals {
            out += &event("interval", view)?;
        }
        out += &summary(&report.run, &phase.streams, &phase.remarks, &phase.summary)?;
    }
    Ok(out + &under_load(report)?)
}

/// The idle and the loaded path beside each other; nothing where only one was measured.
pub(super) fn under_load(report: &RrReport) -> serde_json::Result<String> {
    report.under_load.as_ref().map_or_else(|| Ok(String::new()), |view| event("under_load", view))
}

/// The JSON Schema (draft 2020-12) of an [`RrReport`].
///
/// # Errors
/// As [`crate::json::pretty`].
pub fn schema() -> serde_json::Result<String> {
    crate::json::pretty(&schemars::schema_for!(RrReport))
}
