//! The path profile: which steps of paced UDP show what a path does by itself, and what they showed.
//!
//! ```text
//! Staircase::new(plan, ..) -> next(now) -> ProfileStep -> the two ends
//!                              ^                            |
//!                              +---- observe(StepRecord) <--+
//! Shape::of(record) -> capacity, policer, shaper, loss, delay
//! ```
//!
//! - [`Staircase`] decides the steps: short trains, rates that grow until the path no longer keeps up, then some a little above what
//!   it delivered and one below.
//! - [`Shape`] reads the steps, at any later time.
//! - [`StepView`] is one step in terms of rates and delays; both use it.

mod shape;
mod staircase;
mod step_view;
#[cfg(test)]
mod tests;
mod trains;

pub use shape::{Below, Capacity, Plateau, Shape, Shared, Spread};
pub use staircase::{Next, Staircase};
pub use step_view::StepView;
