//! Student's t: the confidence interval of a mean and of the difference of two means, tests of difference and equivalence.
//!
//! The difference uses Welch's form (B. L. Welch, Biometrika 34, 1947): two states of a path rarely have equal variances, and
//! a pooled deviation would transfer the confidence of the steady one to the unsteady one.

use crate::summary::{mean, variance};
use crate::{count, finite};
use statrs::distribution::{Continuous as _, ContinuousCDF as _, StudentsT};

/// An estimate and its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    pub value: f64,
    /// Lower and upper end.
    pub interval: [f64; 2],
    /// Degrees of freedom of the interval.
    pub df: f64,
    /// Standard error of the estimate.
    pub error: f64,
}

/// The two-sided quantile of Student's t: the factor for the standard error at `level` (0.95) with `df` degrees of
/// freedom.
///
/// `None` if `df` is below 1 or `level` is not inside (0, 1).
pub fn t_quantile(level: f64, df: f64) -> Option<f64> {
    if !(level > 0.0 && level < 1.0 && df >= 1.0 && df.is_finite()) {
        return None;
    }
    let law = StudentsT::new(0.0, 1.0, df).ok()?;
    let tail = f64::midpoint(1.0, -level);
    let mut t = law.inverse_cdf(1.0 - tail);
    // The library's quantile is good for about six digits; two steps of Newton's method make it exact.
    for _ in 0..2 {
        t += (law.sf(t) - tail) / law.pdf(t);
    }
    Some(t)
}

/// Two-sided p of a difference by Student's t: whether it is `value` in truth. Zero variance: 1 where they are equal, else 0.
///
/// `None` without degrees of freedom.
pub fn p_of(estimate: &Estimate, value: f64) -> Option<f64> {
    Some((2.0 * tail_of(estimate, (estimate.value - value).abs())?).min(1.0))
}

/// p of *not equivalent within ± margin*: the larger one of two one-sided t-tests (D. J. Schuirmann, 1987).
///
/// `None` without degrees of freedom, or for a margin that is not positive.
pub fn equivalence(estimate: &Estimate, margin: f64) -> Option<f64> {
    if margin.is_nan() || margin <= 0.0 {
        return None;
    }
    Some(tail_of(estimate, margin - estimate.value)?.max(tail_of(estimate, margin + estimate.value)?))
}

/// One-sided p of a distance.
fn tail_of(estimate: &Estimate, distance: f64) -> Option<f64> {
    let law = StudentsT::new(0.0, 1.0, estimate.df).ok()?;
    if estimate.error <= 0.0 {
        return Some(if distance > 0.0 {
            0.0
        } else if distance < 0.0 {
            1.0
        } else {
            0.5
        });
    }
    Some(law.sf(distance / estimate.error))
}

/// The mean and its interval; `None` for fewer than two values.
pub fn mean_interval(values: &[f64], level: f64) -> Option<Estimate> {
    if !finite(values) {
        return None;
    }
    let value = mean(values)?;
    let df = count(values.len().checked_sub(1)?);
    let error = (variance(values)? / count(values.len())).sqrt();
    let half = t_quantile(level, df)? * error;
    Some(Estimate { value, interval: [value - half, value + half], df, error })
}

/// `after − before` of the means and its Welch interval; `None` if a side has fewer than two values.
pub fn difference(before: &[f64], after: &[f64], level: f64) -> Option<Estimate> {
    if !finite(before) || !finite(after) {
        return None;
    }
    let value = mean(after)? - mean(before)?;
    let parts =
        [(variance(before)? / count(before.len()), before.len()), (variance(after)? / count(after.len()), after.len())];
    let (half, df) = welch(parts, level)?;
    let error = (parts[0].0 + parts[1].0).sqrt();
    Some(Estimate { value, interval: [value - half, value + half], df, error })
}

