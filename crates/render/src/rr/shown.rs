//! A measurement of requests and responses among those of other loads.

use super::live::Live;
use super::{json, text};
use crate::format::{Document, EVENTS, Format, INTERVALS, ONE_OBJECT, Writer};
use crate::measurement::{self, Intervals, Lines, Measurement};
use crate::style::Style;
use narrows_model::run::measure_rr::{RrIntervalView, RrPhase, SCHEMA};
use narrows_model::{Place, Progress, RrPlan, RrReport, RrSample, Target};

impl Document for RrReport {
    const FORMATS: &'static [Writer<Self>] = &[
        Writer::new(Format::Text, INTERVALS, |it, style| Ok(text::report(it, style))),
        Writer::json(ONE_OBJECT),
        Writer::new(Format::Ndjson, EVENTS, |it, _| json::lines(it)),
    ];
}

impl Intervals for Live {
    type Plan = RrPlan;
    type View = RrIntervalView;
    const SCHEMA: &'static str = SCHEMA;

    fn plan(&self) -> &RrPlan {
        self.plan()
    }

    fn header(&self, target: &Target, style: Style) -> String {
        text::header(target, self.plan(), style)
    }

    /// The counts and latencies are the client's.
    fn take(&mut self, at: Place, progress: &Progress) -> Vec<RrIntervalView> {
        let samples = progress.streams.iter().filter_map(|it| Some((it.id, *it.sample.get::<RrSample>()?)));
        if at == Place::Client { self.take(samples) } else { Vec::new() }
    }

    fn line(&self, view: &RrIntervalView, style: Style) -> Option<String> {
        text::shown(view, self.plan(), style).then(|| text::interval(view, style))
    }
}

impl Measurement for RrReport {
    fn summary(&self, form: Lines) -> serde_json::Result<String> {
        let phases = self.phases.iter();
        match form {
            Lines::Text(style) => {
                let phases: String = phases.map(|phase| text::summary(phase, style)).collect();
                Ok(phases + &self.under_load.iter().map(|view| text::under_load(view, style)).collect::<String>())
            }
            Lines::Ndjson => {
                let of = |it: &RrPhase| measurement::summary(&self.run, &it.streams, &it.remarks, &it.summary);
                Ok(phases.map(of).collect::<serde_json::Result<String>>()? + &json::under_load(self)?)
            }
        }
    }

    fn write(&self, format: Format, style: Style) -> serde_json::Result<Option<String>> {
        Document::write(self, format, style)
    }
}
