//! A histogram as the record stores it.

use narrows_model::Distribution;
use narrows_stats::LogLinear;

/// The quantiles and the buckets; all zero where nothing was recorded.
pub(crate) fn of(histogram: &LogLinear) -> Distribution {
    let at = |p| histogram.quantile(p).unwrap_or(0);
    Distribution {
        count: histogram.count(),
        min: histogram.min().unwrap_or(0),
        mean: histogram.mean().unwrap_or(0.0),
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
        p99_9: at(0.999),
        p99_99: at(0.9999),
        max: histogram.max().unwrap_or(0),
        buckets: histogram.buckets().map(|(upper, count)| [upper, count]).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_and_buckets_are_carried_over() {
        let mut histogram = LogLinear::new();
        (1..=100).for_each(|value| histogram.record(value));
        let distribution = of(&histogram);
        assert_eq!((distribution.count, distribution.p50, distribution.p99, distribution.max), (100, 50, 99, 100));
        assert_eq!((distribution.buckets.len(), distribution.buckets[0]), (100, [1, 1]));
        assert_eq!(of(&LogLinear::new()), Distribution::default());
    }
}
