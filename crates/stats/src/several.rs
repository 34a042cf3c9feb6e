//! Several comparisons at once, and how many runs one needs.

use crate::{count, normal, t_quantile};

/// The p-values after Holm's correction (S. Holm, Scandinavian Journal of Statistics 6, 1979), in their order: the chance of any
/// false alarm among all comparisons stays below the level.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let (mut adjusted, mut least) = (vec![1.0; p.len()], 0.0f64);
    for (rank, at) in order.into_iter().enumerate() {
        least = least.max(p[at] * count(p.len() - rank)).min(1.0);
        adjusted[at] = least;
    }
    adjusted
}

/// The largest answer of [`runs_to_see`].
pub const MOST_RUNS: u64 = 100_000;

/// What rank tests need of the runs of a t-test, where values are normal: π/3 times as many.
const RANKS: f64 = std::f64::consts::FRAC_PI_3;

/// Runs a side that see a difference of this size in four of five cases (power 80 %) at `level`, with a standard deviation of `sd`
/// within each side. `None` if more than [`MOST_RUNS`] are needed, or for no difference.
pub fn runs_to_see(difference: f64, sd: f64, level: f64) -> Option<u64> {
    let power = normal::quantile(0.8)?;
    let is_enough = |n: f64| {
        t_quantile(level, 2.0 * n - 2.0).is_some_and(|t| (t + power) * sd * (2.0 * RANKS / n).sqrt() <= difference)
    };
    least(is_enough)
}

/// The least number from 4 on, below which ranks show nothing at 95 %; by bisection.
fn least(is_enough: impl Fn(f64) -> bool) -> Option<u64> {
    let (mut low, mut high) = (4, MOST_RUNS);
    if !is_enough(high as f64) {
        return None;
    }
    while low < high {
        let middle = u64::midpoint(low, high);
        if is_enough(middle as f64) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holm_by_hand() {
        // Sorted 0.01 0.03 0.04: times 3, 2, 1 are 0.03 0.06 0.04, which may not fall: 0.03 0.06 0.06.
        let p = holm(&[0.04, 0.01, 0.03]);
        assert!(p.iter().zip([0.06, 0.03, 0.06]).all(|(a, b)| (a - b).abs() < 1e-15), "{p:?}");
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert_eq!(holm(&[]), [0.0; 0]);
    }

    #[test]
    fn runs_as_the_textbook_has_them() {
        // Two-sided 5 %, power 80 %, difference of one standard deviation: 17 a side for t (Cohen 1988, table 2.4.1), π/3 of it is 17.8.
        assert_eq!(runs_to_see(1.0, 1.0, 0.95), Some(18));
        // Of half of one: 64 a side for t.
        assert_eq!(runs_to_see(0.5, 1.0, 0.95), Some(67));
        assert_eq!(runs_to_see(0.0, 1.0, 0.95), None);
        assert_eq!(runs_to_see(1.0, 0.0, 0.95), Some(4));
    }
}
