//! Raw frames: the view of a generator and a receiver as text, and one line per interval while they run. As
//! JSON it is [`crate::json::pretty`] of the view.

mod flows;
pub mod progress;
pub mod text;
pub mod words;

use crate::format::{Document, ONE_OBJECT, Writer};
use narrows_model::load::frames_report::FramesReport;

impl Document for FramesReport {
    const NAME: &'static str = "a trial of frames";
    const FORMATS: &'static [Writer<Self>] = &[
        Writer::text("Lines and tables", |it, style| Ok(text::summary(it, style))),
        Writer::json(ONE_OBJECT),
        Writer::csv("Comma-separated values, one stream per line", |it, _| csv(it)),
    ];
}

/// A line for each stream at each end.
pub fn csv(report: &FramesReport) -> serde_json::Result<String> {
    const COLUMNS: &[&str] = &[
        "end=0", "stream=1/stream", "due=1/due", "handed=1/handed", "received=1/received", "lost=2",
        "reordered=1/reordered", "duplicates=1/duplicates", "restarts=1/restarts",
    ];
    let sent = report.sent.iter().flat_map(|it| &it.streams);
    let sent = sent.map(|it| Ok(("sent", serde_json::to_value(it)?, None)));
    let got = report.received.iter().flat_map(|it| &it.streams);
    let got = got.map(|it| Ok(("received", serde_json::to_value(it)?, Some(it.lost()))));
    crate::csv::table(COLUMNS, sent.chain(got).collect::<serde_json::Result<Vec<_>>>()?)
}
