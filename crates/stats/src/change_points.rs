//! Change points of a series of runs: where its level changed, by how much, and how sure that is.
//!
//! The method of Apache Otava (formerly Hunter; Fleming et al., *Hunter: Using Change Point Detection to Hunt for Performance
//! Regressions*, ICPE 2023): split points by E-divisive with means (Matteson and James, JASA 2014) in overlapping windows, a
//! t-test in place of permutations so that the result is deterministic, then the weakest points are merged until all are
//! significant. Added here: p is corrected for the choice of the split, each point is moved to the best place between its neighbours, and, because runs over months show them: single outliers are replaced by their neighbours' median, a
//! weekly pattern is estimated and removed, and a slow drift is not a step.

use crate::{count, finite, median, student};
use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// A point where the level changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// Index of the first value after the change.
    pub at: usize,
    /// Mean of the values since the previous change point, or the beginning.
    pub before: f64,
    /// Mean of the values up to the next change point, or the end.
    pub after: f64,
    /// `after − before`, as a share of `before`.
    pub change: f64,
    /// The 95 % Welch interval of `change`.
    pub interval: [f64; 2],
    /// Two-sided p of the t-test, corrected for the choice of the place.
    pub p: f64,
}

/// What counts as a change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Values in a window; the next one begins half a window later, or at the last split point.
    pub window: usize,
    /// The largest p of a change.
    pub p_max: f64,
    /// The smallest change, as a share of the level before it.
    pub change_min: f64,
}

impl Default for Options {
    /// Otava's: windows of 50, p of 0.001; any size.
    fn default() -> Self {
        Self { window: 50, p_max: 0.001, change_min: 0.0 }
    }
}

/// A value this many robust standard deviations off the median of its neighbours is an outlier.
const OUTLIER: f64 = 4.0;
/// Neighbours on each side that an outlier is compared with.
const NEIGHBOURS: usize = 5;
/// A change below this many robust standard deviations of the series is not reported: drift and slow patterns look like it.
const EFFECT_MIN: f64 = 1.0;
/// The smallest part of a split: fewer values have no variance worth a test.
const PART_MIN: usize = 3;
/// Fewer values have no change point.
pub const VALUES_MIN: usize = 2 * PART_MIN;
const DAY_US: u64 = 86_400_000_000;
/// A weekly pattern is estimated from this many days with values.
const DAYS_MIN: usize = 28;
/// The 99 % quantile of χ² with 6 degrees of freedom: seven weekdays.
const CHI2_6_99: f64 = 16.81;

/// The change points of `values`, in order. `unix_us`: when each was measured, sorted; empty if it is not known, which leaves a
/// weekly pattern in.
///
/// Empty for fewer than [`VALUES_MIN`] values, and where a value is not finite.
pub fn change_points(values: &[f64], unix_us: &[u64], options: Options) -> Vec<ChangePoint> {
    if values.len() < VALUES_MIN || !finite(values) || options.window < VALUES_MIN {
        return Vec::new();
    }
    let noise = noise(values);
    let mut level = without_outliers(values, noise);
    if unix_us.len() == values.len() {
        remove_weekly(&mut level, unix_us);
    }
    let weak = split(&level, options);
    merge(&level, weak, options, noise)
}

/// The standard deviation between neighbours, by the median of their differences: steps and drift do not widen it.
fn noise(values: &[f64]) -> f64 {
    let steps: Vec<f64> = values.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    // The median of |difference| of two normal values is 0.6745·√2 standard deviations.
    median(&steps).unwrap_or(0.0) / (0.6745 * std::f64::consts::SQRT_2)
}

/// Where a value and the one beside it are of one level, they are no further apart than this part of the way to the others.
const ALIKE: f64 = 0.1;

