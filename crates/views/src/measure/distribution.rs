//! Merges the distributions of several streams.

use narrows_model::Distribution;
use narrows_model::words::figures::float;
use std::collections::BTreeMap;

/// The values of several distributions as one; `None` without values. Quantiles come from the buckets, so
/// their resolution is the bucket width; a single distribution keeps its own.
pub(crate) fn merged<'a>(parts: impl IntoIterator<Item = &'a Distribution>) -> Option<Distribution> {
    let parts: Vec<&Distribution> = parts.into_iter().filter(|part| part.count > 0).collect();
    let (first, rest) = parts.split_first()?;
    if rest.is_empty() {
        return Some((*first).clone());
    }
    let count = parts.iter().fold(0u64, |sum, part| sum.saturating_add(part.count));
    let mean = parts.iter().map(|part| part.mean * (float(part.count) / float(count))).sum();
    let mut buckets: BTreeMap<u64, u64> = BTreeMap::new();
    for [bound, number] in parts.iter().flat_map(|part| part.buckets.iter().copied()) {
        let held = buckets.entry(bound).or_default();
        *held = held.saturating_add(number);
    }
    let buckets: Vec<[u64; 2]> = buckets.into_iter().map(|(bound, number)| [bound, number]).collect();
    let max = parts.iter().map(|part| part.max).max()?;
    let at = |p: f64| quantile(&buckets, p).unwrap_or(max).min(max);
    Some(Distribution {
        count,
        min: parts.iter().map(|part| part.min).min()?,
        mean,
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
        p99_9: at(0.999),
        p99_99: at(0.9999),
        max,
        buckets,
    })
}

/// The upper bound of the bucket in which the share `p` of all values ends; `None` without buckets.
pub(crate) fn quantile(buckets: &[[u64; 2]], p: f64) -> Option<u64> {
    let total = buckets.iter().fold(0u64, |sum, [_, number]| sum.saturating_add(*number));
    let mut sum = 0u64;
    for [bound, number] in buckets {
        sum = sum.saturating_add(*number);
        // Tolerance: 0.999 · 1000 is not a whole number in binary.
        if float(sum) + 1e-6 >= p * float(total) {
            return Some(*bound);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: u64, count: u64) -> Distribution {
        let v = value;
        let mean = v as f64;
        Distribution {
            count,
            min: v,
            mean,
            p50: v,
            p90: v,
            p99: v,
            p99_9: v,
            p99_99: v,
            max: v,
            buckets: vec![[v, count]],
        }
    }

    #[test]
    fn streams_weigh_by_their_values() {
        let both = merged([&of(10, 990), &of(500, 10)]).expect("values");
        assert_eq!((both.count, both.min, both.max), (1000, 10, 500));
        assert_eq!((both.p50, both.p90, both.p99, both.p99_9), (10, 10, 10, 500));
        assert!((both.mean - 14.9).abs() < 1e-9);
    }

    #[test]
    fn nothing_of_nothing_and_one_as_it_is() {
        assert_eq!(merged([&Distribution::default()]), None);
        assert_eq!(merged([&of(7, 3), &Distribution::default()]), Some(of(7, 3)));
    }
}
