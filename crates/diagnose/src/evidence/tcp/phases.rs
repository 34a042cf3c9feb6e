//! Phases of a trial: a rate that changed for good in its middle, so that its mean is that of no time.

use narrows_model::run::report::PhaseView;

/// Means of the rate that a trial is looked at by.
const GROUPS: usize = 32;
/// A phase lasts this many of them at least …
const LEAST: usize = 6;
/// … and its rate is so many times that of the one beside it.
const STEP: f64 = 1.6;
/// Steps explain this part of how the rate varied. A ramp is explained as well by three steps, but not by level ones:
const EXPLAINED: f64 = 0.85;
/// the halves of a phase differ by this part of the step beside it at most.
const LEVEL: f64 = 0.25;

/// The phases of a trial whose rates, one each interval, are these from `from_s` to `to_s`; none where the rate did not change for good.
/// The split into two or three parts with the least squared error of log rates (Fisher 1958).
#[must_use]
#[allow(clippy::cast_precision_loss)] // counts of intervals
pub fn phases(rates: &[f64], from_s: f64, to_s: f64) -> Vec<PhaseView> {
    let width = rates.len() / GROUPS;
    if width == 0 {
        return Vec::new();
    }
    let means: Vec<f64> = rates.chunks_exact(width).map(mean).collect();
    // A pause counts no more than a deep fall.
    let floor = (mean(&means) / 20.0).max(1.0);
    let logs: Vec<f64> = means.iter().map(|bps| bps.max(floor).ln()).collect();
    let whole = squares(&logs);
    let n = logs.len();
    let splits = (LEAST..=n - LEAST)
        .flat_map(|a| std::iter::once(vec![a]).chain((a + LEAST..=n - LEAST).map(move |b| vec![a, b])));
    let error = |cuts: &Vec<usize>| parts(n, cuts).map(|(from, to)| squares(&logs[from..to])).sum::<f64>();
    // Of two and of three phases the best; three where two do not do.
    let best =
        |count: usize| splits.clone().filter(|cuts| cuts.len() == count).min_by(|a, b| error(a).total_cmp(&error(b)));
    let good = |cuts: &Vec<usize>| whole > 0.0 && 1.0 - error(cuts) / whole >= EXPLAINED && are_steps(&logs, cuts);
    let Some(cuts) = [best(1), best(2)].into_iter().flatten().find(good) else { return Vec::new() };
    let at = |group: usize| from_s + (to_s - from_s) * (group * width) as f64 / rates.len() as f64;
    parts(n, &cuts)
        .map(|(from, to)| PhaseView { from_s: at(from), to_s: at(to), goodput_bps: mean(&means[from..to]) })
        .collect()
}

fn parts(n: usize, cuts: &[usize]) -> impl Iterator<Item = (usize, usize)> {
    let ends: Vec<usize> = std::iter::once(0).chain(cuts.iter().copied()).chain(std::iter::once(n)).collect();
    (1..ends.len()).map(move |index| (ends[index - 1], ends[index]))
}

/// Whether the parts are level, and clearly apart.
fn are_steps(logs: &[f64], cuts: &[usize]) -> bool {
    let parts: Vec<(usize, usize)> = parts(logs.len(), cuts).collect();
    let levels: Vec<f64> = parts.iter().map(|(from, to)| mean(&logs[*from..*to])).collect();
    let steps: Vec<f64> = levels.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    let least = steps.iter().copied().fold(f64::MAX, f64::min);
    let level = |(from, to): &(usize, usize)| {
        let middle = usize::midpoint(*from, *to);
        (mean(&logs[*from..middle]) - mean(&logs[middle..*to])).abs() <= LEVEL * least
    };
    least >= STEP.ln() && parts.iter().all(level)
}

fn mean(values: &[f64]) -> f64 {
    narrows_stats::mean(values).unwrap_or(0.0)
}

fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(rate: impl Fn(usize) -> f64) -> Vec<[f64; 3]> {
        let rates: Vec<f64> = (0..80).map(rate).collect();
        phases(&rates, 0.0, 8.0).iter().map(|phase| [phase.from_s, phase.to_s, phase.goodput_bps]).collect()
    }

    #[test]
    fn a_rate_that_falls_for_good_is_two_phases() {
        let found = of(|n| if n < 42 { 300e6 } else { 40e6 });
        assert_eq!(found.len(), 2, "{found:?}");
        assert!((found[0][1] - 4.2).abs() < 0.3 && (found[1][2] - 40e6).abs() < 5e6, "{found:?}");
    }

    #[test]
    fn another_that_comes_and_goes_makes_three() {
        let found = of(|n| if (24..56).contains(&n) { 48e6 } else { 95e6 });
        assert_eq!(found.len(), 3, "{found:?}");
    }

    #[test]
    fn ramps_sawteeth_and_steady_rates_are_one() {
        assert!(of(|n| 10e6 + 3e6 * n as f64).is_empty());
        assert!(of(|n| 10e6 * 1.05_f64.powi(n as i32)).is_empty());
        assert!(of(|n| 50e6 + 1e6 * (n % 20) as f64).is_empty());
        assert!(of(|_| 100e6).is_empty());
        assert!(phases(&[1e6; 20], 0.0, 2.0).is_empty(), "too few to say");
    }

    proptest! {
        #[test]
        fn noise_is_no_phase(noise in prop::collection::vec(0.5..1.5_f64, 80)) {
            prop_assert!(of(|n| 100e6 * noise[n]).is_empty());
        }
    }
}
