//! A plain measurement: building its view from what was recorded, and that view as text, JSON and newline-delimited JSON.

pub mod build;
pub(crate) mod cpu;
pub(crate) mod cut;
pub mod json;
pub mod live;
pub mod reading;
pub mod text;

pub use build::build;
pub use live::Live;
pub use reading::Reading;
