//! The judge: which causes bind, and which experiments would tell more. One judge for every protocol.
//!
//! It knows no cause by its id: what it needs to know of a cause is a field of [`Cause`], and what differs between
//! protocols is a method of [`Evidence`].

mod assessment;
mod cause;
pub mod ceilings;
mod disproof;
mod experiment;
mod predict;
mod verdict;

pub use assessment::Assessment;
pub use cause::{Cause, Evidence, Excludes, Holds, Losses, Within};
pub use disproof::is_disproved;
pub(crate) use disproof::lower;
pub use experiment::{Baseline, Experiment, Plan, Planned};
pub(crate) use predict::EXTRAPOLATION;
pub use verdict::{Judgement, judge};
