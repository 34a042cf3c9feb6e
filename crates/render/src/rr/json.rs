//! A request/response measurement as newline-delimited JSON: of each trial `start`, an `interval` each and `summary`; of two of them
//! `under_load` at the end. As one document it is [`crate::json::pretty`] of the report.

use narrows_model::RrPlan;
use narrows_model::run::measure::Remark;
use narrows_model::run::measure_rr::{
    LatencyUnderLoad, RrIntervalView, RrPhase, RrReport, RrStreamView, RrSummary, SCHEMA,
};
use narrows_model::run::report::RunView;
use serde::Serialize;

/// One line of the stream of events.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event<'a> {
    /// A trial begins.
    Start {
        /// The name of the form.
        schema: &'static str,
        /// What was asked for.
        plan: &'a RrPlan,
    },
    /// An interval of a stream, or of all together.
    Interval(&'a RrIntervalView),
    /// The end of a trial, with what the counted part gave.
    Summary {
        /// Which run it was.
        run: &'a RunView,
        /// The streams.
        streams: &'a [RrStreamView],
        /// What went otherwise than planned.
        remarks: &'a [Remark],
        /// The figures.
        #[serde(flatten)]
        summary: &'a RrSummary,
    },
    /// The idle and the loaded path beside each other.
    UnderLoad(&'a LatencyUnderLoad),
}

/// The first line of a trial.
///
/// # Errors
/// As [`crate::json::line`].
pub fn start(plan: &RrPlan) -> serde_json::Result<String> {
    crate::json::line(&Event::Start { schema: SCHEMA, plan })
}

/// An interval's line.
///
/// # Errors
/// As [`crate::json::line`].
pub fn interval(view: &RrIntervalView) -> serde_json::Result<String> {
    crate::json::line(&Event::Interval(view))
}

/// The last line of a trial.
///
/// # Errors
/// As [`crate::json::line`].
pub fn summary(run: &RunView, phase: &RrPhase) -> serde_json::Result<String> {
    let RrPhase { streams, remarks, summary, .. } = phase;
    crate::json::line(&Event::Summary { run, streams, remarks, summary })
}

/// The last line of two trials.
///
/// # Errors
/// As [`crate::json::line`].
pub fn under_load(view: &LatencyUnderLoad) -> serde_json::Result<String> {
    crate::json::line(&Event::UnderLoad(view))
}

/// All lines of a measurement that is over.
///
/// # Errors
/// As [`crate::json::line`].
pub fn lines(report: &RrReport) -> serde_json::Result<String> {
    let mut out = String::new();
    for phase in &report.phases {
        out += &start(&phase.plan)?;
        for view in &phase.intervals {
            out += &interval(view)?;
        }
        out += &summary(&report.run, phase)?;
    }
    report.under_load.as_ref().map_or(Ok(out.clone()), |view| Ok(out + &under_load(view)?))
}

/// The JSON Schema (draft 2020-12) of an [`RrReport`].
///
/// # Errors
/// As [`crate::json::pretty`].
pub fn schema() -> serde_json::Result<String> {
    crate::json::pretty(&schemars::schema_for!(RrReport))
}
