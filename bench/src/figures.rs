//! Statistics: medians, and ratios within a round with a distribution-free interval.

/// A ratio over rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ratio {
    /// The median of the rounds' ratios.
    pub(crate) median: f64,
    /// From order statistics; it contains the true median with the probability `coverage`.
    pub(crate) interval: [f64; 2],
    /// At least 0.95 with enough rounds (6), otherwise what all rounds give.
    pub(crate) coverage: f64,
}

/// The median; for an even number the mean of the two in the middle. `None` if empty.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        length if length % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// The median of ratios with the sign test's interval: the k-th smallest to the k-th largest, k as large as 95 %
/// permit.
pub(crate) fn ratio(ratios: &[f64]) -> Option<Ratio> {
    let mut sorted = ratios.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    // P(the true median lies outside the k-th smallest and largest) = 2 * P(Binomial(n, 1/2) < k)
    let outside =
        |k: usize| 2.0 * (0..k).map(|i| binomial(n, i)).sum::<f64>() / 2f64.powi(i32::try_from(n).unwrap_or(i32::MAX));
    let k = (1..=n / 2).take_while(|k| outside(*k) <= 0.05).last().unwrap_or(1);
    let (low, high) = (*sorted.get(k - 1)?, *sorted.get(n - k)?);
    Some(Ratio { median: median(&sorted)?, interval: [low, high], coverage: (1.0 - outside(k)).max(0.0) })
}

#[allow(clippy::cast_precision_loss)]
fn binomial(n: usize, k: usize) -> f64 {
    (0..k).fold(1.0, |product, i| product * (n - i) as f64 / (i + 1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_ten_rounds_is_second_to_ninth() {
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        let ratio = ratio(&values).expect("ten values");
        assert_eq!((ratio.median, ratio.interval), (5.5, [2.0, 9.0]));
        assert!((ratio.coverage - 0.978_5).abs() < 0.000_1, "{}", ratio.coverage); // 1 - 2 * 11 / 1024
    }

    #[test]
    fn the_coverage_of_few_rounds_is_reported() {
        let ratio = ratio(&[1.0, 3.0, 2.0]).expect("three values");
        assert_eq!((ratio.median, ratio.interval, ratio.coverage), (2.0, [1.0, 3.0], 0.75));
    }

    #[test]
    fn an_empty_slice_has_no_median() {
        assert_eq!(median(&[]), None);
        assert_eq!(ratio(&[]), None);
    }
}