/// Single values far off their neighbours become the neighbours' median (Hampel's filter). The first value of another level is like those
/// behind it, the last like those before, and one on its way from the one to the other is between both: the noise is that of most values,
/// which of a level far above them is small.
fn without_outliers(values: &[f64], noise: f64) -> Vec<f64> {
    let near = |at: usize| &values[at.saturating_sub(NEIGHBOURS)..(at + NEIGHBOURS + 1).min(values.len())];
    let sides = |at: usize| {
        [&values[at.saturating_sub(NEIGHBOURS)..at], &values[at + 1..(at + 1 + NEIGHBOURS).min(values.len())]]
    };
    values
        .iter()
        .enumerate()
        .map(|(at, value)| {
            let middle = median(near(at)).unwrap_or(*value);
            let is_off = |side: &[f64]| median(side).is_none_or(|middle| (value - middle).abs() > OUTLIER * noise);
            let medians = sides(at).map(median);
            let is_between = matches!(medians, [Some(a), Some(b)] if (a.min(b)..=a.max(b)).contains(value));
            let beside = [at.checked_sub(1), Some(at + 1)].into_iter().flatten().filter_map(|at| values.get(at));
            let off = medians.into_iter().flatten().map(|it| (value - it).abs()).fold(f64::MAX, f64::min);
            let is_alike = beside.into_iter().any(|it| (value - it).abs() <= ALIKE * off);
            let is_single = noise > 0.0 && !is_between && !is_alike && sides(at).into_iter().all(is_off);
            if is_single { middle } else { *value }
        })
        .collect()
}

/// Subtracts the weekday's effect, if there is one: the median distance of its days from the median of the week around them.
fn remove_weekly(values: &mut [f64], unix_us: &[u64]) {
    let mut days: Vec<(u64, Vec<f64>)> = Vec::new();
    for (value, at) in values.iter().zip(unix_us) {
        match days.last_mut() {
            Some((day, of)) if *day == at / DAY_US => of.push(*value),
            _ => days.push((at / DAY_US, vec![*value])),
        }
    }
    if days.len() < DAYS_MIN {
        return;
    }
    let days: Vec<(u64, f64)> = days.iter().filter_map(|(day, of)| Some((*day, median(of)?))).collect();
    let mut off: [Vec<f64>; 7] = Default::default();
    for (at, (day, value)) in days.iter().enumerate() {
        let near = &days[at.saturating_sub(3)..(at + 4).min(days.len())];
        // A whole week only: each weekday counts once.
        if near.len() == 7 && near[6].0 - near[0].0 == 6 {
            let week: Vec<f64> = near.iter().map(|(_, value)| *value).collect();
            off[weekday(*day)].push(value - median(&week).unwrap_or(*value));
        }
    }
    if off.iter().any(|of| of.len() < 3) {
        return;
    }
    let mut effects = [0.0; 7];
    for (effect, of) in effects.iter_mut().zip(&off) {
        *effect = median(of).unwrap_or(0.0);
    }
    let rest: Vec<f64> =
        off.iter().zip(effects).flat_map(|(of, effect)| of.iter().map(move |it| (it - effect).abs())).collect();
    let scale = median(&rest).unwrap_or(0.0) * 1.4826;
    // The variance of a median is about π/2 that of a mean.
    let weight = |of: &Vec<f64>| count(of.len()) / (std::f64::consts::FRAC_PI_2 * scale * scale);
    let chi2: f64 = off.iter().zip(effects).map(|(of, effect)| effect * effect * weight(of)).sum();
    if scale > 0.0 && chi2 < CHI2_6_99 {
        return;
    }
    for (value, at) in values.iter_mut().zip(unix_us) {
        *value -= effects[weekday(at / DAY_US)];
    }
}

/// From 0 on; which day is 0 does not matter.
fn weekday(day: u64) -> usize {
    usize::try_from(day % 7).unwrap_or(0)
}

