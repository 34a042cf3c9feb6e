//! Request/response measurements: building their view from what was recorded, and that view as text, JSON and newline-delimited
//! JSON.

pub mod build;
pub mod json;
pub mod live;
mod shown;
pub mod text;
mod words;

pub use build::build;
pub use live::Live;
