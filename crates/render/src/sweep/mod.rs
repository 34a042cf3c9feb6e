//! The sweep: its report from what was recorded, and that report as table, CSV and picture. As JSON it is
//! [`crate::json::pretty`] of the report.

pub mod csv;
mod groups;
pub mod progress;
pub mod svg;
pub mod text;
