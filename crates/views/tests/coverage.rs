//! Simulated samples with outliers and drift: how often intervals hold the true difference, and how often *different* is false.
//!
//! `NARROWS_COVERAGE` gives another number of pairs.

use narrows_model::run::compare::CompareVerdict;
use narrows_views::compare::{Options, Side, Values, compare};

/// The generator of the simulation (xorshift).
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * (1.0 - self.unit()).ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }

    fn below(&mut self, n: u32) -> u32 {
        (self.unit() * f64::from(n)) as u32
    }
}

/// Interleaved runs of `sides` sides that differ by `shifts`: a common CV of 0.2 to 6 %, a drift in one of four, outliers in one of four.
fn sides(random: &mut Random, shifts: &[f64]) -> Vec<Side> {
    let n = 5 + random.below(16);
    let cv = 0.002 * 30f64.powf(random.unit());
    let drift = if random.below(4) == 0 { cv * (random.unit() - 0.5) } else { 0.0 };
    let outliers = if random.below(4) == 0 { 0.05 } else { 0.0 };
    let mut all = vec![Vec::new(); shifts.len()];
    for k in 0..n {
        for (side, shift) in all.iter_mut().zip(shifts) {
            let low = if random.unit() < outliers { -10.0 * cv * random.unit() } else { 0.0 };
            let drifted = drift * f64::from(k) / f64::from(n);
            side.push(1e9 * (1.0 + shift + drifted + low + cv * random.normal()));
        }
    }
    let side = |(at, values)| Side { name: format!("side {at}"), values: Values::Numbers(values) };
    all.into_iter().enumerate().map(side).collect()
}

#[test]
fn intervals_cover_and_false_alarms_are_rare() {
    let pairs: u32 = std::env::var("NARROWS_COVERAGE").ok().and_then(|it| it.parse().ok()).unwrap_or(10_000);
    let options = Options { level: 0.95, margin: 0.01, paired: false, figures: vec![] };
    let mut random = Random(0x5eed);
    let (mut ranks, mut welch, mut wrong, mut alike, mut same, mut families) = (0, 0, 0, 0, 0, 0);
    for k in 0..pairs {
        let by = if k % 2 == 0 { 0.0 } else { 0.1 * (random.unit() - 0.5) };
        let report = compare(&sides(&mut random, &[0.0, by]), &options).expect("a comparison");
        let it = &report.figures[0].comparisons[0];
        let holds = |interval: Option<[f64; 2]>| {
            u32::from(interval.is_some_and(|[low, high]| (low..=high).contains(&(by * 1e9))))
        };
        ranks += holds(it.ranks.interval);
        welch += holds(it.means.and_then(|it| it.interval));
        if by == 0.0 {
            alike += 1;
            wrong += u32::from(it.verdict == CompareVerdict::Different);
        } else if by.abs() > 0.01 {
            same += u32::from(it.verdict == CompareVerdict::Same);
        }
        // Four sides that are alike: any alarm is false.
        if k % 4 == 0 {
            let report = compare(&sides(&mut random, &[0.0; 4]), &options).expect("a comparison");
            let alarm = report.figures[0].comparisons.iter().any(|it| it.verdict == CompareVerdict::Different);
            families += u32::from(alarm);
        }
    }
    let share = |of: u32, all: u32| f64::from(of) / f64::from(all);
    let (ranks, welch) = (share(ranks, pairs), share(welch, pairs));
    let (wrong, same, families) = (share(wrong, alike), share(same, pairs), share(families, pairs.div_ceil(4)));
    println!(
        "of {pairs} pairs: Hodges-Lehmann covers {ranks:.4}, Welch {welch:.4}; false `different` {wrong:.4}, \
         of families of three {families:.4}; false `the same` {same:.4}"
    );
    // With fewer pairs the shares vary more: three standard deviations of a share of 5 %.
    let slack = if pairs >= 10_000 { 0.0 } else { 3.0 * (0.05 * 0.95 / f64::from(pairs)).sqrt() };
    assert!((0.93 - slack..=0.97 + slack).contains(&ranks), "{ranks}");
    assert!((0.93 - slack..=0.97 + slack).contains(&welch), "{welch}");
    let slack = if pairs >= 10_000 { 0.0 } else { 0.03 };
    assert!(wrong <= 0.05 + slack && families <= 0.05 + slack && same <= 0.05, "{wrong} {families} {same}");
}