/// Candidates: the split points of each window.
fn split(values: &[f64], options: Options) -> Vec<usize> {
    let (mut found, mut start) = (Vec::new(), 0);
    while start < values.len() {
        let end = (start + options.window).min(values.len());
        let mut points = Vec::new();
        // Ten times as lenient as the result, as in Otava: merging decides with more values.
        divide(&values[start..end], start, 10.0 * options.p_max, &mut points);
        points.sort_unstable();
        start = points.last().copied().unwrap_or(0).max(start + options.window / 2);
        found.extend(points);
        if end == values.len() {
            break;
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Splits a part at its best point as long as both sides differ.
fn divide(values: &[f64], offset: usize, p_max: f64, found: &mut Vec<usize>) {
    let Some(at) = best_split(values) else { return };
    if p_of(&values[..at], &values[at..]) <= p_max {
        found.push(offset + at);
        divide(&values[..at], offset, p_max, found);
        divide(&values[at..], offset + at, p_max, found);
    }
}

/// The split with the largest E-divisive statistic: over all ends of the right side, as Matteson and James's equation 5.
fn best_split(values: &[f64]) -> Option<usize> {
    let n = values.len();
    if n < VALUES_MIN {
        return None;
    }
    // sums[i][j]: of |a − b| over a in the first i and b in the first j values.
    let wide = n + 1;
    let mut sums = vec![0.0; wide * wide];
    for i in 0..n {
        let mut row = 0.0;
        for j in 0..n {
            row += (values[i] - values[j]).abs();
            sums[(i + 1) * wide + j + 1] = sums[i * wide + j + 1] + row;
        }
    }
    let sum = |from: (usize, usize), to: (usize, usize)| {
        sums[from.1 * wide + to.1] - sums[from.0 * wide + to.1] - sums[from.1 * wide + to.0]
            + sums[from.0 * wide + to.0]
    };
    let mut best = (0.0, None);
    for at in PART_MIN..=n - PART_MIN {
        for end in at + PART_MIN..=n {
            let (a, b) = (count(at), count(end - at));
            let between = 2.0 / (a * b) * sum((0, at), (at, end));
            let within_a = sum((0, at), (0, at)) / (a * (a - 1.0));
            let within_b = sum((at, end), (at, end)) / (b * (b - 1.0));
            let q = a * b / (a + b) * (between - within_a - within_b);
            if q > best.0 {
                best = (q, Some(at));
            }
        }
    }
    best.1
}

/// Two-sided p of Student's t-test with pooled variance, corrected for the choice of the split.
fn p_of(a: &[f64], b: &[f64]) -> f64 {
    let (n, m) = (count(a.len()), count(b.len()));
    let (mean_a, mean_b) = (mean(a), mean(b));
    let df = n + m - 2.0;
    let variance = (squares(a, mean_a) + squares(b, mean_b)) / df;
    if variance <= 0.0 {
        return if mean_a == mean_b { 1.0 } else { 0.0 };
    }
    let t = (mean_a - mean_b).abs() / (variance * (1.0 / n + 1.0 / m)).sqrt();
    // The split was chosen as the best of all places (Bonferroni).
    StudentsT::new(0.0, 1.0, df).map_or(1.0, |law| 2.0 * law.sf(t) * (n + m)).min(1.0)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / count(values.len())
}

fn squares(values: &[f64], mean: f64) -> f64 {
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// Removes the weakest point and judges its neighbours anew, until every point is a change.
fn merge(values: &[f64], mut points: Vec<usize>, options: Options, noise: f64) -> Vec<ChangePoint> {
    let judged = |points: &[usize], k: usize| {
        let from = if k == 0 { 0 } else { points[k - 1] };
        let to = points.get(k + 1).copied().unwrap_or(values.len());
        judge(values, (from, points[k], to))
    };
    let mut all: Vec<ChangePoint> = (0..points.len()).map(|k| judged(&points, k)).collect();
    let is_weak = |it: &ChangePoint, k: usize, points: &[usize]| {
        let from = if k == 0 { 0 } else { points[k - 1] };
        let to = points.get(k + 1).copied().unwrap_or(values.len());
        it.p > options.p_max
            || it.change.abs() < options.change_min
            || (it.after - it.before).abs() < EFFECT_MIN * noise
            || is_drift(&values[from..to], it.at - from)
    };
    loop {
        let weak = (0..all.len()).filter(|k| is_weak(&all[*k], *k, &points));
        let weakest = weak.max_by(|a, b| {
            let [a, b] = [all[*a], all[*b]];
            a.p.total_cmp(&b.p).then((b.after - b.before).abs().total_cmp(&(a.after - a.before).abs()))
        });
        let Some(k) = weakest else {
            if moved(values, &mut points) {
                all = (0..points.len()).map(|k| judged(&points, k)).collect();
                continue;
            }
            return all;
        };
        points.remove(k);
        all.remove(k);
        for (near, point) in all.iter_mut().enumerate().take(k + 1).skip(k.saturating_sub(1)) {
            *point = judged(&points, near);
        }
    }
}

/// Moves each point to the place between its neighbours where two levels fit best: a window may have ended near it. Whether one moved.
fn moved(values: &[f64], points: &mut [usize]) -> bool {
    let mut any = false;
    for k in 0..points.len() {
        let from = if k == 0 { 0 } else { points[k - 1] };
        let to = points.get(k + 1).copied().unwrap_or(values.len());
        let part = &values[from..to];
        let total: f64 = part.iter().sum();
        // The squares around two levels are least where those of the levels are most.
        let (mut sum, mut best) = (0.0, (0.0, points[k]));
        for (n, value) in part.iter().enumerate() {
            if n >= PART_MIN && n + PART_MIN <= part.len() {
                let (a, b) = (count(n), count(part.len() - n));
                let explained = (sum / a - (total - sum) / b).powi(2) * a * b / (a + b);
                if explained > best.0 {
                    best = (explained, from + n);
                }
            }
            sum += value;
        }
        any |= best.1 != points[k];
        points[k] = best.1;
    }
    any
}

fn judge(values: &[f64], (from, at, to): (usize, usize, usize)) -> ChangePoint {
    let (a, b) = (&values[from..at], &values[at..to]);
    let (before, after) = (mean(a), mean(b));
    let share = |value: f64| if before == 0.0 { 0.0 } else { value / before };
    let interval =
        student::difference(a, b, 0.95).map_or([f64::NEG_INFINITY, f64::INFINITY], |it| it.interval.map(share));
    // A negative level turns the interval around.
    let interval = if interval[0] > interval[1] { [interval[1], interval[0]] } else { interval };
    ChangePoint { at, before, after, change: share(after - before), interval, p: p_of(a, b) }
}

/// Whether one straight line describes both sides better than two levels do.
fn is_drift(values: &[f64], at: usize) -> bool {
    let levels = squares(&values[..at], mean(&values[..at])) + squares(&values[at..], mean(&values[at..]));
    let n = count(values.len());
    let (middle, level) = ((n - 1.0) / 2.0, mean(values));
    let cross: f64 = values.iter().enumerate().map(|(x, y)| (count(x) - middle) * (y - level)).sum();
    let slope = cross / (n * (n * n - 1.0) / 12.0);
    let line: f64 = values.iter().enumerate().map(|(x, y)| (y - level - slope * (count(x) - middle)).powi(2)).sum();
    line < levels
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reproducible normal values (xorshift64* and Box–Muller).
    struct Chance(u64);

    impl Chance {
        fn uniform(&mut self) -> f64 {
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;

            (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
        }

        fn within(&mut self, low: f64, high: f64) -> f64 {
            low + (high - low) * self.uniform()
        }

        fn below(&mut self, n: usize) -> usize {
            (self.uniform() * count(n)) as usize
        }

        fn normal(&mut self) -> f64 {
            let (a, b) = (self.uniform().max(1e-300), self.uniform());
            (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
        }
    }

    struct Series {
        values: Vec<f64>,
        unix_us: Vec<u64>,
        /// Index and size in CVs.
        steps: Vec<(usize, f64)>,
    }

    /// 80 to 300 runs, one to four a day; up to three steps of 1–20 %, at least 20 runs apart; CV 1–5 %; in a third each: drift of up
    /// to 2 CVs in all, a weekly pattern of up to 1.5 CVs at the weekend, and 2 % outliers of 5–15 CVs.
    fn series(chance: &mut Chance) -> Series {
        let n = 80 + chance.below(221);
        let cv = chance.within(0.01, 0.05);
        let a_day = 1 + chance.below(4) as u64;
        let mut steps: Vec<(usize, f64)> = Vec::new();
        for _ in 0..chance.below(4) {
            let at = 20 + chance.below(n - 40);
            if steps.iter().all(|(other, _)| at.abs_diff(*other) >= 20) {
                let sign = if chance.uniform() < 0.5 { -1.0 } else { 1.0 };
                steps.push((at, sign * chance.within(0.01, 0.2) / cv));
            }
        }
        let third = |chance: &mut Chance| if chance.below(3) == 0 { 1.0 } else { 0.0 };
        let drift = third(chance) * chance.within(-2.0, 2.0);
        let weekend = third(chance) * chance.within(-1.5, 1.5);
        let outliers = third(chance) * 0.02;
        let unix_us: Vec<u64> = (0..n as u64).map(|k| 1_700_000_000_000_000 + k * DAY_US / a_day).collect();
        let values = (0..n)
            .map(|k| {
                let mut off = chance.normal() + drift * count(k) / count(n);
                off += steps.iter().filter(|(at, _)| k >= *at).map(|(_, size)| size).sum::<f64>();
                if ((unix_us[k] / DAY_US + 4) % 7).is_multiple_of(6) {
                    off += weekend;
                }
                if chance.uniform() < outliers {
                    off -= chance.within(5.0, 15.0);
                }
                1e9 * (1.0 + cv * off)
            })
            .collect();
        Series { values, unix_us, steps }
    }

    /// A level that began a few values ago is reported as it is.
    #[test]
    fn the_first_values_of_a_new_level_are_no_outliers() {
        let wave = |nth: usize| (nth * 7 % 5) as f64;
        let values: Vec<f64> = (0..30).map(|nth| if nth < 26 { 620.0 } else { 319.0 } + wave(nth)).collect();
        let found = change_points(&values, &[], Options::default());
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].at == 26 && (found[0].after - 321.0).abs() < 3.0, "{found:?}");
    }

    #[test]
    fn a_step_to_a_level_far_above_the_noise_begins_with_its_first_value() {
        let mut values = vec![60.0, 58.0, 61.0, 57.0, 86.0, 54.0, 60.0, 59.0, 62.0, 58.0, 60.0, 61.0];
        values.extend([181e3, 222e3, 222e3, 221e3]);
        let points = change_points(&values, &[], Options::default());
        let found: Vec<(usize, f64)> = points.iter().map(|it| (it.at, it.after.round())).collect();
        assert_eq!(found, [(12, 211_500.0)]);
    }

    /// `NARROWS_SERIES=1000 cargo test -p narrows-stats change_points -- --nocapture` prints the figures of a thousand.
    #[test]
    fn steps_are_found_and_little_else() {
        let number = std::env::var("NARROWS_SERIES").ok().and_then(|word| word.parse().ok()).unwrap_or(120usize);
        let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
        let (mut found, mut right, mut large, mut large_found) = (0, 0, 0, 0);
        for _ in 0..number {
            let series = series(&mut chance);
            let points = change_points(&series.values, &series.unix_us, Options::default());
            let is_near = |at: usize, step: usize| at.abs_diff(step) <= 5;
            found += points.len();
            right += points.iter().filter(|it| series.steps.iter().any(|(step, _)| is_near(it.at, *step))).count();
            for (step, _) in series.steps.iter().filter(|(_, size)| size.abs() >= 2.0) {
                large += 1;
                large_found += usize::from(points.iter().any(|it| is_near(it.at, *step)));
            }
        }
        let (precision, recall) = (count(right) / count(found), count(large_found) / count(large));
        println!(
            "{number} series: precision {precision:.3} ({right} of {found}), recall {recall:.3} ({large_found} of {large})"
        );
        assert!(precision >= 0.95 && recall >= 0.9, "precision {precision}, recall {recall}");
    }

    #[test]
    fn a_step_by_hand() {
        // 20 values around 100, 20 around 63: means 100 and 63, a change of −37 %.
        let wave = |k: usize| [0.5, -0.5, 1.0, -1.0][k % 4];
        let values: Vec<f64> = (0..40).map(|k| if k < 20 { 100.0 } else { 63.0 } + wave(k)).collect();
        let points = change_points(&values, &[], Options::default());
        let [point] = points[..] else { panic!("{points:?}") };
        assert_eq!((point.at, point.before, point.after), (20, 100.0, 63.0));
        assert!((point.change + 0.37).abs() < 1e-12 && point.p < 1e-30, "{point:?}");
        // Variance 12.5/19 a side: the standard error is 0.2565, its 97.5 % quantile at 38 degrees of freedom 2.0244.
        assert!((point.interval[1] - point.change - 0.005_192).abs() < 2e-5, "{point:?}");
        assert_eq!(change_points(&values, &[], Options { change_min: 0.4, ..Options::default() }), []);
    }

    #[test]
    fn what_is_no_step() {
        let mut chance = Chance(7);
        let ramp: Vec<f64> = (0..200).map(|k| 100.0 + 0.05 * f64::from(k) + chance.normal()).collect();
        assert_eq!(change_points(&ramp, &[], Options::default()), [], "drift");
        let mut single: Vec<f64> = (0..100).map(|_| 100.0 + chance.normal()).collect();
        single[40] = 20.0;
        single[41] = 25.0;
        assert_eq!(change_points(&single, &[], Options::default()), [], "outliers");
        assert_eq!(change_points(&[5.0; 100], &[], Options::default()), [], "constant");
        assert_eq!(change_points(&[1.0, 2.0, f64::NAN, 4.0, 5.0, 6.0, 7.0], &[], Options::default()), []);
        assert_eq!(change_points(&[1.0, 2.0], &[], Options::default()), []);
    }

    #[test]
    fn a_step_without_noise_is_certain() {
        let values: Vec<f64> = (0..60).map(|k| if k < 30 { 10.0 } else { 12.0 }).collect();
        let points = change_points(&values, &[], Options::default());
        assert_eq!(points.iter().map(|it| (it.at, it.p)).collect::<Vec<_>>(), [(30, 0.0)]);
        assert_eq!(points[0].interval, [0.2, 0.2]);
    }
}
