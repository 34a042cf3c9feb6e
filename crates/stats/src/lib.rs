//! The mathematics of measured values: summaries, intervals, comparisons. Pure, no IO, no clock.
//!
//! The unit is the run, never the second: seconds of one run are correlated with each other
//! (see [`series`]), so an interval over them would be far too narrow.
//!
//! Every function takes plain slices and returns `None` if the numbers do not permit an answer (too few of them, or one that
//! is not finite): missing is never zero.

pub mod calibration;
pub mod change_points;
pub mod effects;
pub mod histogram;
pub mod ministat;
mod normal;
pub mod paired;
pub mod proportion;
pub mod quantile;
pub mod rank;
pub mod ratio;
pub mod responsiveness;
pub mod series;
pub mod several;
pub mod student;
pub mod summary;

pub use calibration::{expected_calibration_error, isotonic};
pub use change_points::{ChangePoint, change_points};
pub use histogram::Histogram;
pub use paired::paired_shift;
pub use proportion::{Groups, covered_by_chance, more_often, two_groups, wilson};
pub use quantile::{median, quantile};
pub use rank::{Shift, shift};
pub use ratio::{Gain, gain};
pub use series::{Trend, lag1, trend};
pub use several::holm;
pub use student::{Estimate, difference, equivalence, mean_interval, p_of, t_quantile};
pub use summary::{Summary, mean, summary};

/// The confidence level of every interval that a user sees, unless stated otherwise.
pub const LEVEL: f64 = 0.95;

/// A length as a number. Exact up to 2^53, far above any sample here.
pub(crate) const fn count(n: usize) -> f64 {
    n as f64
}

/// Whether every value is a finite number.
pub(crate) fn finite(values: &[f64]) -> bool {
    values.iter().all(|value| value.is_finite())
}
