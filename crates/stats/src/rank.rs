//! Comparison by ranks: the shift between two samples, without assuming a distribution.
//!
//! The Hodges–Lehmann shift is the median of all pairwise differences; its interval keeps those differences that the exact
//! Mann–Whitney distribution does not rule out. One outlier moves neither by much.

use crate::{count, finite, normal};

/// The shift of `after` against `before`, or the centre of paired differences.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    /// Hodges–Lehmann estimate, in the unit of the samples.
    pub by: f64,
    /// The confidence interval at the requested level; `None` if the samples are too small for that level (3
    /// against 3 reach 90 %, not 95 %).
    pub interval: Option<[f64; 2]>,
    /// Two-sided p of the test.
    pub p: f64,
    /// Whether p is exact: small samples without ties. Otherwise it is the normal approximation with tie correction.
    pub exact: bool,
}

/// The maximum sample size for the exact distribution: runs, not seconds.
pub const MAX_RUNS: usize = 200;

/// The shift of `after` against `before`; `None` if a side is empty or not finite.
///
/// p is that of Mann and Whitney (Annals of Mathematical Statistics 18, 1947); of large samples, or with ties, the normal
/// approximation with corrections for ties and continuity.
pub fn shift(before: &[f64], after: &[f64], level: f64) -> Option<Shift> {
    let bad = |side: &[f64]| side.is_empty() || !finite(side);
    if bad(before) || bad(after) || !(level > 0.0 && level < 1.0) {
        return None;
    }
    let [before, after] = [sorted(before), sorted(after)];
    let (n, m) = (before.len(), after.len());
    let pairs = n.checked_mul(m)?;
    let below = at_most(&before, &after, 0.0f64.next_down());
    let equal = at_most(&before, &after, 0.0) - below;
    let law = (n <= MAX_RUNS && m <= MAX_RUNS).then(|| cumulative(n, m));
    let ties = ties(&before, &after);
    let exact = law.as_ref().filter(|_| ties == 0.0);
    let p = if let Some(law) = exact {
        (2.0 * law[below.min(pairs - below)]).min(1.0)
    } else {
        let u = count(below) + count(equal) / 2.0;
        let all = count(n + m);
        let variance = count(pairs) / 12.0 * ((all + 1.0) - ties / (all * (all - 1.0)));
        approximate((u - count(pairs) / 2.0).abs(), variance, 0.5)
    };
    // The largest c with P(U < c) within half of the error probability: the interval drops c differences at each
    // end.
    let drop = if let Some(law) = &law {
        law.iter().take_while(|&&tail| tail <= (1.0 - level) / 2.0).count()
    } else {
        dropped(count(pairs) / 2.0, count(pairs) * (count(n + m) + 1.0) / 12.0, level)?
    };
    let gap = |k: usize| nth_gap(&before, &after, k);
    let interval = (drop > 0).then(|| [gap(drop - 1), gap(pairs - drop)]);
    let by = f64::midpoint(gap((pairs - 1) / 2), gap(pairs / 2));
    Some(Shift { by, interval, p, exact: exact.is_some() })
}

/// Two-sided p of a deviation of a rank sum from its mean, with this correction for continuity.
pub(crate) fn approximate(deviation: f64, variance: f64, continuity: f64) -> f64 {
    if variance <= 0.0 {
        return 1.0;
    }
    (2.0 * normal::tail((deviation - continuity) / variance.sqrt())).min(1.0)
}

/// How many of the ordered differences an interval drops at each end, by the normal approximation.
pub(crate) fn dropped(middle: f64, variance: f64, level: f64) -> Option<usize> {
    let at = middle - normal::quantile(0.5 + level / 2.0)? * variance.sqrt();
    Some(at.max(0.0) as usize)
}

pub(crate) fn sorted(values: &[f64]) -> Vec<f64> {
    // Without the sign of zero, which `total_cmp` would respect.
    let mut sorted: Vec<f64> = values.iter().map(|it| it + 0.0).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Σ(t³ − t) over the groups of equal values of both sides.
fn ties(a: &[f64], b: &[f64]) -> f64 {
    let all = sorted(&[a, b].concat());
    all.chunk_by(|x, y| x == y).map(|group| count(group.len()).powi(3) - count(group.len())).sum()
}

/// How many differences `b − a` are at most `limit`; both sides sorted.
fn at_most(a: &[f64], b: &[f64], limit: f64) -> usize {
    let mut upto = 0;
    let of = |a: &f64| {
        while b.get(upto).is_some_and(|b| b - a <= limit) {
            upto += 1;
        }
        upto
    };
    a.iter().map(of).sum()
}

/// The k-th smallest difference `b − a`, from 0, by bisection over the ordered bit patterns: no list of all pairs is needed.
fn nth_gap(a: &[f64], b: &[f64], k: usize) -> f64 {
    let [mut low, mut high] =
        [b[0] - a[a.len() - 1], b[b.len() - 1] - a[0]].map(|it| place(it.clamp(f64::MIN, f64::MAX)));
    while low < high {
        // Rounded down, also below zero, or the last step would not end.
        let middle = (low & high) + ((low ^ high) >> 1);
        if at_most(a, b, value(middle)) > k {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    value(low)
}

/// Finite numbers as integers in the same order.
fn place(value: f64) -> i64 {
    let bits = value.to_bits().cast_signed();
    if bits < 0 { i64::MIN.wrapping_sub(bits) } else { bits }
}

fn value(place: i64) -> f64 {
    let bits = if place < 0 { i64::MIN.wrapping_sub(place) } else { place };
    f64::from_bits(bits.cast_unsigned())
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
    fn differences_around_zero_have_their_median() {
        let s = shift(&[1.0, 2.0, 3.0, 4.0, 5.0], &[2.0, 4.0, 6.0, 8.0, 10.0], 0.95).unwrap();
        assert_eq!((s.by, s.interval), (3.0, Some([-1.0, 7.0])));
        let s = shift(&[1.0, 2.0, 3.0, 4.0], &[1.5, 2.5, 2.75, 3.75], 0.95).unwrap();
        assert_eq!((s.by, s.interval), (0.125, Some([-2.5, 2.75])));
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
