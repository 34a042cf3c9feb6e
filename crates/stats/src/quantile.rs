//! Quantiles of a sample by linear interpolation (Hyndman and Fan's type 7, the default of R and NumPy).

use crate::{count, finite};

/// The quantile at `p` from 0 to 1; `None` if the sample is empty, a value is not finite or `p` is out of range.
pub fn quantile(values: &[f64], p: f64) -> Option<f64> {
    if values.is_empty() || !finite(values) || !(0.0..=1.0).contains(&p) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = count(sorted.len() - 1) * p;
    let below = at.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    let part = at - at.floor();
    Some(sorted[below] + part * (sorted[above] - sorted[below]))
}

pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn as_r_and_numpy_say() {
        // R: quantile(c(1,2,4,8,16), c(.1,.25,.5,.9)) gives 1.4 2.0 4.0 12.8
        let values = [8.0, 1.0, 16.0, 4.0, 2.0];
        for (p, want) in [(0.0, 1.0), (0.1, 1.4), (0.25, 2.0), (0.5, 4.0), (0.9, 12.8), (1.0, 16.0)] {
            assert!((quantile(&values, p).unwrap() - want).abs() < 1e-12, "{p}");
        }
        assert_eq!(median(&[1.0, 2.0, 3.0, 10.0]), Some(2.5));
    }

    #[test]
    fn no_answer_outside() {
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[1.0], 1.5), None);
        assert_eq!(quantile(&[1.0, f64::INFINITY], 0.5), None);
    }

    proptest! {
        #[test]
        fn grows_with_p(values in prop::collection::vec(-1e9..1e9f64, 1..30), a in 0.0..1.0f64, b in 0.0..1.0f64) {
            let (low, high) = if a < b { (a, b) } else { (b, a) };
            prop_assert!(quantile(&values, low).unwrap() <= quantile(&values, high).unwrap() + 1e-6);
        }
    }
}
