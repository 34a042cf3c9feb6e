//! Pairs: the differences within pairs, or blocks, by Wilcoxon's signed ranks. What changes slowly between pairs cancels out.

use crate::rank::{MAX_RUNS, Shift, approximate, dropped};
use crate::{count, finite, median};

/// The maximum number of pairs with an interval: all averages of two differences are listed.
const MAX_PAIRS: usize = 2000;

/// The centre of paired differences: the median of the averages of any two of them (Hodges and Lehmann, 1963), its interval, and
/// p of Wilcoxon's signed-rank test (exact up to [`MAX_RUNS`] pairs without ties and zeros; differences of zero are left out of p).
///
/// `None` for no pair, more than 2,000 of them, or values that are not finite.
pub fn paired_shift(differences: &[f64], level: f64) -> Option<Shift> {
    let n = differences.len();
    if n == 0 || n > MAX_PAIRS || !finite(differences) || !(level > 0.0 && level < 1.0) {
        return None;
    }
    let (p, exact) = signed_rank(differences);
    let mut averages: Vec<f64> =
        (0..n).flat_map(|i| (i..n).map(move |j| f64::midpoint(differences[i], differences[j]))).collect();
    averages.sort_by(f64::total_cmp);
    let all = count(n);
    let drop = if n <= MAX_RUNS {
        cumulative(n).iter().take_while(|&&tail| tail <= (1.0 - level) / 2.0).count()
    } else {
        dropped(count(averages.len()) / 2.0, all * (all + 1.0) * (2.0 * all + 1.0) / 24.0, level)?
    };
    let interval = (drop > 0).then(|| [averages[drop - 1], averages[averages.len() - drop]]);
    Some(Shift { by: median(&averages)?, interval, p, exact })
}

/// Two-sided p, and whether it is exact.
fn signed_rank(differences: &[f64]) -> (f64, bool) {
    let mut nonzero: Vec<f64> = differences.iter().copied().filter(|it| *it != 0.0).collect();
    nonzero.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    let n = count(nonzero.len());
    let (mut plus, mut before, mut ties) = (0.0, 0, 0.0);
    for group in nonzero.chunk_by(|a, b| a.abs() == b.abs()) {
        let rank = count(2 * before + group.len() + 1) / 2.0;
        plus += rank * count(group.iter().filter(|it| **it > 0.0).count());
        ties += count(group.len()).powi(3) - count(group.len());
        before += group.len();
    }
    let exact = nonzero.len() == differences.len() && ties == 0.0 && nonzero.len() <= MAX_RUNS;
    let total = n * (n + 1.0) / 2.0;
    if exact {
        let smaller = plus.min(total - plus);
        let law = cumulative(nonzero.len());
        return ((2.0 * law[smaller as usize]).min(1.0), true);
    }
    let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - ties / 48.0;
    (approximate((plus - total / 2.0).abs(), variance, 0.0), false)
}

/// P(W ≤ w) for w from 0 to n(n+1)/2 under *no shift*: each rank is positive with probability 1/2.
fn cumulative(n: usize) -> Vec<f64> {
    let mut law = vec![0.0; n * (n + 1) / 2 + 1];
    law[0] = 1.0;
    for rank in 1..=n {
        for w in (0..law.len()).rev() {
            let with = if w >= rank { law[w - rank] } else { 0.0 };
            law[w] = f64::midpoint(law[w], with);
        }
    }
    let mut sum = 0.0;
    law.iter()
        .map(|p| {
            sum += p;
            sum
        })
        .collect()
}

/// The differences `after − before` of pairs; `None` if the sides have different lengths.
pub fn differences(before: &[f64], after: &[f64]) -> Option<Vec<f64>> {
    (before.len() == after.len()).then(|| before.iter().zip(after).map(|(a, b)| b - a).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_pairs_by_hand() {
        // All six differences positive: p = 2/64, and the interval drops one average at each end.
        let shift = paired_shift(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 0.95).unwrap();
        assert_eq!((shift.by, shift.interval, shift.p, shift.exact), (3.5, Some([1.0, 6.0]), 2.0 / 64.0, true));
        assert_eq!(paired_shift(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.95).unwrap().interval, None);
        assert_eq!(paired_shift(&[0.0, 0.0], 0.95).unwrap().p, 1.0);
        assert_eq!(paired_shift(&[], 0.95), None);
    }
}
