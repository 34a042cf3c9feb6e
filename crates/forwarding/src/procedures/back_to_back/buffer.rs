//! The buffer that bursts tell of (RFC 9004): implied, and corrected by what the device forwarded meanwhile.

use crate::data::BurstOfSize;
use narrows_stats::summary;

/// The buffer that bursts tell of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BufferTime {
    /// The average burst, frames: the RFC's back-to-back value.
    pub mean_frames: f64,
    /// The shortest and the longest of the repetitions.
    pub range_frames: [f64; 2],
    /// Standard deviation over the repetitions; `None` of a single one.
    pub sd_frames: Option<f64>,
    /// At which rate the bursts left, frames a second: the maximum rate of the formulas.
    pub rate_pps: f64,
    pub implied_ns: f64,
    /// Implied × (1 − throughput ÷ rate).
    pub corrected_ns: f64,
    /// The same for the throughput's upper and lower bound: near the maximum rate a small error of the throughput is a large
    /// one of the buffer. `None` where the throughput has no upper bound.
    pub corrected_range_ns: Option<[f64; 2]>,
    /// Corrected time × rate: frames that the buffer holds.
    pub buffer_frames: f64,
    /// Whether the longest burst that was tried passed, once or more: the buffer is at least so large.
    pub at_least: bool,
}

/// The buffer by the bursts of one row, its throughput and, where there is one, the throughput's upper bound.
///
/// `None` without a burst, or if the rate or the throughput is not a valid rate.
pub fn buffer_time(bursts: &[BurstOfSize], throughput_pps: f64, upper_pps: Option<f64>) -> Option<BufferTime> {
    let frames: Vec<f64> = bursts.iter().map(|burst| burst.frames as f64).collect();
    let rates: Vec<f64> = bursts.iter().map(|burst| burst.offered_pps).collect();
    let (frames, rate_pps) = (summary(&frames)?, narrows_stats::median(&rates)?);
    if !(rate_pps > 0.0 && throughput_pps.is_finite() && throughput_pps >= 0.0) {
        return None;
    }
    let implied_ns = frames.mean / rate_pps * 1e9;
    let corrected = |pps: f64| implied_ns * (1.0 - (pps / rate_pps).clamp(0.0, 1.0));
    let corrected_ns = corrected(throughput_pps);
    Some(BufferTime {
        mean_frames: frames.mean,
        range_frames: [frames.min, frames.max],
        sd_frames: frames.sd,
        rate_pps,
        implied_ns,
        corrected_ns,
        corrected_range_ns: upper_pps.map(|upper| [corrected(upper), corrected_ns]),
        buffer_frames: corrected_ns * rate_pps / 1e9,
        at_least: bursts.iter().any(|burst| burst.at_most),
    })
}
