//! A device with a queue that is seen by bursts.

use super::back_to_back::BurstSeen;
use crate::data::plan::Row;

pub(crate) const fn row(size: u32) -> Row {
    Row { traffic: 0, size: Some(size) }
}

/// A device that forwards `drain_pps` and holds `queue` frames.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Queue {
    pub(crate) queue: u64,
    pub(crate) drain_pps: f64,
}

impl Queue {
    /// Frames of a burst at `rate_pps` that get through: those forwarded while it lasts, and those that the queue holds.
    pub(crate) fn burst(self, frames: u64, rate_pps: f64) -> BurstSeen {
        let meanwhile = (frames as f64 * self.drain_pps / rate_pps).floor() as u64;
        BurstSeen { sent: frames, received: frames.min(self.queue + meanwhile), invalid: None }
    }

    /// The longest burst without loss.
    pub(crate) fn longest(self, rate_pps: f64) -> f64 {
        self.queue as f64 / (1.0 - self.drain_pps / rate_pps)
    }
}
