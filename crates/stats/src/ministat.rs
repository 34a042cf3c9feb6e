//! The arithmetic of ministat, for its users: Student's t with pooled variance, each set against the first.
//!
//! The numbers are those that Debian's ministat prints, digit by digit, so its ways are kept: the variance from the sum of squares,
//! the upper one of two middle values as the median, quantiles of t rounded to three decimals, those of the normal distribution
//! above 100 degrees of freedom, and a "99.5 %" that is 99.8 %.

use crate::{count, finite, normal, t_quantile};

/// The minimum number of values of a set.
pub const LEAST: usize = 3;
/// The maximum number of sets.
pub const SETS: usize = 7;

/// The confidence levels in percent, each with the two-sided level of its quantiles.
const LEVELS: [(f64, f64); 6] = [(80.0, 0.8), (90.0, 0.9), (95.0, 0.95), (98.0, 0.98), (99.0, 0.99), (99.5, 0.998)];

/// Quantiles at "99.5 %" from 7 degrees of freedom on that ministat's table has otherwise.
const OTHERWISE: [f64; 6] = [4.782, 4.499, 4.296, 4.143, 4.024, 3.929];

/// The summary of a set.
#[derive(Debug, Clone, PartialEq)]
pub struct Set {
    pub sorted: Vec<f64>,
    /// The upper one of two middle values.
    pub median: f64,
    pub mean: f64,
    variance: f64,
}

/// A difference that is proven.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// The difference of the means.
    pub by: f64,
    /// Half of its interval.
    pub half: f64,
    /// The pooled standard deviation.
    pub pooled: f64,
}

impl Set {
    /// The summary of values; `None` for fewer than [`LEAST`], or where one is not finite.
    pub fn new(values: &[f64]) -> Option<Self> {
        if values.len() < LEAST || !finite(values) {
            return None;
        }
        let n = count(values.len());
        let (sum, squares) = values.iter().fold((0.0, 0.0), |(sum, squares), it| (sum + it, squares + it * it));
        let mut sorted = values.to_vec();
        // Stable, and zeros in their order whatever their sign.
        sorted.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
        let variance = (squares - sum * sum / n) / (n - 1.0);
        Some(Self { median: sorted[values.len() / 2], mean: sum / n, variance, sorted })
    }

    /// The sample standard deviation.
    pub fn sd(&self) -> f64 {
        self.variance.sqrt()
    }

    /// The difference of this set against the first at a level in percent; `None` if none is proven, or for another level.
    pub fn against(&self, first: &Self, level_percent: f64) -> Option<Difference> {
        let [n, m] = [self, first].map(|set| count(set.sorted.len()));
        let df = n + m - 2.0;
        let pooled = (((m - 1.0) * first.variance + (n - 1.0) * self.variance) / df).sqrt();
        let half =
            quantile(level_percent, self.sorted.len() + first.sorted.len() - 2)? * pooled * (1.0 / m + 1.0 / n).sqrt();
        let by = self.mean - first.mean;
        (by.abs() > half).then_some(Difference { by, half, pooled })
    }
}

/// Whether ministat has a confidence level in percent.
pub fn has_level(percent: f64) -> bool {
    LEVELS.iter().any(|(level, _)| (level - percent).abs() < 1e-9)
}

fn quantile(percent: f64, df: usize) -> Option<f64> {
    let (_, level) = LEVELS.iter().find(|(level, _)| (level - percent).abs() < 1e-9)?;
    if let Some(of) = df.checked_sub(7).and_then(|at| OTHERWISE.get(at)).filter(|_| *level > 0.995) {
        return Some(*of);
    }
    let exact = if df > 100 { normal::quantile(0.5 + level / 2.0) } else { t_quantile(*level, count(df)) };
    exact.map(|t| (t * 1000.0).round() / 1000.0)
}