/// Half the width of an interval for a sum of two independent parts, each given by its squared standard error and its
/// number of values, and the degrees of freedom after Welch and Satterthwaite.
///
/// Without any variance the width is zero.
pub(crate) fn welch(parts: [(f64, usize); 2], level: f64) -> Option<(f64, f64)> {
    let [(a, n_a), (b, n_b)] = parts;
    let (df_a, df_b) = (count(n_a.checked_sub(1)?), count(n_b.checked_sub(1)?));
    let total = a + b;
    if total == 0.0 {
        return Some((0.0, df_a + df_b));
    }
    // As shares of the total, so that squares neither overflow nor vanish.
    let (share_a, share_b) = (a / total, b / total);
    let df = 1.0 / (share_a.powi(2) / df_a + share_b.powi(2) / df_b);
    Some((t_quantile(level, df)? * total.sqrt(), df))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(a: f64, b: f64, within: f64) {
        assert!((a - b).abs() < within, "{a} is not {b}");
    }

    #[test]
    fn quantiles_of_the_printed_table() {
        // NIST/SEMATECH e-Handbook 1.3.6.7.2, upper critical values, column 0.975 (two-sided 95 %) and 0.995.
        for (df, t95, t99) in [
            (1.0, 12.706, 63.657),
            (2.0, 4.303, 9.925),
            (4.0, 2.776, 4.604),
            (10.0, 2.228, 3.169),
            (100.0, 1.984, 2.626),
        ] {
            close(t_quantile(0.95, df).unwrap(), t95, 5e-4);
            close(t_quantile(0.99, df).unwrap(), t99, 5e-4);
        }
        // df = 2 has a closed form: t = 2(p − 1/2)·sqrt(2/(4p(1 − p))), for p = 0.975 that is 4.30265273.
        close(t_quantile(0.95, 2.0).unwrap(), 4.302_652_73, 1e-6);
        assert_eq!(t_quantile(0.95, 0.0), None);
        assert_eq!(t_quantile(1.0, 5.0), None);
    }

    #[test]
    fn mean_of_three_by_hand() {
        // mean 11, sd 1, standard error 1/sqrt(3), half width 4.30265273/1.7320508 = 2.484138.
        let estimate = mean_interval(&[10.0, 11.0, 12.0], 0.95).unwrap();
        close(estimate.interval[0], 8.515_862, 1e-5);
        close(estimate.interval[1], 13.484_138, 1e-5);
        assert_eq!(mean_interval(&[10.0], 0.95), None);
    }

    #[test]
    fn welch_as_published() {
        // a = 1..5: mean 3, var 2.5, n 5. b = 2,4,6,8,10: mean 6, var 10, n 5.
        // se² = 0.5 + 2 = 2.5; df = 2.5²/(0.5²/4 + 2²/4) = 6.25/1.0625 = 5.88235; t = 1.89737 (R: t.test gives df 5.8824).
        let d = difference(&[1.0, 2.0, 3.0, 4.0, 5.0], &[2.0, 4.0, 6.0, 8.0, 10.0], 0.95).unwrap();
        close(d.value, 3.0, 1e-12);
        close(d.df, 5.882_353, 1e-6);
        // The quantile is between the printed ones of df 5 (2.571) and df 6 (2.447), near the latter.
        let t = (d.interval[1] - 3.0) / 2.5f64.sqrt();
        assert!((2.447..2.471).contains(&t), "{t}");
    }

    proptest! {
        #[test]
        fn welch_df_lies_between_the_smaller_side_and_both(
            a in prop::collection::vec(0.0..1e9f64, 2..12),
            b in prop::collection::vec(0.0..1e9f64, 2..12),
        ) {
            let d = difference(&a, &b, 0.95).unwrap();
            let smaller = count(a.len().min(b.len()) - 1);
            prop_assert!(d.df >= smaller - 1e-9 && d.df <= count(a.len() + b.len() - 2) + 1e-9);
            prop_assert!(d.interval[0] <= d.value && d.value <= d.interval[1]);
            let back = difference(&b, &a, 0.95).unwrap();
            prop_assert!((back.interval[0] + d.interval[1]).abs() <= 1e-6 * d.interval[1].abs().max(1.0));
        }

        #[test]
        fn a_higher_level_is_never_narrower(values in prop::collection::vec(-1e6..1e6f64, 2..12)) {
            let narrow = mean_interval(&values, 0.9).unwrap().interval;
            let wide = mean_interval(&values, 0.99).unwrap().interval;
            prop_assert!(wide[0] <= narrow[0] && narrow[1] <= wide[1]);
        }
    }
}
