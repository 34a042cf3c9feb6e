//! The formats of the reports, and their published schemas.

use super::ab;
use crate::data::ab_report::AbReport;
use crate::data::report::ForwardingReport;
use narrows_render::json::Published;
use narrows_render::{Document, Format, Writer, csv};
use schemars::schema_for;

/// The reports whose schemas are published.
pub const SCHEMAS: &[Published] =
    &[("forwarding", || schema_for!(ForwardingReport)), ("forwarding-ab", || schema_for!(AbReport))];

impl Document for ForwardingReport {
    const NAME: &'static str = "a forwarding benchmark";
    const FORMATS: &'static [Writer<Self>] = &[
        Writer::new(Format::Text, "Tables", |it, style| Ok(super::text(it, style))),
        Writer::json("One object"),
        Writer::new(Format::Csv, "Comma-separated values, one goal of one size per line", |it, _| super::csv(it)),
        Writer::new(Format::Markdown, "Tables for a document", |it, _| Ok(super::markdown(it))),
    ];
}

impl Document for AbReport {
    const NAME: &'static str = "a comparison";
    const FORMATS: &'static [Writer<Self>] = &[
        Writer::new(Format::Text, "Tables", |it, style| Ok(ab::text(it, style))),
        Writer::json("One object"),
        Writer::new(Format::Csv, "Comma-separated values, one figure per line", |it, _| {
            csv::table(ab::COLUMNS, &it.rows)
        }),
        Writer::new(Format::Markdown, "Tables for a document", |it, _| Ok(ab::markdown(it))),
    ];
}
