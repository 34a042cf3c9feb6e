//! The buffer that bursts tell of (RFC 9004): implied, and corrected by what the device forwarded meanwhile.

use crate::data::BurstOfSize;
use narrows_stats::{mean, median};

/// The buffer that bursts tell of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BufferTime {
    /// The average burst, frames: the RFC's back-to-back value.
    pub mean_frames: f64,
    pub implied_ns: f64,
    /// Implied × (1 − throughput ÷ rate).
    pub corrected_ns: f64,
    /// Whether the longest burst that was tried passed, once or more: the buffer is at least so large.
    pub at_least: bool,
}

/// The buffer by the bursts of one row and its throughput. `None` without a burst, or if the rate or the throughput is not a valid
/// rate.
pub fn buffer_time(bursts: &[BurstOfSize], throughput_pps: f64) -> Option<BufferTime> {
    let frames: Vec<f64> = bursts.iter().map(|burst| burst.frames as f64).collect();
    let rates: Vec<f64> = bursts.iter().map(|burst| burst.offered_pps).collect();
    let (mean_frames, rate_pps) = (mean(&frames)?, median(&rates)?);
    if !(rate_pps > 0.0 && throughput_pps.is_finite() && throughput_pps >= 0.0) {
        return None;
    }
    let implied_ns = mean_frames / rate_pps * 1e9;
    Some(BufferTime {
        mean_frames,
        implied_ns,
        corrected_ns: implied_ns * (1.0 - (throughput_pps / rate_pps).clamp(0.0, 1.0)),
        at_least: bursts.iter().any(|burst| burst.at_most),
    })
}
