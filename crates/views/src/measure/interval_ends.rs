//! Samples into intervals: which samples stand at the interval's ends.

/// Indices of the samples that begin and end the intervals, first to last; fewer than two where there is no interval.
///
/// Samples are taken about every interval, and more closely at the start. Each boundary takes the sample nearest to it, and
/// the true times of the samples are what rates are made from. The omitted part ends an interval, too, so that no interval is
/// half counted. A rest of less than a quarter of an interval belongs to the last one: it is the draining of what was under way.
///
/// `times_us` are the samples' times, in their order.
pub(super) fn interval_ends(times_us: &[u64], interval_us: u64, omit_us: u64) -> Vec<usize> {
    let Some(last) = times_us.len().checked_sub(1) else { return Vec::new() };
    let interval_us = interval_us.max(1);
    let mut ends = vec![0];
    let end = times_us[last];
    // No more boundaries than samples, whatever the times in a record from outside say.
    let first = times_us[0] / interval_us;
    let grid = (1..=times_us.len() as u64).map(|k| k.saturating_add(first).saturating_mul(interval_us));
    let mut boundaries: Vec<u64> = grid.chain([omit_us]).filter(|at| *at <= end).collect();
    boundaries.sort_unstable();
    for boundary in boundaries {
        let after = times_us.partition_point(|at| *at < boundary).min(last);
        let before = after.saturating_sub(1);
        let off = |at: usize| times_us[at].abs_diff(boundary);
        // What is counted begins with the first sample after the omitted part, as in the summary.
        let nearest = if off(before) < off(after) && boundary != omit_us { before } else { after };
        if off(nearest) <= interval_us / 2 && ends.last().is_some_and(|newest| nearest > *newest) {
            ends.push(nearest);
        }
    }
    if let Some(&newest) = ends.last().filter(|newest| **newest < last) {
        if ends.len() > 1 && end.saturating_sub(times_us[newest]) < interval_us / 4 {
            ends.pop();
        }
        ends.push(last);
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(times_ms: &[u64]) -> Vec<u64> {
        times_ms.iter().map(|ms| ms * 1000).collect()
    }

    #[test]
    fn early_samples_are_passed_over_and_a_short_rest_joins_the_last() {
        let samples = at(&[0, 10, 20, 50, 100, 1001, 1999, 3002, 3040]);
        assert_eq!(interval_ends(&samples, 1_000_000, 0), [0, 5, 6, 8]);
    }

    #[test]
    fn a_long_rest_is_an_interval_of_its_own() {
        assert_eq!(interval_ends(&at(&[0, 1000, 2000, 2600]), 1_000_000, 0), [0, 1, 2, 3]);
    }

    #[test]
    fn a_missing_sample_makes_a_longer_interval() {
        assert_eq!(interval_ends(&at(&[0, 1000, 3000, 4000]), 1_000_000, 0), [0, 1, 2, 3]);
    }

    #[test]
    fn the_omitted_part_ends_an_interval() {
        let samples = at(&[0, 100, 499, 501, 1000, 2000]);
        assert_eq!(interval_ends(&samples, 1_000_000, 500_000), [0, 3, 4, 5]);
        assert_eq!(interval_ends(&samples, 1_000_000, 1_000_000), [0, 4, 5]);
    }

    #[test]
    fn samples_from_the_middle_of_a_trial_on_keep_its_grid() {
        assert_eq!(interval_ends(&at(&[7000, 7500, 8000, 9000]), 1_000_000, 500_000), [0, 2, 3]);
    }

    #[test]
    fn nothing_of_nothing() {
        assert!(interval_ends(&[], 1000, 0).is_empty());
        assert_eq!(interval_ends(&at(&[0]), 1000, 0), [0]);
        assert_eq!(interval_ends(&at(&[0, 300]), 1_000_000, 0), [0, 1]);
        assert_eq!(interval_ends(&at(&[0, u64::MAX / 1000]), 1, 0).len(), 2);
    }
}
