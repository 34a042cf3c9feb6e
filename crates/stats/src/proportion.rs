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

/// How likely chance alone lets as many of `members` cover at least so many of the pairs, of which one end is enough: a test by random draws,
/// which ends early where chance often does (J. Besag and P. Clifford, *Sequential Monte Carlo p-values*, Biometrika 78, 1991). The draws
/// are the same each time. Pairs are of places below `members`; `chosen`: how many are drawn; `work`: about how many places may be looked at,
/// in at least 1,000 draws. At least 1e-5.
pub fn covered_by_chance(members: usize, pairs: &[[usize; 2]], chosen: usize, covered: u64, work: usize) -> f64 {
    const DRAWS: usize = 100_000;
    const ENOUGH: u32 = 20;
    let (mut state, mut order, mut is_in) =
        (0x2545_f491_4f6c_dd1d_u64, (0..members).collect::<Vec<_>>(), vec![0; members]);
    let chosen = chosen.min(members);
    // at most DRAWS
    let most = (work / (chosen + pairs.len()).max(1)).clamp(1_000, DRAWS) as u32;
    let mut as_many = 0;
    for draw in 1..=most {
        for at in 0..chosen {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            order.swap(at, at + (state % (members - at) as u64) as usize);
            is_in[order[at]] = draw;
        }
        let is_covered = |ends: &&[usize; 2]| ends.iter().any(|at| is_in.get(*at) == Some(&draw));
        as_many += u32::from(pairs.iter().filter(is_covered).count() as u64 >= covered);
        if as_many == ENOUGH {
            return f64::from(ENOUGH) / f64::from(draw);
        }
    }
    f64::from(as_many + 1) / f64::from(most + 1)
}

/// Samples that fall into two groups by how many of their members are hits.
#[derive(Debug, Clone, PartialEq)]
pub struct Groups {
    /// Which samples have more hits, by their place; the others are the other group.
    pub more: Vec<usize>,
    /// Hits and members of those, and …
    pub high: [u64; 2],
    /// … of the others.
    pub low: [u64; 2],
    /// How likely chance alone makes any choice of so many samples differ so much from the rest: Fisher's exact test, times the number
    /// of such choices and of borders (Boole's inequality).
    pub p: f64,
}

/// The two groups that samples of `[hits, members]` most likely fall into, where any do: of all borders between higher and lower shares the
/// one with the largest likelihood. `None` for fewer than two samples, one without members, or one with more hits than members.
pub fn two_groups(samples: &[[u64; 2]]) -> Option<Groups> {
    if samples.len() < 2 || samples.iter().any(|[hits, of]| hits > of || *of == 0) {
        return None;
    }
    let mut order: Vec<usize> = (0..samples.len()).collect();
    order.sort_by(|a, b| share(samples[*b]).total_cmp(&share(samples[*a])));
    let sum = |some: &[usize]| {
        some.iter().fold([0_u64; 2], |[hits, of], at| {
            [hits.saturating_add(samples[*at][0]), of.saturating_add(samples[*at][1])]
        })
    };
    let likelihood = |at: &usize| {
        let (more, rest) = order.split_at(*at);
        ln_likelihood(sum(more)) + ln_likelihood(sum(rest))
    };
    let border = (1..order.len()).max_by(|a, b| likelihood(a).total_cmp(&likelihood(b)))?;
    let (more, rest) = order.split_at(border);
    let (high, low) = (sum(more), sum(rest));
    let (borders, choices): (f64, f64) =
        ((order.len() - 1) as f64, (0..border).map(|n| (order.len() - n) as f64 / (border - n) as f64).product());
    Some(Groups { more: more.to_vec(), high, low, p: (more_often(high, low)? * choices * borders).min(1.0) })
}

fn share([hits, of]: [u64; 2]) -> f64 {
    hits as f64 / of as f64
}

/// Of so many hits at their own share (binomial distribution, without the constant).
fn ln_likelihood([hits, of]: [u64; 2]) -> f64 {
    let term = |n: u64| if n == 0 { 0.0 } else { n as f64 * (n as f64 / of as f64).ln() };
    term(hits) + term(of - hits)
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
    fn as_many_pairs_are_covered_by_chance_as_in_all_choices() {
        // Two of six cover the pairs 0-1, 0-2 and 3-4 as 0 and one of 3 and 4 do: 2 of 15 choices; two pairs or more: 0 with any, or 1 or 2 with
        // 3 or 4, or 1 with 2: 5 + 4 + 1.
        let pairs = [[0, 1], [0, 2], [3, 4]];
        let p = |covered| covered_by_chance(6, &pairs, 2, covered, usize::MAX);
        assert!((p(3) - 2.0 / 15.0).abs() < 0.05 && (p(2) - 10.0 / 15.0).abs() < 0.2, "{} {}", p(3), p(2));
        assert!(
            covered_by_chance(6, &pairs, 2, 4, usize::MAX) < 2e-5
                && p(0) == 1.0
                && covered_by_chance(0, &[], 3, 0, 0) == 1.0
        );
    }

    #[test]
    fn fishers_lady_tasting_tea() {
        // Of four cups with milk first and four without she named all, or three: 1 and 17 of 70 ways.
        let p = |hits| more_often([hits, 4], [4 - hits, 4]).expect("a table");
        assert!((p(4) - 1.0 / 70.0).abs() < 1e-9 && (p(3) - 17.0 / 70.0).abs() < 1e-9);
        assert_eq!(more_often([0, 6], [3, 9]), Some(1.0));
        assert_eq!(more_often([7, 6], [0, 9]), None);
    }

    #[test]
    fn samples_that_differ_fall_into_two_groups_and_others_do_not() {
        // Three of eight lose ten of a thousand: 30 hits on the first of C(8, 3) = 56 choices, at 7 borders.
        let groups =
            two_groups(&[[0, 1000], [10, 1000], [0, 1000], [0, 1000], [9, 1000], [11, 1000], [0, 1000], [0, 1000]]);
        let groups = groups.expect("samples");
        let mut more = groups.more.clone();
        more.sort_unstable();
        assert_eq!((more, groups.high, groups.low), (vec![1, 4, 5], [30, 3000], [0, 5000]));
        let fisher = more_often([30, 3000], [0, 5000]).expect("a table");
        assert!((groups.p / fisher - 7.0 * 56.0).abs() < 1e-6 && groups.p < 1e-9, "{groups:?}");
        // What chance makes of ten each.
        let alike =
            two_groups(&[[7, 1000], [13, 1000], [9, 1000], [11, 1000], [14, 1000], [6, 1000]]).expect("samples");
        assert!(alike.p > 0.1, "{alike:?}");
        assert_eq!(
            (two_groups(&[[1, 10]]), two_groups(&[[2, 1], [0, 1]]), two_groups(&[[0, 0], [0, 1]])),
            (None, None, None)
        );
    }

    proptest! {
        #[test]
        fn holds_the_share_and_mirrors(of in 1u64..1_000_000, part in 0.0..=1.0f64) {
            let hits = ((of as f64 * part) as u64).min(of);
            let share = hits as f64 / of as f64;
            let [low, high] = wilson(hits, of, 0.95).unwrap();
            prop_assert!(low <= share + 1e-12 && share <= high + 1e-12);
            let [mirror_low, _] = wilson(of - hits, of, 0.95).unwrap();
            prop_assert!((1.0 - high - mirror_low).abs() < 1e-9);
        }
    }
}
