//! JSON: the view as it is. Its schema is published in `docs/report.schema.json`.

use narrows_model::Report;
use serde::Serialize;

/// A view as JSON for people and programs: pretty, with a line break at the end.
///
/// # Errors
/// Where a view holds something that JSON cannot say; none of ours does.
pub fn pretty<T: Serialize>(view: &T) -> serde_json::Result<String> {
    serde_json::to_string_pretty(view).map(|text| text + "\n")
}

/// A view as one line of newline-delimited JSON.
///
/// # Errors
/// As [`pretty`].
pub fn line<T: Serialize>(view: &T) -> serde_json::Result<String> {
    serde_json::to_string(view).map(|text| text + "\n")
}

/// The JSON Schema (draft 2020-12) of a [`Report`].
///
/// # Errors
/// As [`pretty`].
pub fn report_schema() -> serde_json::Result<String> {
    pretty(&schemars::schema_for!(Report))
}
