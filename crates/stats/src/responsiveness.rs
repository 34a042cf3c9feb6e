//! The formulas of responsiveness under working conditions (draft-ietf-ippm-responsiveness-09): trimmed means, round trips per
//! minute, and when a series is stable.

use crate::{count, finite, mean};

/// MAD: intervals that a moving average takes in, and values of it that must agree.
pub const MOVING_AVERAGE: usize = 4;
/// TMP: the part of the samples, smallest first, that a trimmed mean takes in.
pub const TRIMMED: f64 = 0.95;
/// SDT: the standard deviation of a stable series over its last value.
pub const TOLERANCE: f64 = 0.05;

/// The mean of the smallest samples, so many of 1: the single-sided trimmed mean; `None` without samples. The number that is
/// taken in is rounded up.
pub fn trimmed_mean(values: &[f64], part: f64) -> Option<f64> {
    if values.is_empty() || !finite(values) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    // A product such as 20 × 0.95 may come out a hair above 19.
    let kept = (count(sorted.len()) * part - 1e-9).ceil() as usize;
    mean(sorted.get(..kept.clamp(1, sorted.len()))?)
}

/// Times of probes, ms.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Probes {
    /// TCP handshakes of new connections.
    pub tcp: Vec<f64>,
    /// TLS handshakes of new connections, per round trip; empty without TLS.
    pub tls: Vec<f64>,
    /// Requests on new connections.
    pub http: Vec<f64>,
    /// Requests on connections that carry load.
    pub loaded: Vec<f64>,
}

/// Responsiveness in round trips per minute, RPM.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rpm {
    pub foreign: f64,
    /// Of connections that carry load.
    pub loaded: f64,
}

impl Rpm {
    /// The mean of both.
    pub fn value(self) -> f64 {
        f64::midpoint(self.foreign, self.loaded)
    }
}

impl Probes {
    /// 60,000 ms over the mean of the trimmed means, for both kinds of probes; `None` without samples of each.
    pub fn rpm(&self) -> Option<Rpm> {
        let of = |values: &[f64]| trimmed_mean(values, TRIMMED);
        let mut parts = vec![of(&self.tcp)?, of(&self.http)?];
        parts.extend(of(&self.tls));
        let (foreign, loaded) = (mean(&parts)?, of(&self.loaded)?);
        (foreign > 0.0 && loaded > 0.0).then(|| Rpm { foreign: 60_000.0 / foreign, loaded: 60_000.0 / loaded })
    }
}

/// The moving average of each value: of itself and up to [`MOVING_AVERAGE`] − 1 before it.
pub fn moving_averages(values: &[f64]) -> Vec<f64> {
    let from = |end: usize| end.saturating_sub(MOVING_AVERAGE);
    (1..=values.len()).filter_map(|end| mean(&values[from(end)..end])).collect()
}

/// Whether the standard deviation of the last [`MOVING_AVERAGE`] values, as of a whole population, is within [`TOLERANCE`] of the
/// last one.
pub fn is_stable(values: &[f64]) -> bool {
    let last = &values[values.len().saturating_sub(MOVING_AVERAGE)..];
    let (Some(current), Some(mean), MOVING_AVERAGE) = (last.last(), mean(last), last.len()) else { return false };
    let variance = last.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count(last.len());
    variance.sqrt() < TOLERANCE * current
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_samples_are_left_out() {
        // 1 to 20: 19 are taken in, 190 / 19.
        let values: Vec<f64> = (1..=20).rev().map(f64::from).collect();
        assert_eq!(trimmed_mean(&values, TRIMMED), Some(10.0));
        // Of 10, 9.5 are taken in: all.
        assert_eq!(trimmed_mean(&values[10..], TRIMMED), Some(5.5));
        assert_eq!((trimmed_mean(&[7.0], TRIMMED), trimmed_mean(&[], TRIMMED)), (Some(7.0), None));
        assert_eq!(trimmed_mean(&[1.0, f64::NAN], TRIMMED), None);
    }

    #[test]
    fn round_trips_per_minute_by_hand() {
        let probes = Probes { tcp: vec![20.0], tls: vec![30.0], http: vec![40.0], loaded: vec![120.0] };
        // 60,000 / 30 and 60,000 / 120.
        let rpm = probes.rpm().unwrap();
        assert_eq!((rpm.foreign, rpm.loaded, rpm.value()), (2000.0, 500.0, 1250.0));
        // Without TLS its place is left out, not zero: 60,000 / 30 again.
        assert_eq!(Probes { tls: Vec::new(), ..probes.clone() }.rpm().unwrap().foreign, 2000.0);
        assert_eq!(Probes { loaded: Vec::new(), ..probes }.rpm(), None);
    }

    #[test]
    fn a_series_is_stable_within_five_percent() {
        assert_eq!(moving_averages(&[4.0, 8.0, 12.0, 16.0, 20.0]), [4.0, 6.0, 8.0, 10.0, 14.0]);
        assert!(!is_stable(&[100.0, 100.0, 100.0]), "too few");
        // Mean 100, deviations 4, 4, 4, 4: a standard deviation of 4, below 5 % of 104 and above 5 % of 70.
        assert!(is_stable(&[1.0, 96.0, 96.0, 104.0, 104.0]));
        assert!(!is_stable(&[94.0, 94.0, 106.0, 106.0]));
        assert!(!is_stable(&[0.0; 4]), "nothing is not stable");
    }
}
