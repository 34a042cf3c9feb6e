//! Statistics: medians, and ratios within a round with a distribution-free interval; the order of a round.

pub(crate) use narrows_stats::median;

/// The order of so many contenders in a round: it rotates from round to round and is reversed in every other.
pub(crate) fn order(contenders: usize, round: u32) -> Vec<usize> {
    let mut order: Vec<usize> = (0..contenders).collect();
    order.rotate_left(round as usize % contenders.max(1));
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

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

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ([low, high], percent) = (self.interval, self.coverage * 100.0);
        write!(f, "{:.3} [{low:.3}, {high:.3}] at {percent:.0} %", self.median)
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
