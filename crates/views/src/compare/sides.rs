//! What is compared, and how.

use narrows_model::run::history::StoredRun;

/// What is compared on one side.
#[derive(Debug, Clone)]
pub struct Side {
    /// What the user named.
    pub name: String,
    pub values: Values,
}

/// The values of a side, in the order in which they were measured.
#[derive(Debug, Clone)]
pub enum Values {
    Numbers(Vec<f64>),
    /// Runs with their figures.
    Runs(Vec<StoredRun>),
}

#[derive(Debug, Clone)]
pub struct Options {
    /// Confidence level, inside (0, 1).
    pub level: f64,
    /// Margin of equivalence, as a share of the first side's mean.
    pub margin: f64,
    /// Values of two sides are pairs.
    pub paired: bool,
    /// The figures by name; none: the first figure of the first run.
    pub figures: Vec<String>,
}
