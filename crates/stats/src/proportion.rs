//! Proportions: loss ratios, false alarms.

use statrs::distribution::{ContinuousCDF as _, DiscreteCDF as _, Hypergeometric, Normal};

/// Wilson's interval of a proportion (E. B. Wilson, 1927): it stays inside 0..1 and is useful even for 0 out of n.
///
/// `None` if `of` is zero, `hits` exceeds it or `level` is not inside (0, 1).
pub fn wilson(hits: u64, of: u64, level: f64) -> Option<[f64; 2]> {
    if of == 0 || hits > of || !(level > 0.0 && level < 1.0) {
        return None;
    }
    let z = Normal::new(0.0, 1.0).ok()?.inverse_cdf(0.5 + level / 2.0);
    #[allow(clippy::cast_precision_loss)]
    let (n, p) = (of as f64, hits as f64 / of as f64);
    let below = 1.0 + z * z / n;
    let centre = (p + z * z / (2.0 * n)) / below;
    let half = z / below * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    Some([(centre - half).max(0.0), (centre + half).min(1.0)])
}

/// How likely chance alone makes at least so many of all hits fall on the first of two samples (Fisher's exact test, one-sided; R. A.
/// Fisher, 1922). `None` where a sample has more hits than members.
pub fn more_often([hits, of]: [u64; 2], [other_hits, other_of]: [u64; 2]) -> Option<f64> {
    if hits > of || other_hits > other_of {
        return None;
    }
    let drawn = Hypergeometric::new(of.checked_add(other_of)?, hits + other_hits, of).ok()?;
    Some(hits.checked_sub(1).map_or(1.0, |fewer| drawn.sf(fewer)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn published_values() {
        // R. G. Newcombe, Statistics in Medicine 17 (1998), table I, method 3: 81/263, 15/148, 0/20, 1/29.
        for (hits, of, want) in [
            (81, 263, [0.2553, 0.3662]),
            (15, 148, [0.0624, 0.1605]),
            (0, 20, [0.0, 0.1611]),
            (1, 29, [0.0061, 0.1718]),
        ] {
            let got = wilson(hits, of, 0.95).unwrap();
            assert!((got[0] - want[0]).abs() < 5e-5 && (got[1] - want[1]).abs() < 5e-5, "{hits}/{of}: {got:?}");
        }
        assert_eq!(wilson(0, 0, 0.95), None);
        assert_eq!(wilson(2, 1, 0.95), None);
    }

    #[test]
    fn fishers_lady_tasting_tea() {
        // Of four cups with milk first and four without she named all, or three: 1 and 17 of 70 ways.
        let p = |hits| more_often([hits, 4], [4 - hits, 4]).expect("a table");
        assert!((p(4) - 1.0 / 70.0).abs() < 1e-9 && (p(3) - 17.0 / 70.0).abs() < 1e-9);
        assert_eq!(more_often([0, 6], [3, 9]), Some(1.0));
        assert_eq!(more_often([7, 6], [0, 9]), None);
    }

    proptest! {
        #[test]
        fn holds_the_share_and_mirrors(of in 1u64..1_000_000, part in 0.0..=1.0f64) {
            #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let hits = ((of as f64 * part) as u64).min(of);
            #[allow(clippy::cast_precision_loss)]
            let share = hits as f64 / of as f64;
            let [low, high] = wilson(hits, of, 0.95).unwrap();
            prop_assert!(low <= share + 1e-12 && share <= high + 1e-12);
            let [mirror_low, _] = wilson(of - hits, of, 0.95).unwrap();
            prop_assert!((1.0 - high - mirror_low).abs() < 1e-9);
        }
    }
}
