//! A search for the highest load within a loss goal: its view, as text and as pictures. As JSON it is
//! [`crate::json::pretty`] of the view.

pub mod curve;
pub mod svg;
pub mod text;

use crate::csv;
use crate::format::{Writer, document};
use narrows_model::run::search_report::SearchReport;

document!(
    SearchReport,
    "a search",
    text::doc,
    Writer::csv("Comma-separated values, one trial per line", |it, _| csv::table(COLUMNS, &it.trials))
);

/// The columns of its CSV.
pub(crate) const COLUMNS: &[&str] = &[
    "ended_at_ms",
    "load_pps",
    "duration_ms",
    "intended=seen/intended",
    "offered=seen/offered",
    "sent=seen/sent",
    "received=seen/received",
    "effective_ms=seen/effective_ms",
    "delay_growth_us=seen/delay_growth_us",
    "queued=seen/queued",
    "invalid=seen/invalid",
];
