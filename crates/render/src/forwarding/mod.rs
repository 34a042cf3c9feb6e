//! The forwarding benchmark: its view from the record and what others derived of it, as text, Markdown, pictures and one
//! page. As JSON it is [`crate::json::pretty`] of the view.

pub mod ab;
pub mod build;
pub mod html;
pub mod markdown;
pub mod svg;
mod tables;
pub mod text;
mod words;

pub use build::build;
pub use words::names;
