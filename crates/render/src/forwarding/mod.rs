//! The forwarding benchmark: its report as text, Markdown, pictures and one page. As JSON it is [`crate::json::pretty`] of the report.

pub mod ab;
mod accounts_svg;
mod drawing;
pub mod html;
pub mod markdown;
mod procedures;
mod section;
mod sized;
mod summary;
pub mod svg;
mod tables;
pub mod text;
mod words;
