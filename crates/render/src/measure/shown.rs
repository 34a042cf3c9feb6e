//! A measurement of TCP among those of other loads.

use super::live::Live;
use super::{json, text};
use crate::format::{Document, EVENTS, Format, INTERVALS, ONE_OBJECT, Writer};
use crate::measurement::{self, Intervals, Lines, Measurement};
use crate::style::Style;
use narrows_model::run::measure::{IntervalView, MeasureReport, SCHEMA};
use narrows_model::{Place, Progress, Target, TcpPlan};

impl Document for MeasureReport {
    const FORMATS: &'static [Writer<Self>] = &[
        Writer::new(Format::Text, INTERVALS, |it, style| Ok(text::report(it, style))),
        Writer::json(ONE_OBJECT),
        Writer::new(Format::Ndjson, EVENTS, |it, _| json::lines(it)),
    ];
}

impl Intervals for Live {
    type Plan = TcpPlan;
    type View = IntervalView;
    const SCHEMA: &'static str = SCHEMA;

    fn plan(&self) -> &TcpPlan {
        self.plan()
    }

    fn header(&self, target: &Target, style: Style) -> String {
        text::header(target, self.plan(), style)
    }

    fn take(&mut self, at: Place, progress: &Progress) -> Vec<IntervalView> {
        self.take(at, progress)
    }

    fn line(&self, view: &IntervalView, style: Style) -> Option<String> {
        text::shown(view, self.plan(), style).then(|| text::interval(view, style))
    }
}

impl Measurement for MeasureReport {
    fn summary(&self, form: Lines) -> serde_json::Result<String> {
        match form {
            Lines::Text(style) => Ok(text::summary(self, style)),
            Lines::Ndjson => measurement::summary(&self.run, &self.streams, &self.remarks, &self.summary),
        }
    }

    fn write(&self, format: Format, style: Style) -> serde_json::Result<Option<String>> {
        Document::write(self, format, style)
    }
}
