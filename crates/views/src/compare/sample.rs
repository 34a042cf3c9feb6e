//! The values of one side, summarised.

use narrows_model::run::compare::CompareSample;
use narrows_stats::{lag1, quantile, summary, trend};

/// Values below this are too few to call a trend of them drift.
const DRIFT_LEAST: usize = 6;
/// Deviations from the median, in robust standard deviations, from which on a value is an outlier (Iglewicz and Hoaglin, 1993).
const OUTLIER: f64 = 3.5;
/// The standard deviation of a normal distribution in median absolute deviations.
const ROBUST: f64 = 1.4826;

/// The summary; `None` without values.
pub(super) fn sample(values: Vec<f64>) -> Option<CompareSample> {
    let all = summary(&values)?;
    let [q1, q3] = [quantile(&values, 0.25)?, quantile(&values, 0.75)?];
    Some(CompareSample {
        five_numbers: [all.min, q1, all.median, q3, all.max],
        mean: all.mean,
        sd: all.sd,
        drift: drift(&values, all.mean),
        outliers: outliers(&values, all.median),
        values,
    })
}

/// The trend over the whole sample as a share of its mean: of values that also resemble their neighbours.
fn drift(values: &[f64], mean: f64) -> Option<f64> {
    if values.len() < DRIFT_LEAST || mean == 0.0 {
        return None;
    }
    let points: Vec<(f64, f64)> = values.iter().enumerate().map(|(at, it)| (at as f64, *it)).collect();
    let line = trend(&points).filter(|it| it.is_drift() && lag1(values).is_some_and(|it| it > 0.0))?;
    Some(line.slope.value * points.last()?.0 / mean.abs())
}

fn outliers(values: &[f64], median: f64) -> Vec<u64> {
    let away: Vec<f64> = values.iter().map(|it| (it - median).abs()).collect();
    let Some(mad) = quantile(&away, 0.5).filter(|mad| values.len() >= 5 && *mad > 0.0) else { return Vec::new() };
    (0..).zip(&away).filter(|(_, away)| **away > OUTLIER * ROBUST * mad).map(|(at, _)| at).collect()
}
