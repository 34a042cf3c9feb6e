//! The tests and intervals against scipy, to nine digits: `fixtures/compare/make.py` wrote what is expected.

#[path = "../../../fixtures/compare/random.rs"]
mod random;

use narrows_stats::paired::differences;
use narrows_stats::student::p_of;
use narrows_stats::{difference, mean_interval, paired_shift, shift};
use random::Random;

fn floats(values: &[u64]) -> Vec<f64> {
    values.iter().map(|it| *it as f64).collect()
}

#[test]
fn twelve_hundred_samples_have_the_figures_of_scipy() {
    let expected = include_str!("../../../fixtures/compare/tests.txt");
    let mut checked = 0;
    for (seed, line) in (0..).zip(expected.lines()) {
        let expected: Vec<f64> = line.split(' ').map(|it| it.parse().expect("a number")).collect();
        let mut random = Random(seed);
        let (n, m) = (4 + random.below(12), 4 + random.below(12));
        let spread = [3, 40, 5000][usize::try_from(random.below(3)).expect("small")];
        let a = floats(&random.sample(n, 100_000, spread));
        let to = 100_000 + random.below(3) * spread;
        let b = floats(&random.sample(m, to, spread));
        let both = a.len().min(b.len());
        let ranks = shift(&a, &b, 0.95).expect("ranks");
        let welch = difference(&a, &b, 0.95).expect("Welch");
        let pairs = differences(&a[..both], &b[..both]).expect("pairs");
        let paired = mean_interval(&pairs, 0.95).expect("a paired t-test");
        let signed = paired_shift(&pairs, 0.95).expect("signed ranks");
        let [low, high] = ranks.interval.unwrap_or([f64::NAN; 2]);
        let got = [
            ranks.p,
            ranks.by,
            low,
            high,
            p_of(&welch, 0.0).expect("p"),
            welch.interval[0],
            welch.interval[1],
            p_of(&paired, 0.0).expect("p"),
            paired.interval[0],
            paired.interval[1],
            signed.p,
        ];
        assert_eq!(got.len(), expected.len());
        for (at, (got, expected)) in got.iter().zip(&expected).enumerate() {
            let near = (got - expected).abs() <= 1e-9 * expected.abs().max(1e-3);
            assert!(near || (got.is_nan() && expected.is_nan()), "sample {seed}, figure {at}: {got}, not {expected}");
        }
        checked += 1;
    }
    assert_eq!(checked, 1200);
}
