//! A comparison as ministat prints it.

/// The sets, each against the first.
#[derive(Debug, Clone, PartialEq)]
pub struct MinistatReport {
    /// The confidence level in percent: 80, 90, 95, 98, 99 or 99.5.
    pub level_percent: f64,
    /// At least one, at most seven.
    pub sets: Vec<MinistatSet>,
}

/// One set of at least three numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct MinistatSet {
    /// The name of its file.
    pub name: String,
    pub sorted: Vec<f64>,
    /// The upper one of two middle values.
    pub median: f64,
    pub mean: f64,
    /// The standard deviation; not a number where rounding made the variance negative.
    pub sd: f64,
    /// The difference of the means against the first set, where one is proven.
    pub difference: Option<MinistatDifference>,
}

/// A difference of means that Student's t proves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MinistatDifference {
    pub by: f64,
    /// Half of its interval.
    pub half: f64,
    /// The pooled standard deviation.
    pub pooled: f64,
}
