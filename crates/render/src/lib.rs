//! Views to bytes: one folder per report, one file per format or section. Pure: no IO, no clock, no arithmetic of its own.
//!
//! Text from the other end is not trusted: all of it passes [`words::clean`] before it reaches a terminal or a page.

pub mod audit;
pub mod both_directions;
pub mod campaign;
mod command;
pub mod compare;
pub mod connections;
pub mod csv;
pub mod diagnosis;
pub mod diff;
pub mod doc;
#[cfg(test)]
#[path = "../tests/reports/samples/fits.rs"]
mod fits;
mod fleet;
pub mod fleet_metrics;
pub mod fleet_series;
pub mod fleet_settings;
pub mod format;
pub mod frames;
pub mod history;
pub mod influence;
mod iperf3;
pub mod json;
pub mod latency;
pub mod ledger;
pub mod line_rate;
pub mod live;
pub mod markdown;
pub mod measure;
mod mesh;
pub mod metrics;
pub mod optimise;
mod over_time;
pub mod page;
pub mod picture;
pub mod responsiveness;
pub mod search;
pub mod stamp;
pub mod style;
pub mod svg;
pub mod sweep;
pub mod table;
pub mod trace;
pub mod watch;
pub mod web;
pub mod words;

pub use format::{AnyDocument, Document, Format, OfAnyRun, Writer};
pub use narrows_model::words::figures;
pub use style::Style;
