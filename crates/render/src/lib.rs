//! Views to bytes: one folder a format, one file a section. Pure: no IO, no clock, no decision of its own.
//!
//! What comes from the other end is not trusted: every word passes [`words::clean`] before a terminal or a page sees it.

pub mod advice;
pub mod audit;
pub mod distribution;
pub mod figures;
pub mod format;
pub mod forwarding;
pub mod frames;
pub mod json;
pub mod latency;
pub mod ledger;
pub mod line_rate;
pub mod markdown;
pub mod measure;
pub mod rr;
pub mod search;
pub mod style;
pub mod svg;
pub mod sweep;
mod table;
pub mod text;
pub mod udp;
pub mod watch;
pub mod words;

pub use format::{Document, Format};
pub use style::Style;
