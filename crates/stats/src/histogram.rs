//! A histogram of times or counts in log-linear buckets: any `u64`, bounded memory, values within 1 %. Values below 128 have
//! a bucket each; above, each power of two has 128 buckets of equal width, so a bucket is at most 1/128 of its values wide.

use narrows_model::Distribution;

/// Buckets of each power of two.
const PER_OCTAVE: u64 = 128;
const BITS: u32 = PER_OCTAVE.trailing_zeros();
/// One for each value below [`PER_OCTAVE`], and [`PER_OCTAVE`] for each power of two up to 2^63.
const BUCKETS: usize = (PER_OCTAVE * (64 - BITS as u64 + 1)) as usize;

/// Counts of values by bucket; at most 58 KiB, less where only small values were seen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Histogram {
    pub const fn new() -> Self {
        Self { counts: Vec::new(), count: 0, sum: 0, min: 0, max: 0 }
    }

    #[inline]
    pub fn record(&mut self, value: u64) {
        self.record_many(value, 1);
    }

    /// Adds a value `times` times.
    pub fn record_many(&mut self, value: u64, times: u64) {
        if times == 0 {
            return;
        }
        let at = bucket_of(value);
        if at >= self.counts.len() {
            self.counts.resize(at + 1, 0);
        }
        if let Some(count) = self.counts.get_mut(at) {
            *count = count.saturating_add(times);
        }
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count = self.count.saturating_add(times);
        self.sum = self.sum.saturating_add(u128::from(value) * u128::from(times));
    }

    /// Adds all values of another histogram.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine = mine.saturating_add(*theirs);
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
    }

    /// Shifts all values up: what was measured from one reference is then relative to a reference `by` below it.
    /// Each bucket moves with its middle, so a shift much smaller than a bucket has no effect.
    pub fn shift_up(&mut self, by: u64) {
        let (min, max) = (self.min, self.max);
        let sum = self.sum.saturating_add(u128::from(by) * u128::from(self.count));
        let mut moved = Self::new();
        for [bound, count] in self.buckets() {
            let low = lower_bound(bucket_of(bound));
            moved.record_many((low + (bound - low) / 2).saturating_add(by), count);
        }
        if moved.count > 0 {
            *self = Self { sum, min: min.saturating_add(by), max: max.saturating_add(by), ..moved };
        }
    }

    /// The number of values.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The exact minimum; `None` if empty.
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// The exact maximum; `None` if empty.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// The exact mean; `None` if empty.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The smallest bound that `p` (0 to 1) of the values do not exceed, at most 1 % above the value itself; `None`
    /// if empty or if `p` is out of range.
    pub fn quantile(&self, p: f64) -> Option<u64> {
        if self.count == 0 || !(0.0..=1.0).contains(&p) {
            return None;
        }
        let wanted = rank(self.count, p).max(1);
        let mut seen = 0_u64;
        let found = self.buckets().find(|[_, count]| {
            seen = seen.saturating_add(*count);
            seen >= wanted
        });
        Some(found.map_or(self.max, |[bound, _]| bound.clamp(self.min, self.max)))
    }

    /// The mean of the smallest `part` (0 to 1) of the values: a one-sided trimmed mean, within the width of a
    /// bucket. `None` if no value is left.
    pub fn trimmed_mean(&self, part: f64) -> Option<f64> {
        if !(0.0..=1.0).contains(&part) {
            return None;
        }
        let wanted = rank(self.count, part);
        let (mut left, mut sum) = (wanted, 0.0);
        for [bound, count] in self.buckets() {
            let taken = count.min(left);
            let low = lower_bound(bucket_of(bound)).max(self.min);
            sum += taken as f64 * (low as f64 + bound.min(self.max) as f64) / 2.0;
            left -= taken;
            if left == 0 {
                break;
            }
        }
        (wanted > 0).then(|| sum / (wanted - left) as f64)
    }

    /// `[upper bound, count]` of each non-empty bucket, smallest first; the bound is the bucket's largest value.
    pub fn buckets(&self) -> impl Iterator<Item = [u64; 2]> + '_ {
        self.counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(at, count)| [upper_bound(at), *count])
    }

    /// The same in its stored form.
    pub fn distribution(&self) -> Distribution {
        let at = |p| self.quantile(p).unwrap_or(0);
        Distribution {
            count: self.count,
            min: self.min,
            mean: self.mean().unwrap_or(0.0),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p99_9: at(0.999),
            p99_99: at(0.9999),
            max: self.max,
            buckets: self.buckets().collect(),
        }
    }

    /// The inverse of [`Histogram::distribution`]: the same counts; the mean is that of the buckets' bounds, unless
    /// the stored one is plausible.
    pub fn from_distribution(stored: &Distribution) -> Self {
        let mut histogram = Self::new();
        for [bound, count] in &stored.buckets {
            histogram.record_many(*bound, *count);
        }
        if histogram.count > 0 {
            histogram.min = stored.min.min(histogram.min);
            histogram.max = stored.max.clamp(histogram.min, histogram.max);
            if (histogram.min as f64..=histogram.max as f64).contains(&stored.mean) {
                histogram.sum = (stored.mean * histogram.count as f64).round() as u128;
            }
        }
        histogram
    }
}

