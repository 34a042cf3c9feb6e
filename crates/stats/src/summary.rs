//! A handful of runs in seven numbers.

use crate::{count, finite, quantile};
use serde::{Deserialize, Serialize};

/// A summary in the columns that benchmark readers know. All values in the sample's own unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The number of values.
    pub n: usize,
    pub min: f64,
    pub max: f64,
    pub mean: f64,
    pub median: f64,
    /// Sample standard deviation (n − 1 in the denominator); `None` for a single value, whose variance is unknown.
    pub sd: Option<f64>,
}

/// Summarises a sample; `None` if it is empty or a value is not finite.
pub fn summary(values: &[f64]) -> Option<Summary> {
    if values.is_empty() || !finite(values) {
        return None;
    }
    let mean = mean(values)?;
    Some(Summary {
        n: values.len(),
        min: values.iter().copied().fold(f64::INFINITY, f64::min),
        max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        mean,
        median: quantile::median(values)?,
        sd: variance(values).map(f64::sqrt),
    })
}

/// The arithmetic mean; `None` if empty.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / count(values.len()))
}

/// The sample variance (n − 1 in the denominator), in two passes; `None` for fewer than two values.
pub fn variance(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = mean(values)?;
    Some(values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count(values.len() - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_sample() {
        // By hand: sum 40, squared deviations 9+1+1+1+0+0+4+16 = 32, sd = sqrt(32/7).
        let s = summary(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!((s.n, s.min, s.max, s.mean, s.median), (8, 2.0, 9.0, 5.0, 4.5));
        assert!((s.sd.unwrap() - 2.138_089_935).abs() < 1e-9);
    }

    #[test]
    fn no_summary_of_nothing_and_no_deviation_of_one() {
        assert_eq!(summary(&[]), None);
        assert_eq!(summary(&[1.0, f64::NAN]), None);
        assert_eq!(summary(&[3.0]).unwrap().sd, None);
    }

    proptest! {
        #[test]
        fn ordered_and_shift_invariant(values in prop::collection::vec(-1e6..1e6f64, 2..40), by in -1e6..1e6f64) {
            let s = summary(&values).unwrap();
            prop_assert!(s.min <= s.median && s.median <= s.max);
            prop_assert!(s.min <= s.mean + 1e-6 && s.mean <= s.max + 1e-6);
            let moved: Vec<f64> = values.iter().map(|v| v + by).collect();
            prop_assert!((summary(&moved).unwrap().sd.unwrap() - s.sd.unwrap()).abs() < 1e-4);
        }
    }
}
