//! A section of a report: its tables and its picture, the same in every format.

use crate::data::procedures::Results;
use crate::data::report::ForwardingReport;
use crate::data::{Test, Tests};
use narrows_model::load::frames_report::FrameRate;
use narrows_render::svg::Look;
use narrows_render::table::Table;

/// Draws a report; `None` where there is nothing to draw. All sections are at hand for their marks.
pub(super) type Picture = fn(&ForwardingReport, &[Section]) -> Option<String>;

/// What was asked of a procedure, in words; `None` where nothing was.
pub(super) type Asked = (Test, fn(&Tests) -> Option<String>);

/// A rate that is drawn beside the throughput.
pub(super) struct Mark {
    pub(super) rate: fn(&Results) -> Option<FrameRate>,
    /// What it is, in the legend and behind a rate.
    pub(super) legend: &'static str,
    pub(super) hint: &'static str,
    /// How it is drawn.
    pub(super) look: Look,
}

/// A section of a report.
pub(super) struct Section {
    /// Its anchor on the page, and the name of its picture.
    pub(super) id: &'static str,
    /// Its heading on the page.
    pub(super) title: &'static str,
    pub(super) tables: fn(&ForwardingReport) -> Vec<Table>,
    /// Whether its tables have captions of their own under the heading.
    pub(super) captions: bool,
    pub(super) picture: Option<Picture>,
    /// What was asked for, by procedure.
    pub(super) asked: &'static [Asked],
    /// What it draws beside the throughput.
    pub(super) mark: Option<Mark>,
}

impl Section {
    /// A section that is one table.
    pub(super) const fn of(id: &'static str, title: &'static str, tables: fn(&ForwardingReport) -> Vec<Table>) -> Self {
        Self { id, title, tables, captions: false, picture: None, asked: &[], mark: None }
    }
}
