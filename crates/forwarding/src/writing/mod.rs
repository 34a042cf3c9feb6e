//! The forwarding benchmark: its report as text, Markdown, pictures and one page. As JSON it is [`narrows_render::json::pretty`] of the report.

pub mod ab;
mod accounts_svg;
pub mod advice;
mod drawing;
mod formats;
pub mod html;
mod procedures;
mod section;
mod sized;
mod summary;
pub mod svg;
mod tables;
mod words;
mod written;

use crate::data::report::ForwardingReport;
pub use formats::SCHEMAS;
use narrows_render::style::Style;
use written::doc;

/// On a terminal.
pub fn text(report: &ForwardingReport, style: Style) -> String {
    doc(report, style.full).text(style)
}

/// For a ticket or a wiki.
pub fn markdown(report: &ForwardingReport) -> String {
    doc(report, true).markdown()
}

/// A line for each goal of each size, with the latency at that size.
fn csv(report: &ForwardingReport) -> serde_json::Result<String> {
    const COLUMNS: &[&str] = &[
        "traffic=0",
        "size_bytes=1/size",
        "frame_bytes=1/frame_bytes",
        "goal=2/goal/name",
        "outcome=2/word",
        "lower_pps=2/lower/pps",
        "lower_wire_bps=2/lower/wire_bps",
        "lower_of_line=2/lower/of_line",
        "upper_pps=2/upper/pps",
        "conditional_pps=2/conditional_throughput/pps",
        "latency_p50_ns=1/latency/p50_ns",
        "latency_p99_ns=1/latency/p99_ns",
        "latency_max_ns=1/latency/max_ns",
    ];
    let sizes = report.traffic.iter().flat_map(|it| it.sizes.iter().map(|size| (&it.name, size)));
    let rows = sizes.flat_map(|(traffic, size)| {
        let goals = size.results.throughput.search.as_ref().map(|it| &it.goals[..]).unwrap_or_default();
        // Other procedures may have been made alone.
        (0..goals.len().max(1)).map(move |at| (traffic, size, goals.get(at)))
    });
    narrows_render::csv::table(COLUMNS, rows)
}
