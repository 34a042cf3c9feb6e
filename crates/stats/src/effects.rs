//! Effects of factors: ordinary least squares by the sweep operator (J. H. Goodnight, The American Statistician 33, 1979), which
//! leaves out a column that the ones before it determine: its effect is *aliased*, not zero.

use crate::count;
use crate::student::{Estimate, t_quantile};

/// Fits `y` to the columns of `rows`; one answer for each column, `None` where it is aliased. Without degrees of freedom an answer has no
/// interval: its ends are infinite.
///
/// `None` if there is nothing to fit.
pub fn fit(rows: &[Vec<f64>], y: &[f64], level: f64) -> Option<Vec<Option<Estimate>>> {
    let width = rows.first()?.len();
    if rows.len() != y.len() || rows.iter().any(|row| row.len() != width) || !y.iter().all(|it| it.is_finite()) {
        return None;
    }
    let mut sums = vec![vec![0.0; width + 1]; width + 1];
    for (row, y) in rows.iter().zip(y) {
        let full: Vec<f64> = row.iter().copied().chain([*y]).collect();
        for (i, a) in full.iter().enumerate() {
            full.iter().enumerate().for_each(|(j, b)| sums[i][j] += a * b);
        }
    }
    let whole: Vec<f64> = (0..width).map(|k| sums[k][k]).collect();
    let fitted: Vec<bool> = (0..width)
        .map(|k| {
            let independent = sums[k][k] > 1e-9 * whole[k].max(f64::MIN_POSITIVE);
            if independent {
                sweep(&mut sums, k);
            }
            independent
        })
        .collect();
    let left = rows.len() - fitted.iter().filter(|it| **it).count().min(rows.len());
    let df = count(left);
    let t = t_quantile(level, df);
    let estimate = |k: usize| {
        let value = sums[k][width];
        let error = (sums[width][width].max(0.0) / df * sums[k][k]).sqrt();
        let half = t.map_or(f64::INFINITY, |t| t * error);
        Estimate { value, interval: [value - half, value + half], df, error }
    };
    Some((0..width).map(|k| fitted[k].then(|| estimate(k))).collect())
}

fn sweep(a: &mut [Vec<f64>], k: usize) {
    let pivot = a[k][k];
    a[k].iter_mut().for_each(|it| *it /= pivot);
    let row = a[k].clone();
    for (_, other) in a.iter_mut().enumerate().filter(|(i, _)| *i != k) {
        let factor = other[k];
        other.iter_mut().zip(&row).for_each(|(it, of_row)| *it -= factor * of_row);
        other[k] = -factor / pivot;
    }
    a[k][k] = 1.0 / pivot;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planted_effects_are_found_and_aliases_named() {
        // y = 10 + 4a − 2b exactly; the last column is a again.
        let rows: Vec<Vec<f64>> =
            [(-0.5, -0.5), (0.5, -0.5), (-0.5, 0.5), (0.5, 0.5)].into_iter().map(|(a, b)| vec![1.0, a, b, a]).collect();
        let y: Vec<f64> = rows.iter().map(|row| 10.0 + 4.0 * row[1] - 2.0 * row[2]).collect();
        let fitted = fit(&rows, &y, 0.95).expect("a fit");
        let values: Vec<Option<f64>> = fitted.iter().map(|it| it.map(|it| (it.value * 1e9).round() / 1e9)).collect();
        assert_eq!(values, [Some(10.0), Some(4.0), Some(-2.0), None]);
    }

    #[test]
    fn the_interval_of_two_levels_is_that_of_students_t() {
        // 1, 3 against 5, 7: difference 4, pooled s² = 2, standard error √(2·(1/2+1/2)) = √2, t(0.975, 2) = 4.303.
        let rows = vec![vec![1.0, -0.5], vec![1.0, -0.5], vec![1.0, 0.5], vec![1.0, 0.5]];
        let fitted = fit(&rows, &[1.0, 3.0, 5.0, 7.0], 0.95).expect("a fit");
        let effect = fitted[1].expect("not aliased");
        assert!((effect.value - 4.0).abs() < 1e-9);
        assert!((effect.interval[1] - 4.0 - 4.302_65 * 2f64.sqrt()).abs() < 1e-4, "{effect:?}");
    }
}
