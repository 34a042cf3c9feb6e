//! The arithmetic of lines. As JSON it is [`crate::json::pretty`] of the report.

pub mod text;
