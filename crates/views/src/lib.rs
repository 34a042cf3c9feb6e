//! Records become views here and nowhere else: what is derived from a run and its records for the formats to write. Pure: no
//! IO, no clock.
//!
//! The types of the views are in `narrows_model`, since the formats (`narrows_render`) know no other crate.

pub mod both_directions;
pub mod campaign;
pub mod compare;
pub mod connections;
pub mod diff;
pub mod figures;
pub mod fleet_series;
pub mod frames;
pub mod grid;
pub mod history;
pub mod live;
pub mod measure;
pub mod mesh;
pub mod responsiveness;
pub mod search;
pub mod stamp;
pub mod sweep;
pub mod watch;

pub use narrows_diagnose::weigh;
pub use narrows_search::trace::view as trace;
