//! Output formats: which formats each report has, and what writes them. `--format` and its help come from here.

use crate::influence::Influence;
use crate::style::Style;
use crate::{
    audit, both_directions, campaign, command, compare, connections, csv, diagnosis, diff, frames, history, influence,
    json, line_rate, mesh, optimise, responsiveness, search, stamp, sweep, trace, watch,
};
use narrows_model::host::audit::Audit;
use narrows_model::host::connection::ConnectionsView;
use narrows_model::host::watch::WatchView;
use narrows_model::load::frames_report::FramesReport;
use narrows_model::load::line_rate::LineRateReport;
use narrows_model::load::responsiveness::ResponsivenessReport;
use narrows_model::load::stamp::StampReport;
use narrows_model::run::both_directions::BothDirections;
use narrows_model::run::campaign::CampaignReport;
use narrows_model::run::command::CommandRecord;
use narrows_model::run::compare::CompareReport;
use narrows_model::run::diff::DiffReport;
use narrows_model::run::history::{HistoryReport, TrendReport};
use narrows_model::run::mesh::MeshReport;
use narrows_model::run::optimise::OptimiseReport;
use narrows_model::run::report::Report;
use narrows_model::run::search_report::SearchReport;
use narrows_model::run::sweep::SweepReport;
use narrows_model::trace::report::TraceReport;
use serde::Serialize;

/// The format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Lines and tables for a terminal.
    Text,
    Json,
    Ndjson,
    Markdown,
    Csv,
    /// One self-contained page.
    Html,
    /// The JSON of `iperf3 -J`.
    Iperf3,
}

impl Format {
    /// Its name on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Ndjson => "ndjson",
            Self::Markdown => "markdown",
            Self::Csv => "csv",
            Self::Html => "html",
            Self::Iperf3 => "iperf3",
        }
    }
}

/// One format of a report.
pub struct Writer<R> {
    pub format: Format,
    pub help: &'static str,
    write: fn(&R, Style) -> serde_json::Result<String>,
}

impl<R> Writer<R> {
    pub const fn new(format: Format, help: &'static str, write: fn(&R, Style) -> serde_json::Result<String>) -> Self {
        Self { format, help, write }
    }
}

impl<R: Serialize> Writer<R> {
    pub const fn json(help: &'static str) -> Self {
        Self::new(Format::Json, help, |report, _| json::pretty(report))
    }
}

/// A report that can be written in several formats.
pub trait Document: Sized + 'static {
    /// What it is, with an article: `a sweep`.
    const NAME: &'static str;
    /// Its formats, in the order of the help.
    const FORMATS: &'static [Writer<Self>];

    fn formats() -> impl Iterator<Item = Format> {
        Self::FORMATS.iter().map(|writer| writer.format)
    }

    /// The report in a format; `None` where the report does not have it.
    fn write(&self, format: Format, style: Style) -> serde_json::Result<Option<String>> {
        let writer = Self::FORMATS.iter().find(|writer| writer.format == format);
        writer.map(|writer| (writer.write)(self, style)).transpose()
    }
}

/// A report of any type.
pub trait AnyDocument {
    /// What it is, and its formats.
    fn about(&self) -> (&'static str, Vec<Format>);

    /// As [`Document::write`].
    fn write(&self, format: Format, style: Style) -> serde_json::Result<Option<String>>;
}

impl<R: Document> AnyDocument for R {
    fn about(&self) -> (&'static str, Vec<Format>) {
        (R::NAME, R::formats().collect())
    }

    fn write(&self, format: Format, style: Style) -> serde_json::Result<Option<String>> {
        Document::write(self, format, style)
    }
}

pub(crate) const PAGE: &str = "One page for a browser, light and dark, without scripts";

/// The formats of a report that is one document: what makes it (with whether everything is shown), what its JSON is for, and further ones.
macro_rules! formats {
    ($doc:expr, $json:expr $(, $more:expr)*) => {
        &[
            Writer::new(Format::Text, "For a terminal", |it, style| Ok(($doc)(it, style.full).text(style))),
            Writer::json($json),
            Writer::new(Format::Markdown, "For a ticket or a wiki", |it, _| Ok(($doc)(it, true).markdown())),
            Writer::new(Format::Html, PAGE, |it, _| Ok(($doc)(it, true).html())),
            $($more),*
        ]
    };
}

macro_rules! document {
    ($of:ty, $name:literal, $doc:expr $(, $more:expr)*) => {
        impl Document for $of {
            const NAME: &'static str = $name;
            const FORMATS: &'static [Writer<Self>] = formats!($doc, "For programs; the schema is in docs/" $(, $more)*);
        }
    };
}

document!(Report, "a diagnosis", diagnosis::doc);

/// The formats that the report of a stored run may have, whatever its kind. There is no value of it.
#[derive(Debug, Clone, Copy, Serialize)]
pub enum OfAnyRun {}

impl Document for OfAnyRun {
    const NAME: &'static str = "a run";
    const FORMATS: &'static [Writer<Self>] = &[
        Writer::new(Format::Text, "For a terminal", |it, _| match *it {}),
        Writer::json("For programs; the schema is in docs/"),
        Writer::new(Format::Markdown, "For a ticket or a wiki", |it, _| match *it {}),
        Writer::new(Format::Html, PAGE, |it, _| match *it {}),
        Writer::new(
            Format::Csv,
            "Of a measurement, one interval of one stream per line; of a sweep, one point; of a search, one trial",
            |it, _| match *it {},
        ),
        Writer::new(Format::Ndjson, "Of a measurement or search, one object per line", |it, _| match *it {}),
    ];
}

