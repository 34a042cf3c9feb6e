//! JSON: the view as it is. The schemas are published in `docs/`, each as `<name>.schema.json`.

use narrows_model::load::frames_report::FramesReport;
use narrows_model::load::line_rate::LineRateReport;
use narrows_model::load::responsiveness::ResponsivenessReport;
use narrows_model::load::stamp::StampReport;
use narrows_model::run::campaign::CampaignReport;
use narrows_model::run::compare::CompareReport;
use narrows_model::run::fleet::{FleetCheck, FleetSeries, FleetStatus};
use narrows_model::run::history::{HistoryReport, TrendReport};
use narrows_model::run::mesh::MeshReport;
use narrows_model::run::optimise::OptimiseReport;
use narrows_model::run::search_report::SearchReport;
use narrows_model::{
    BothDirections, ConnectionsView, DiffReport, Ledger, MeasureUdpReport, Report, SweepReport, TraceReport,
};
use schemars::{Schema, schema_for};
use serde::Serialize;

/// A view as JSON for people and programs: pretty, with a line break at the end.
/// Errors: a view that JSON cannot express; there is none.
pub fn pretty<T: Serialize>(view: &T) -> serde_json::Result<String> {
    serde_json::to_string_pretty(view).map(|text| text + "\n")
}

/// A view as one line of newline-delimited JSON.
pub fn line<T: Serialize>(view: &T) -> serde_json::Result<String> {
    serde_json::to_string(view).map(|text| text + "\n")
}

/// The name of a schema's page, and the function that makes it.
pub type Published = (&'static str, fn() -> Schema);

/// Every view whose schema is published.
const SCHEMAS: &[Published] = &[
    ("both-directions", || schema_for!(BothDirections)),
    ("campaign", || schema_for!(CampaignReport)),
    ("compare", || schema_for!(CompareReport)),
    ("connections", || schema_for!(ConnectionsView)),
    ("diff", || schema_for!(DiffReport)),
    ("fleet-check", || schema_for!(FleetCheck)),
    ("fleet-series", || schema_for!(FleetSeries)),
    ("fleet-status", || schema_for!(FleetStatus)),
    ("frames", || schema_for!(FramesReport)),
    ("history", || schema_for!(HistoryReport)),
    ("ledger", || schema_for!(Ledger)),
    ("line-rate", || schema_for!(LineRateReport)),
    ("measure-udp", || schema_for!(MeasureUdpReport)),
    ("mesh", || schema_for!(MeshReport)),
    ("optimise", || schema_for!(OptimiseReport)),
    ("report", || schema_for!(Report)),
    ("responsiveness", || schema_for!(ResponsivenessReport)),
    ("search", || schema_for!(SearchReport)),
    ("stamp", || schema_for!(StampReport)),
    ("sweep", || schema_for!(SweepReport)),
    ("trace", || schema_for!(TraceReport)),
    ("trend", || schema_for!(TrendReport)),
];

/// The names of the published schemas.
pub fn schema_names() -> impl Iterator<Item = &'static str> {
    SCHEMAS.iter().map(|(name, _)| *name)
}

/// The JSON Schema (draft 2020-12) of that name; `None` where there is none.
pub fn schema(name: &str) -> serde_json::Result<Option<String>> {
    SCHEMAS.iter().find(|(of, _)| *of == name).map(|(_, make)| pretty(&make())).transpose()
}
