//! A plain UDP measurement: its view from what both ends recorded, and that view as text, JSON and newline-delimited JSON.

pub mod build;
pub mod json;
pub mod live;
mod part;
mod shown;
mod summary;
pub mod text;
pub(crate) mod words;

pub use build::{build, from_trial};
pub use live::Live;
pub use shown::UdpMeasurement;
