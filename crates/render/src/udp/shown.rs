//! A measurement of UDP among those of other loads.

use super::live::Live;
use super::{json, text};
use crate::format::{Document, EVENTS, Format, INTERVALS, ONE_OBJECT, Writer};
use crate::ledger::text::ledgers;
use crate::measurement::{self, Intervals, Lines, Measurement};
use crate::style::Style;
use narrows_model::run::measure_udp::{SCHEMA, UdpInterval};
use narrows_model::{Ledger, MeasureUdpReport, Place, Progress, Target, UdpPlan};

impl Document for MeasureUdpReport {
    const FORMATS: &'static [Writer<Self>] = &[
        Writer::new(Format::Text, INTERVALS, |it, style| Ok(text::report(it, style))),
        Writer::json(ONE_OBJECT),
        Writer::new(Format::Ndjson, EVENTS, |it, _| json::lines(it)),
    ];
}

impl Intervals for Live {
    type Plan = UdpPlan;
    type View = UdpInterval;
    const SCHEMA: &'static str = SCHEMA;

    fn plan(&self) -> &UdpPlan {
        self.plan()
    }

    fn header(&self, target: &Target, style: Style) -> String {
        text::header(target, self.plan(), style)
    }

    fn take(&mut self, at: Place, progress: &Progress) -> Vec<UdpInterval> {
        self.take(at, progress)
    }

    fn line(&self, view: &UdpInterval, style: Style) -> Option<String> {
        text::shown(view, self.plan(), style).then(|| text::interval(view, style))
    }
}

/// A measurement of UDP with the ledger of each flow.
#[derive(Debug, Clone, PartialEq)]
pub struct UdpMeasurement {
    /// The view of the measurement.
    pub report: MeasureUdpReport,
    /// One for each flow; none where the hosts' counters were not read.
    pub ledgers: Vec<Ledger>,
}

impl UdpMeasurement {
    fn with_ledgers(&self, text: String, style: Style) -> String {
        if self.ledgers.is_empty() { text } else { text + "\n" + &ledgers(&self.ledgers, style) }
    }
}

impl Measurement for UdpMeasurement {
    fn summary(&self, form: Lines) -> serde_json::Result<String> {
        let it = &self.report;
        match form {
            Lines::Text(style) => Ok(self.with_ledgers(text::summary(it, style), style)),
            Lines::Ndjson => measurement::summary(&it.run, &it.streams, &it.remarks, &it.summary),
        }
    }

    fn write(&self, format: Format, style: Style) -> serde_json::Result<Option<String>> {
        let text = self.report.write(format, style)?;
        Ok(text.map(|text| if format == Format::Text { self.with_ledgers(text, style) } else { text }))
    }
}
