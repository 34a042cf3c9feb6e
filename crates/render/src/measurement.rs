//! Plain measurements of any kind of load, for a caller that needs not know which: the lines while a trial runs, and the result.

use crate::format::Format;
use crate::style::Style;
use narrows_model::run::measure::Remark;
use narrows_model::run::report::RunView;
use narrows_model::{Place, Progress, Target};
use serde::Serialize;

/// The form of the lines of a measurement.
#[derive(Debug, Clone, Copy)]
pub enum Lines {
    /// For a terminal.
    Text(Style),
    /// Newline-delimited JSON: `start`, an `interval` each, `summary`; one object per line.
    Ndjson,
}

/// A trial that runs: what is shown before its first interval, and each interval when it has ended.
pub trait Live {
    /// What will be measured.
    ///
    /// # Errors
    /// As [`crate::json::line`].
    fn start(&self, target: &Target, form: Lines) -> serde_json::Result<String>;

    /// Takes the progress of one end; the lines of the intervals that it completes.
    ///
    /// # Errors
    /// As [`crate::json::line`].
    fn push(&mut self, at: Place, progress: &Progress, form: Lines) -> serde_json::Result<String>;
}

/// The intervals of one kind of load while a trial runs.
pub(crate) trait Intervals {
    /// The plan of the trial.
    type Plan: Serialize;
    /// One interval.
    type View: Serialize;
    /// The name of the JSON form.
    const SCHEMA: &'static str;

    fn plan(&self) -> &Self::Plan;

    /// What will be measured, on a terminal.
    fn header(&self, target: &Target, style: Style) -> String;

    /// Takes the progress of one end, and gives the intervals that it completes: each stream, then their sum.
    fn take(&mut self, at: Place, progress: &Progress) -> Vec<Self::View>;

    /// The line of an interval on a terminal; `None` where it gets none.
    fn line(&self, view: &Self::View, style: Style) -> Option<String>;
}

impl<I: Intervals> Live for I {
    fn start(&self, target: &Target, form: Lines) -> serde_json::Result<String> {
        match form {
            Lines::Text(style) => Ok(self.header(target, style)),
            Lines::Ndjson => start(I::SCHEMA, self.plan()),
        }
    }

    fn push(&mut self, at: Place, progress: &Progress, form: Lines) -> serde_json::Result<String> {
        let views = self.take(at, progress);
        match form {
            Lines::Text(style) => Ok(views.iter().filter_map(|view| self.line(view, style)).collect()),
            Lines::Ndjson => views.iter().map(|view| event("interval", view)).collect(),
        }
    }
}

/// A measurement that is over.
pub trait Measurement {
    /// What follows the last interval.
    ///
    /// # Errors
    /// As [`crate::json::line`].
    fn summary(&self, form: Lines) -> serde_json::Result<String>;

    /// All of it in a format; `None` where it does not have the format.
    ///
    /// # Errors
    /// As [`crate::json::pretty`].
    fn write(&self, format: Format, style: Style) -> serde_json::Result<Option<String>>;
}

#[derive(Serialize)]
struct Event<'a, T> {
    event: &'static str,
    #[serde(flatten)]
    body: &'a T,
}

/// One line of newline-delimited JSON: the view, and first of all what it is.
pub(crate) fn event<T: Serialize>(event: &'static str, body: &T) -> serde_json::Result<String> {
    crate::json::line(&Event { event, body })
}

/// The first line of a measurement: the name of the form and what was asked for.
pub(crate) fn start<P: Serialize>(schema: &'static str, plan: &P) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Start<'a, P> {
        schema: &'static str,
        plan: &'a P,
    }
    event("start", &Start { schema, plan })
}

/// The last line of a trial: which run it was, its streams, remarks and figures.
pub(crate) fn summary<V: Serialize, S: Serialize>(
    run: &RunView,
    streams: &[V],
    remarks: &[Remark],
    summary: &S,
) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Summary<'a, V, S> {
        run: &'a RunView,
        streams: &'a [V],
        remarks: &'a [Remark],
        #[serde(flatten)]
        summary: &'a S,
    }
    event("summary", &Summary { run, streams, remarks, summary })
}
