//! Values in time order: autocorrelation and drift.

use crate::student::Estimate;
use crate::summary::mean;
use crate::{LEVEL, count, finite, t_quantile};

/// Correlation of each value with the one before it, −1 to 1. Above about 0.25 the values of one run are not
/// independent, and an interval over them is too narrow.
///
/// `None` for fewer than three values or if all are equal.
pub fn lag1(values: &[f64]) -> Option<f64> {
    if values.len() < 3 || !finite(values) {
        return None;
    }
    let mean = mean(values)?;
    let spread: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let together: f64 = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    (spread > 0.0).then(|| together / spread)
}

/// A straight line through values over time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// Change of the value per unit of time, with its 95 % interval.
    pub slope: Estimate,
}

impl Trend {
    /// The drift is significant: the slope's interval does not contain zero.
    pub fn is_drift(&self) -> bool {
        self.slope.interval[0] > 0.0 || self.slope.interval[1] < 0.0
    }
}

/// The least-squares line through `(time, value)`.
///
/// `None` for fewer than three points, or if all have the same time.
pub fn trend(points: &[(f64, f64)]) -> Option<Trend> {
    let (times, values): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
    if points.len() < 3 || !finite(&times) || !finite(&values) {
        return None;
    }
    let (mean_t, mean_v) = (mean(&times)?, mean(&values)?);
    let over = |f: &dyn Fn(f64, f64) -> f64| points.iter().map(|&(t, v)| f(t - mean_t, v - mean_v)).sum::<f64>();
    let (tt, tv) = (over(&|t, _| t * t), over(&|t, v| t * v));
    if tt <= 0.0 {
        return None;
    }
    let slope = tv / tt;
    let left: f64 = points.iter().map(|&(t, v)| (v - mean_v - slope * (t - mean_t)).powi(2)).sum();
    let df = count(points.len() - 2);
    let error = (left / df / tt).sqrt();
    let half = t_quantile(LEVEL, df)? * error;
    Some(Trend { slope: Estimate { value: slope, interval: [slope - half, slope + half], df, error } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lag1_by_hand() {
        // 1..5: deviations −2 −1 0 1 2, products 2 0 0 2 = 4, spread 10.
        assert_eq!(lag1(&[1.0, 2.0, 3.0, 4.0, 5.0]), Some(0.4));
        // Alternating, mean 0.2: deviations 0.8 and −1.2, four products of −0.96 = −3.84, spread 3·0.64 + 2·1.44 = 4.8.
        let zigzag = lag1(&[1.0, -1.0, 1.0, -1.0, 1.0]).unwrap();
        assert!((zigzag + 0.8).abs() < 1e-12, "{zigzag}");
        assert_eq!(lag1(&[2.0, 2.0, 2.0]), None);
    }

    #[test]
    fn line_by_hand() {
        // Points (1,2) (2,3) (3,5) (4,6): tt 5, tv 7, slope 1.4, residuals .1 −.3 .3 −.1: 0.2, half = 4.30265·sqrt(0.1/5) = 0.60849.
        let t = trend(&[(1.0, 2.0), (2.0, 3.0), (3.0, 5.0), (4.0, 6.0)]).unwrap();
        assert!((t.slope.value - 1.4).abs() < 1e-12);
        assert!((t.slope.interval[0] - 0.791_51).abs() < 1e-4, "{t:?}");
        assert!(t.is_drift());
        assert_eq!(trend(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), None);
    }

    proptest! {
        #[test]
        fn finds_an_exact_line(slope in -1e3..1e3f64, at in -1e3..1e3f64, n in 3usize..20) {
            let points: Vec<_> = (0..n).map(|i| (count(i), at + slope * count(i))).collect();
            let t = trend(&points).unwrap();
            prop_assert!((t.slope.value - slope).abs() < 1e-6);
        }

        #[test]
        fn lag1_is_a_correlation(values in prop::collection::vec(-1e6..1e6f64, 3..50)) {
            if let Some(r) = lag1(&values) {
                prop_assert!((-1.0..=1.0).contains(&r));
            }
        }
    }
}
