//! A plain measurement: building its view from what was recorded, and that view as text, JSON and newline-delimited JSON.

pub mod build;
pub(crate) mod cpu;
pub(crate) mod cut;
pub(crate) mod cutter;
pub(crate) mod interval;
pub mod json;
pub mod live;
mod shown;
pub mod text;

pub use build::build;
pub use live::Live;