/// How many of `count` values are `part` of them, rounded up.
fn rank(count: u64, part: f64) -> u64 {
    // 0.9 * 10 is above 9 by a rounding error, and 10 would be wrong.
    let exact = part * count as f64;
    let near = exact.round();
    let rank = if (exact - near).abs() <= 1e-9 * near { near } else { exact.ceil() };
    (rank as u64).min(count)
}

const fn bucket_of(value: u64) -> usize {
    if value < PER_OCTAVE {
        return value as usize;
    }
    let shift = 63 - value.leading_zeros() - BITS;
    // The highest bit selects the octave.
    ((shift as u64 + 1) * PER_OCTAVE + ((value >> shift) - PER_OCTAVE)) as usize
}

const fn lower_bound(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < PER_OCTAVE {
        return bucket;
    }
    let shift = bucket / PER_OCTAVE - 1;
    (PER_OCTAVE + bucket % PER_OCTAVE) << shift
}

const fn upper_bound(bucket: usize) -> u64 {
    if bucket + 1 >= BUCKETS { u64::MAX } else { lower_bound(bucket + 1) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|value| histogram.record(*value));
        histogram
    }

    #[test]
    fn small_values_are_exact_and_the_quantiles_are_ranks() {
        let histogram = of(&(1..=100).collect::<Vec<_>>());
        for (p, want) in [(0.0, 1), (0.5, 50), (0.9, 90), (0.99, 99), (0.999, 100), (1.0, 100)] {
            assert_eq!(histogram.quantile(p), Some(want), "{p}");
        }
        assert_eq!(histogram.mean(), Some(50.5));
        assert_eq!(histogram.trimmed_mean(0.95), Some(48.0)); // of 1 to 95
        assert_eq!((histogram.min(), histogram.max()), (Some(1), Some(100)));
    }

    #[test]
    fn an_empty_histogram_has_no_quantiles() {
        let nothing = Histogram::new();
        assert_eq!((nothing.quantile(0.5), nothing.mean(), nothing.trimmed_mean(0.95)), (None, None, None));
        assert_eq!(nothing.distribution(), Distribution::default());
        assert_eq!(of(&[3]).quantile(1.5), None);
        let mut merged = of(&[7]);
        merged.merge(&nothing);
        assert_eq!(merged, of(&[7]));
    }

    #[test]
    fn the_outermost_values_have_buckets() {
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
        let histogram = of(&[0, u64::MAX]);
        assert_eq!(histogram.buckets().collect::<Vec<_>>(), [[0, 1], [u64::MAX, 1]]);
        assert_eq!((histogram.quantile(0.5), histogram.quantile(1.0)), (Some(0), Some(u64::MAX)));
    }

    #[test]
    fn stored_data_may_be_invalid() {
        let stored = Distribution {
            min: u64::MAX,
            max: 3,
            mean: f64::NAN,
            buckets: vec![[u64::MAX, u64::MAX], [5, u64::MAX], [5, 0]],
            ..Distribution::default()
        };
        let histogram = Histogram::from_distribution(&stored);
        assert_eq!(histogram.count(), u64::MAX);
        assert!(histogram.quantile(0.99).is_some() && histogram.trimmed_mean(0.95).is_some_and(f64::is_finite));
    }

    proptest! {
        #[test]
        fn a_shift_moves_every_quantile(values in prop::collection::vec(0..100_000_u64, 1..50), by in 0..100_000_u64) {
            let mut histogram = Histogram::new();
            values.iter().for_each(|value| histogram.record(*value));
            let (min, median) = (histogram.min().unwrap() + by, histogram.quantile(0.5).unwrap() + by);
            histogram.shift_up(by);
            let after = histogram.quantile(0.5).unwrap();
            prop_assert!(after.abs_diff(median) <= median / 64 + 1, "{after} for {median}");
            prop_assert_eq!((histogram.min(), histogram.count()), (Some(min), values.len() as u64));
        }

        #[test]
        fn each_value_lies_in_its_bucket_and_buckets_are_narrow(value in any::<u64>()) {
            let at = bucket_of(value);
            let (low, high) = (lower_bound(at), upper_bound(at));
            prop_assert!(low <= value && value <= high);
            prop_assert!((high - low) as f64 <= low as f64 / 100.0);
            prop_assert!(at == 0 || upper_bound(at - 1) == low - 1);
        }

        #[test]
        fn quantiles_are_within_one_per_cent(mut values in prop::collection::vec(1..10_000_000_000u64, 1..300), p in 0.0..1.0f64) {
            let histogram = of(&values);
            values.sort_unstable();
            let exact = values[(rank(values.len() as u64, p).max(1) - 1) as usize];
            let got = histogram.quantile(p).unwrap();
            prop_assert!(got >= exact && got as f64 <= exact as f64 * 1.01, "{} for {}", got, exact);
            let all = histogram.trimmed_mean(1.0).unwrap();
            prop_assert!((all / histogram.mean().unwrap() - 1.0).abs() < 0.01);
        }

        #[test]
        fn merging_is_recording_both_and_storing_loses_nothing(
            a in prop::collection::vec(any::<u64>(), 0..100),
            b in prop::collection::vec(0..1000u64, 0..100),
        ) {
            let mut merged = of(&a);
            merged.merge(&of(&b));
            let whole = of(&[a, b].concat());
            prop_assert_eq!(&merged, &whole);
            let back = Histogram::from_distribution(&whole.distribution());
            prop_assert_eq!(back.counts, whole.counts);
            prop_assert_eq!((back.min, back.max, back.count), (whole.min, whole.max, whole.count));
        }
    }
}
