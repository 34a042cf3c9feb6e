//! A comparison as one page that needs nothing beside it.

use super::{is_limited, remarks, row_name, steps, svg, tables};
use crate::forwarding::html::{document, says};
use crate::table::html;
use crate::words::plural;
use narrows_model::forwarding::ab::Difference;
use narrows_model::forwarding::ab_report::AbReport;

/// The page.
#[must_use]
pub fn page(report: &AbReport) -> String {
    let mut main = "<section id=\"verdict\">\n".to_owned();
    for row in &report.rows {
        let proven = row.row.welch.as_ref().is_some_and(Difference::is_proven) && !is_limited(report, row);
        let class = if proven { "good" } else { "mark" };
        says(&mut main, class, &row_name(report, row), std::slice::from_ref(&row.row.says));
    }
    for (side, of) in [("A", &report.a), ("B", &report.b)] {
        let what = format!("{} ({}; {})", of.name, steps(&of.steps), plural(of.runs.into(), "run"));
        says(&mut main, "", side, &[what]);
    }
    says(&mut main, "bad", "Note", &remarks(report));
    main += "</section>\n";
    if let Some(picture) = svg::picture(report) {
        main += &format!("<section id=\"comparison\">\n<figure>{picture}</figure>\n</section>\n");
    }
    for (id, table) in [
        ("throughput", tables::throughputs(report)),
        ("difference", tables::differences(report)),
        ("runs", tables::runs(report)),
    ] {
        main += &format!("<section id=\"{id}\">\n{}</section>\n", html(&table.trimmed()));
    }
    document(&format!("Forwarding benchmark of {}, two configurations", report.name), "", &main)
}
