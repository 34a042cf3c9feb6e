//! The audit: both hosts side by side and their hazards, as text and as Markdown. As JSON it is
//! [`crate::json::pretty`] of the view.

pub mod markdown;
pub mod text;

use narrows_model::host::side_by_side::Cell;
use narrows_model::{Audit, AuditRow, Place};
use std::collections::BTreeMap;

/// Whether there is nothing to compare with.
const fn is_alone(audit: &Audit) -> bool {
    audit.client.is_none() || audit.server.is_none()
}

/// Whether a row has a value; of one host alone the rows without are only named with their reasons.
fn is_known(row: &AuditRow) -> bool {
    [&row.client, &row.server].into_iter().flatten().any(|cell: &Cell| cell.value.is_some())
}

/// Whether one of the row's hazards is at this end, or about both.
fn has_hazard(audit: &Audit, row: &AuditRow, end: Place) -> bool {
    audit.hazards_of(row).any(|hazard| hazard.at == end || hazard.at == Place::Path)
}

/// What could not be read, and why: the labels of the rows for each end and reason.
fn reasons(audit: &Audit) -> BTreeMap<(Place, String), Vec<String>> {
    let mut reasons: BTreeMap<(Place, String), Vec<String>> = BTreeMap::new();
    for row in &audit.rows {
        for (place, cell) in [(Place::Client, &row.client), (Place::Server, &row.server)] {
            if let Some(why) = cell.as_ref().and_then(|cell| cell.why_missing.clone()) {
                reasons.entry((place, why)).or_default().push(row.label.clone());
            }
        }
    }
    reasons
}
