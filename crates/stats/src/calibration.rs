//! How often what is said with a confidence is right.

/// The non-decreasing steps that fit outcomes best: for each score, ascending and once, the part of its outcomes that were right, pooled with
/// its neighbours where they would fall. Least squares by pool adjacent violators (Ayer, Brunk, Ewing, Reid, Silverman 1955; Zadrozny and
/// Elkan, KDD 2002). `None` without outcomes or where a score is not a number.
pub fn isotonic(outcomes: &[(f64, bool)]) -> Option<Vec<(f64, f64)>> {
    let mut sorted = outcomes.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Score from which on a pool counts, how many were right, and of how many.
    let mut pools: Vec<(f64, usize, usize)> = Vec::new();
    let mut steps: Vec<f64> = Vec::new();
    for (score, right) in sorted {
        if !score.is_finite() {
            return None;
        }
        if steps.last() == Some(&score) {
            let last = pools.last_mut()?;
            (last.1, last.2) = (last.1 + usize::from(right), last.2 + 1);
        } else {
            steps.push(score);
            pools.push((score, usize::from(right), 1));
        }
    }
    let mut merged: Vec<(f64, usize, usize)> = Vec::new();
    for mut pool in pools {
        while let Some((from, right, all)) = merged.pop_if(|before| before.1 * pool.2 >= pool.1 * before.2) {
            pool = (from, right + pool.1, all + pool.2);
        }
        merged.push(pool);
    }
    let at = |score: f64| {
        let (_, right, all) = merged[merged.partition_point(|pool| pool.0 <= score).checked_sub(1)?];
        Some((score, crate::count(right) / crate::count(all)))
    };
    let fitted: Option<Vec<_>> = steps.into_iter().map(at).collect();
    fitted.filter(|fitted| !fitted.is_empty())
}

/// Expected calibration error: the mean difference between the confidence and the part that was right, over ten bins of equal width, each
/// weighted by its outcomes (Naeini, Cooper, Hauskrecht, AAAI 2015). `None` without outcomes.
pub fn expected_calibration_error(outcomes: &[(f64, bool)]) -> Option<f64> {
    let mut bins = [(0.0, 0_usize, 0_usize); 10];
    for (confidence, right) in outcomes {
        let bin = &mut bins[((confidence * 10.0).clamp(0.0, 9.0)) as usize];
        *bin = (bin.0 + confidence, bin.1 + usize::from(*right), bin.2 + 1);
    }
    let off: f64 = bins.iter().map(|(sum, right, _)| (sum - crate::count(*right)).abs()).sum();
    (!outcomes.is_empty()).then(|| off / crate::count(outcomes.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(score: f64, right: usize, all: usize) -> Vec<(f64, bool)> {
        (0..all).map(|at| (score, at < right)).collect()
    }

    #[test]
    fn what_falls_is_pooled_and_what_rises_is_kept() {
        let outcomes = [of(1.0, 2, 10), of(2.0, 9, 10), of(3.0, 7, 10), of(4.0, 10, 10)].concat();
        assert_eq!(isotonic(&outcomes), Some(vec![(1.0, 0.2), (2.0, 0.8), (3.0, 0.8), (4.0, 1.0)]));
        assert_eq!((isotonic(&[]), isotonic(&[(f64::NAN, true)])), (None, None));
    }

    #[test]
    fn the_error_is_the_distance_from_what_was_right() {
        let outcomes = [of(0.95, 90, 100), of(0.45, 45, 100)].concat();
        let error = expected_calibration_error(&outcomes).expect("outcomes");
        assert!((error - 0.025).abs() < 1e-9, "{error}");
        assert_eq!(expected_calibration_error(&[]), None);
    }

    proptest! {
        #[test]
        fn it_never_falls_and_keeps_the_mean(outcomes in prop::collection::vec((0_u8..20, any::<bool>()), 1..200)) {
            let outcomes: Vec<(f64, bool)> = outcomes.into_iter().map(|(score, right)| (f64::from(score), right)).collect();
            let fitted = isotonic(&outcomes).expect("outcomes");
            prop_assert!(fitted.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1));
            let of = |score: f64| fitted.iter().find(|it| it.0 == score).expect("each score").1;
            let mean: f64 = outcomes.iter().map(|(score, _)| of(*score)).sum();
            let right = outcomes.iter().filter(|(_, right)| *right).count();
            prop_assert!((mean - crate::count(right)).abs() < 1e-6);
        }
    }
}
