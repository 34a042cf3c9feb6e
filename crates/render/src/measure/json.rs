//! A measurement as newline-delimited JSON: `start`, an `interval` each, `summary`; one object a line.
//! As one document it is [`crate::json::pretty`] of the report.

use narrows_model::TcpPlan;
use narrows_model::run::measure::{IntervalView, MeasureReport, Remark, SCHEMA, StreamView, SummaryView};
use narrows_model::run::report::RunView;
use serde::Serialize;

/// One line of the stream of events.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event<'a> {
    /// The measurement begins.
    Start {
        /// The name of the form.
        schema: &'static str,
        /// What was asked for.
        plan: &'a TcpPlan,
    },
    /// An interval of a stream or of a flow.
    Interval(&'a IntervalView),
    /// The end, with what the counted part gave.
    Summary {
        /// Which run it was.
        run: &'a RunView,
        /// The connections.
        streams: &'a [StreamView],
        /// What went otherwise than planned.
        remarks: &'a [Remark],
        /// The figures.
        #[serde(flatten)]
        summary: &'a SummaryView,
    },
}

/// The first line.
///
/// # Errors
/// As [`crate::json::line`].
pub fn start(plan: &TcpPlan) -> serde_json::Result<String> {
    crate::json::line(&Event::Start { schema: SCHEMA, plan })
}

/// An interval's line.
///
/// # Errors
/// As [`crate::json::line`].
pub fn interval(view: &IntervalView) -> serde_json::Result<String> {
    crate::json::line(&Event::Interval(view))
}

/// The last line.
///
/// # Errors
/// As [`crate::json::line`].
pub fn summary(report: &MeasureReport) -> serde_json::Result<String> {
    let MeasureReport { run, streams, remarks, summary, .. } = report;
    crate::json::line(&Event::Summary { run, streams, remarks, summary })
}

/// All lines of a measurement that is over.
///
/// # Errors
/// As [`crate::json::line`].
pub fn lines(report: &MeasureReport) -> serde_json::Result<String> {
    let mut out = start(&report.plan)?;
    for view in &report.intervals {
        out += &interval(view)?;
    }
    Ok(out + &summary(report)?)
}
