//! Output formats: which formats each report has, and what writes them. `--format` and its help come from here.

use crate::json;
use crate::style::Style;
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

    pub const fn text(help: &'static str, write: fn(&R, Style) -> serde_json::Result<String>) -> Self {
        Self::new(Format::Text, help, write)
    }

    pub const fn csv(help: &'static str, write: fn(&R, Style) -> serde_json::Result<String>) -> Self {
        Self::new(Format::Csv, help, write)
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
            $crate::Writer::new($crate::Format::Text, "For a terminal", |it, style| Ok(($doc)(it, style.full).text(style))),
            $crate::Writer::json($json),
            $crate::Writer::new($crate::Format::Markdown, "For a ticket or a wiki", |it, _| Ok(($doc)(it, true).markdown())),
            $crate::Writer::new($crate::Format::Html, $crate::format::PAGE, |it, _| Ok(($doc)(it, true).html())),
            $($more),*
        ]
    };
}

macro_rules! document {
    ($of:ty, $name:literal, $doc:expr $(, $more:expr)*) => {
        impl $crate::Document for $of {
            const NAME: &'static str = $name;
            const FORMATS: &'static [$crate::Writer<Self>] = $crate::format::formats!($doc, "For programs; the schema is in docs/" $(, $more)*);
        }
    };
}

pub(crate) use {document, formats};

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

pub(crate) const ONE_OBJECT: &str = "One JSON object at the end";
