//! Comparison by ranks: the shift between two samples, without assuming a distribution.
//!
//! The Hodges–Lehmann shift is the median of all pairwise differences; its interval keeps those differences that the exact
//! Mann–Whitney distribution does not rule out. One outlier moves neither by much.

use crate::{count, finite, median};

/// The shift of `after` against `before`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    /// Hodges–Lehmann estimate, in the unit of the samples.
    pub by: f64,
    /// The confidence interval at the requested level; `None` if the samples are too small for that level (3
    /// against 3 reach 90 %, not 95 %).
    pub interval: Option<[f64; 2]>,
    /// Two-sided exact p of the Mann–Whitney test; ties count half, which makes it approximate.
    pub p: f64,
}

/// The maximum sample size for the exact distribution: runs, not seconds.
pub const MAX_RUNS: usize = 200;

/// The shift of `after` against `before`; `None` if a side is empty, larger than [`MAX_RUNS`] or not finite.
#[must_use]
pub fn shift(before: &[f64], after: &[f64], level: f64) -> Option<Shift> {
    let bad = |side: &[f64]| side.is_empty() || side.len() > MAX_RUNS || !finite(side);
    if bad(before) || bad(after) || !(level > 0.0 && level < 1.0) {
        return None;
    }
    let mut gaps: Vec<f64> = before.iter().flat_map(|a| after.iter().map(move |b| b - a)).collect();
    gaps.sort_by(f64::total_cmp);
    let below = gaps.iter().filter(|&&gap| gap < 0.0).count();
    let ties = gaps.iter().filter(|&&gap| gap == 0.0).count();
    let upto = cumulative(before.len(), after.len());
    // U of the smaller tail; half a tie each way.
    let smaller = (below + ties / 2).min(gaps.len() - below - ties.div_ceil(2));
    let p = (2.0 * upto[smaller]).min(1.0);
    // The largest c with P(U < c) within half of the error probability: the interval drops c differences at each
    // end.
    let drop = upto.iter().take_while(|&&tail| tail <= (1.0 - level) / 2.0).count();
    let interval = (drop > 0).then(|| [gaps[drop - 1], gaps[gaps.len() - drop]]);
    Some(Shift { by: median(&gaps)?, interval, p })
}

/// P(U ≤ u) for u from 0 to n·m under *no shift*: the count of partitions, by the recurrence of Mann and Whitney (1947).
fn cumulative(n: usize, m: usize) -> Vec<f64> {
    // The coefficients of the Gaussian binomial, as probabilities so that they never overflow:
    // row k holds the distribution of U for (k, m), built by multiplying (1 − q^(m+k)) and dividing by (1 − q^k).
    let top = n * m;
    let mut law = vec![0.0; top + 1];
    law[0] = 1.0;
    for k in 1..=n {
        for u in (m + k..=top).rev() {
            law[u] -= law[u - m - k];
        }
        for u in k..=top {
            law[u] += law[u - k];
        }
        // C(m+k, k) / C(m+k−1, k−1) = (m+k)/k
        let scale = count(k) / count(m + k);
        law.iter_mut().for_each(|p| *p *= scale);
    }
    let mut sum = 0.0;
    law.iter()
        .map(|p| {
            sum += p.max(0.0);
            sum.min(1.0)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn smallest_p_of_the_exact_test() {
        // 2/C(2n, n): 2/20, 2/70, 2/252.
        for (n, p) in [(3u32, 0.1), (4, 2.0 / 70.0), (5, 2.0 / 252.0)] {
            let before: Vec<f64> = (0..n).map(f64::from).collect();
            let after: Vec<f64> = (0..n).map(|x| f64::from(x) + 100.0).collect();
            let s = shift(&before, &after, 0.95).unwrap();
            assert!((s.p - p).abs() < 1e-12, "{n}: {s:?}");
            assert_eq!(s.by, 100.0);
            assert_eq!(s.interval.is_some(), n > 3);
        }
    }

    #[test]
    fn critical_values_of_the_printed_table() {
        // Two-sided 5 % critical U (Mann and Whitney's table as in most textbooks): n = m: 4:0, 5:2, 6:5, 8:13, 10:23.
        for (n, critical) in [(4, 0), (5, 2), (6, 5), (8, 13), (10, 23)] {
            let law = cumulative(n, n);
            assert!(2.0 * law[critical] <= 0.05 && 2.0 * law[critical + 1] > 0.05, "{n}");
        }
        assert!((cumulative(200, 200)[40_000] - 1.0).abs() < 1e-6);
    }

    #[test]
    fn one_outlier_hardly_moves_it() {
        let before = [37.0, 37.2, 36.9, 37.1, 37.0];
        let s = shift(&before, &[634.0, 633.0, 635.0, 634.5, 12.0], 0.95).unwrap();
        assert!((596.0..598.0).contains(&s.by), "{s:?}");
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_estimate(
            a in prop::collection::vec(-1e3..1e3f64, 4..12),
            b in prop::collection::vec(-1e3..1e3f64, 4..12),
        ) {
            let s = shift(&a, &b, 0.95).unwrap();
            let [low, high] = s.interval.unwrap();
            prop_assert!(low <= s.by && s.by <= high);
            prop_assert!((0.0..=1.0).contains(&s.p));
            prop_assert!((shift(&b, &a, 0.95).unwrap().by + s.by).abs() < 1e-9);
        }
    }
}
