//! The pictures of a benchmark. Each is a file of its own, and all stand on the page.

use super::accounts_svg;
use super::procedures::ALL;
use crate::data::report::ForwardingReport;

/// Every picture that there is something to draw in, with the name that its file may have: `throughput`, `latency`, `loss`,
/// `back-to-back`, `books-1`, …
pub fn pictures(report: &ForwardingReport) -> Vec<(String, String)> {
    let of = |section: &super::section::Section| Some((section.id.to_owned(), section.picture?(report, ALL)?));
    let mut all: Vec<(String, String)> = ALL.iter().filter_map(of).collect();
    let account = |(at, view)| (format!("books-{at}"), accounts_svg::picture(view));
    all.extend((1..).zip(&report.books).map(account));
    all
}
