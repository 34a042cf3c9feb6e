//! A forwarding benchmark with two configurations of the device: its view from the record and the comparison, as text,
//! Markdown, a picture and one page.

mod svg;
mod tables;
mod written;

pub use svg::picture as svg;
pub use written::{html, markdown, text};

use crate::data::ab::ThroughputOfSize;
use crate::data::ab_report::{AbReport, AbRowView};

/// The columns of its CSV, in frames per second.
pub(crate) const COLUMNS: &[&str] = &[
    "traffic=name", "size_bytes=row/size", "a_runs=a/n", "a_median_pps=a/median", "a_min_pps=a/min", "a_max_pps=a/max",
    "b_runs=b/n", "b_median_pps=b/median", "b_min_pps=b/min", "b_max_pps=b/max",
];

/// `64 B`, or `IPv6, 64 B` where there is more than one traffic.
fn row_name(report: &AbReport, row: &AbRowView) -> String {
    let size = super::words::size(row.row.size);
    let several = report.rows.iter().any(|other| other.row.traffic != row.row.traffic);
    if several { format!("{}, {size}", row.name) } else { size }
}

/// Whether a result of the row is only *at least*: the difference is then a bound or nothing, whatever its interval.
fn is_limited(report: &AbReport, row: &AbRowView) -> bool {
    let of =
        |found: &ThroughputOfSize| (found.traffic, found.size) == (row.row.traffic, row.row.size) && found.at_least;
    report.runs.iter().filter(|run| run.left_out.is_none()).flat_map(|run| &run.throughputs).any(of)
}

/// `fault forward-rules=10000`, or that there is none.
fn steps(of: &[String]) -> String {
    if of.is_empty() { "no command and no fault".to_owned() } else { of.join(", ") }
}

/// What must be known of the whole, and that it ended early.
fn remarks(report: &AbReport) -> Vec<String> {
    let ended = report.ended.iter().map(|why| format!("ended early: {why}"));
    ended.chain(report.remarks.iter().cloned()).collect()
}
