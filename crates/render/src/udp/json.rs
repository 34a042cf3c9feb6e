//! A UDP measurement as newline-delimited JSON: `start`, an `interval` each, `summary`; one object a line.
//! As one document it is [`crate::json::pretty`] of the report.

use narrows_model::UdpPlan;
use narrows_model::run::measure::Remark;
use narrows_model::run::measure_udp::{MeasureUdpReport, SCHEMA, UdpInterval, UdpStreamView, UdpSummary};
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
        plan: &'a UdpPlan,
    },
    /// An interval of a stream or of a flow.
    Interval(&'a UdpInterval),
    /// The end, with what the counted part gave.
    Summary {
        /// Which run it was.
        run: &'a RunView,
        /// The streams.
        streams: &'a [UdpStreamView],
        /// What went otherwise than planned.
        remarks: &'a [Remark],
        /// The figures.
        #[serde(flatten)]
        summary: &'a UdpSummary,
    },
}

/// The first line.
///
/// # Errors
/// As [`crate::json::line`].
pub fn start(plan: &UdpPlan) -> serde_json::Result<String> {
    crate::json::line(&Event::Start { schema: SCHEMA, plan })
}

/// An interval's line.
///
/// # Errors
/// As [`crate::json::line`].
pub fn interval(view: &UdpInterval) -> serde_json::Result<String> {
    crate::json::line(&Event::Interval(view))
}

/// The last line.
///
/// # Errors
/// As [`crate::json::line`].
pub fn summary(report: &MeasureUdpReport) -> serde_json::Result<String> {
    let MeasureUdpReport { run, streams, remarks, summary, .. } = report;
    crate::json::line(&Event::Summary { run, streams, remarks, summary })
}

/// All lines of a measurement that is over.
///
/// # Errors
/// As [`crate::json::line`].
pub fn lines(report: &MeasureUdpReport) -> serde_json::Result<String> {
    let mut out = start(&report.plan)?;
    for view in &report.intervals {
        out += &interval(view)?;
    }
    Ok(out + &summary(report)?)
}