document!(BothDirections, "a diagnosis of both directions", both_directions::doc);
document!(DiffReport, "two diagnoses", diff::doc);
document!(Audit, "an audit", audit::doc);

const ONE_OBJECT: &str = "One JSON object at the end";

document!(
    SearchReport,
    "a search",
    |it, _| search::text::doc(it),
    Writer::new(Format::Csv, "Comma-separated values, one trial per line", |it, _| csv::table(
        search::COLUMNS,
        &it.trials
    ))
);

impl Document for SweepReport {
    const NAME: &'static str = "a sweep";
    const FORMATS: &'static [Writer<Self>] = formats!(
        sweep::doc,
        ONE_OBJECT,
        Writer::new(Format::Csv, "Comma-separated values", |it, _| Ok(sweep::csv::table(it)))
    );
}

document!(
    HistoryReport,
    "a list of runs",
    |it, _| history::text::list(it),
    Writer::new(Format::Csv, "Comma-separated values, one figure per line", |it, _| Ok(history::csv::list(it)))
);
document!(
    TrendReport,
    "figures over time",
    |it, _| history::text::trend(it),
    Writer::new(Format::Csv, "Comma-separated values, one run per line", |it, _| Ok(history::csv::trend(it)))
);
document!(
    CompareReport,
    "a comparison of samples",
    |it, _| compare::doc(it),
    Writer::new(Format::Csv, "Comma-separated values, one value per line", |it, _| Ok(compare::csv::table(it)))
);
document!(
    CampaignReport,
    "a campaign",
    campaign::doc,
    Writer::new(Format::Csv, "Comma-separated values, one run per line", |it, _| Ok(campaign::csv(it)))
);

impl Document for Influence {
    const NAME: &'static str = "a sweep over factors";
    const FORMATS: &'static [Writer<Self>] = formats!(
        |it: &Influence, _| influence::doc(&it.0),
        "For programs; the schema is in docs/ (campaign)",
        Writer::new(Format::Csv, "Comma-separated values, one run per line", |it, _| Ok(campaign::csv(&it.0)))
    );
}

impl Document for CommandRecord {
    const NAME: &'static str = "a run of another program";
    const FORMATS: &'static [Writer<Self>] =
        &[Writer::new(Format::Text, "For a terminal", |it, style| Ok(command::text(it, style)))];
}

document!(OptimiseReport, "an optimisation", |it, _| optimise::doc(it));

impl Document for FramesReport {
    const NAME: &'static str = "a trial of frames";
    const FORMATS: &'static [Writer<Self>] = &[
        Writer::new(Format::Text, "Lines and tables", |it, style| Ok(frames::text::summary(it, style))),
        Writer::json(ONE_OBJECT),
        Writer::new(Format::Csv, "Comma-separated values, one stream per line", |it, _| frames::csv(it)),
    ];
}

impl Document for LineRateReport {
    const NAME: &'static str = "a table of line rates";
    const FORMATS: &'static [Writer<Self>] = &[
        Writer::new(Format::Text, "Tables for a terminal", |it, style| Ok(line_rate::report(it, style))),
        Writer::json("One object; the schema is in docs/"),
    ];
}

impl Document for ConnectionsView {
    const NAME: &'static str = "a view of connections";
    const FORMATS: &'static [Writer<Self>] = &[
        Writer::new(
            Format::Text,
            "A table, redrawn in place in a terminal; otherwise printed one after another",
            |it, style| Ok(connections::text(it, style) + "\n"),
        ),
        Writer::json("For programs, of one reading (--once); the schema is in docs/"),
        Writer::new(Format::Ndjson, "One object per line for each reading", |it, _| json::line(it)),
        Writer::new(Format::Csv, "Comma-separated values, one connection per line (--once)", |it, _| {
            csv::table(connections::COLUMNS, &it.connections)
        }),
        Writer::new(Format::Markdown, "For a ticket or a wiki", |it, style| {
            Ok(connections::doc(it, style.full).markdown())
        }),
    ];
}

document!(
    ResponsivenessReport,
    "a test of responsiveness",
    |it, _| responsiveness::doc(it),
    Writer::new(Format::Csv, "Comma-separated values, one interval of one direction per line", |it, _| csv::table(
        responsiveness::COLUMNS,
        &it.series
    ))
);
document!(
    StampReport,
    "a STAMP session",
    |it, _| stamp::doc(it),
    Writer::new(Format::Csv, "Comma-separated values, one interval per line", |it, _| csv::table(
        stamp::COLUMNS,
        &it.series
    ))
);
document!(
    MeshReport,
    "a mesh",
    |it, _| mesh::doc(it),
    Writer::new(Format::Csv, "Comma-separated values, one load per line", |it, _| csv::table(
        mesh::COLUMNS,
        mesh::lines(it)
    ))
);
document!(
    TraceReport,
    "a trace",
    |it, _| trace::doc(it),
    Writer::new(Format::Ndjson, "One object per line; with --watch one for each interval", |it, _| json::line(it)),
    Writer::new(Format::Csv, "Comma-separated values, one address of one hop per line", |it, _| trace::csv(it))
);

impl Document for WatchView {
    const NAME: &'static str = "a view of interfaces";
    const FORMATS: &'static [Writer<Self>] = &[
        Writer::new(
            Format::Text,
            "A table, redrawn in place in a terminal; otherwise printed one after another",
            |it, style| Ok(watch::frame(it, style) + "\n"),
        ),
        Writer::new(Format::Ndjson, "One object per line for each reading", |it, _| json::line(it)),
    ];
}
