//! A histogram of whole numbers with buckets that are at most 1/128 of their value wide: exact below 128, then 128 buckets for
//! each doubling. Recording is a shift and an addition, so it fits into a path that handles millions a second.

/// Buckets for each doubling, as a power of two.
const BITS: u32 = 7;
const STEPS: usize = 1 << BITS;
/// Enough for every 64-bit number.
const BUCKETS: usize = (64 - BITS as usize + 1) * STEPS;

/// See the module.
#[derive(Debug, Clone)]
pub struct LogLinear {
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Default for LogLinear {
    fn default() -> Self {
        Self::new()
    }
}

#[inline]
const fn index(value: u64) -> usize {
    if value < STEPS as u64 {
        return value as usize;
    }
    let shift = 63 - value.leading_zeros() - BITS;
    ((shift as usize + 1) << BITS) + ((value >> shift) as usize & (STEPS - 1))
}

/// The smallest and the largest value of a bucket.
const fn bounds(index: usize) -> (u64, u64) {
    if index < STEPS {
        return (index as u64, index as u64);
    }
    let shift = (index >> BITS) as u32 - 1;
    let low = ((STEPS + (index & (STEPS - 1))) as u64) << shift;
    (low, low + ((1 << shift) - 1))
}

impl LogLinear {
    /// An empty one; it takes 58 KiB.
    #[must_use]
    pub fn new() -> Self {
        Self { counts: vec![0; BUCKETS], count: 0, sum: 0, min: u64::MAX, max: 0 }
    }

    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.record_many(value, 1);
    }

    /// Counts a value several times.
    #[inline]
    pub fn record_many(&mut self, value: u64, times: u64) {
        if times == 0 {
            return;
        }
        self.counts[index(value)] += times;
        self.count += times;
        self.sum += u128::from(value) * u128::from(times);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// How many values.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The smallest value.
    #[must_use]
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// The largest value.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// Their mean.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // far below the width of a bucket
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The smallest value, up to the width of its bucket, that a part `p` of all values does not exceed.
    #[must_use]
    pub fn quantile(&self, p: f64) -> Option<u64> {
        if self.count == 0 || !(0.0..=1.0).contains(&p) {
            return None;
        }
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let wanted = ((self.count as f64 * p).ceil() as u64).clamp(1, self.count);
        let mut seen = 0;
        let at = self.counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        })?;
        Some(bounds(at).1.clamp(self.min, self.max))
    }

    /// The largest value of each bucket that holds any, and how many, smallest first.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(at, count)| (bounds(at).1.min(self.max), *count))
    }

    /// Moves all values up: what was measured from a mark is now measured from one that lies `by` below it. Each bucket moves
    /// with its middle, so a shift much smaller than a bucket leaves it where it was.
    pub fn shift_up(&mut self, by: u64) {
        let mut moved = vec![0; BUCKETS];
        for (at, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let (low, high) = bounds(at);
            moved[index((low + (high - low) / 2).saturating_add(by))] += count;
        }
        self.counts = moved;
        self.sum += u128::from(by) * u128::from(self.count);
        if self.count > 0 {
            self.min = self.min.saturating_add(by);
            self.max = self.max.saturating_add(by);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_value_lies_in_its_bucket_which_is_narrow(value: u64) {
            let (low, high) = bounds(index(value));
            prop_assert!((low..=high).contains(&value));
            prop_assert!(high - low <= low / 128);
        }

        #[test]
        fn quantiles_are_those_of_the_sorted_values_within_a_bucket(
            mut values in prop::collection::vec(0..10_000_000_u64, 1..200), p in 0.0..=1.0_f64
        ) {
            let mut histogram = LogLinear::new();
            values.iter().for_each(|value| histogram.record(*value));
            values.sort_unstable();
            let exact = values[((values.len() as f64 * p).ceil() as usize).clamp(1, values.len()) - 1];
            let got = histogram.quantile(p).unwrap();
            prop_assert!(got >= exact && got - exact <= exact / 128, "{got} for {exact}");
            prop_assert_eq!(histogram.buckets().map(|(_, count)| count).sum::<u64>(), values.len() as u64);
        }

        #[test]
        fn a_shift_moves_every_quantile(values in prop::collection::vec(0..100_000_u64, 1..50), by in 0..100_000_u64) {
            let mut histogram = LogLinear::new();
            values.iter().for_each(|value| histogram.record(*value));
            let before = histogram.quantile(0.5).unwrap() + by;
            histogram.shift_up(by);
            let after = histogram.quantile(0.5).unwrap();
            prop_assert!(after.abs_diff(before) <= before / 64 + 1, "{after} for {before}");
        }
    }

    #[test]
    fn an_empty_one_says_nothing() {
        let histogram = LogLinear::new();
        assert_eq!((histogram.min(), histogram.max(), histogram.quantile(0.5)), (None, None, None));
        assert_eq!((histogram.mean(), histogram.buckets().count()), (None, 0));
    }

    #[test]
    fn extremes_are_exact() {
        let mut histogram = LogLinear::new();
        for value in [0, 1_000_003, u64::MAX] {
            histogram.record(value);
        }
        assert_eq!((histogram.min(), histogram.max()), (Some(0), Some(u64::MAX)));
        assert_eq!(histogram.quantile(1.0), Some(u64::MAX));
    }
}
