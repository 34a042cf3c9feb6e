//! Back-to-back frames.

use super::about::{About, Made, Procedure, REPETITIONS};
use crate::data::settings::{Default as D, Kind, Value, settings};
use narrows_model::run::sweep::Spread;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest burst: 30 s at 150 Mpps.
const MAX_FRAMES: u64 = 4_500_000_000;
/// The longest burst that is tried where the file does not say, in seconds at the highest rate of the smallest frames.
const BURST_S: f64 = 2.0;

settings! {
    /// The longest burst without loss.
    pub struct BackToBackTest {
        /// Maximum burst, in frames.
        pub most_frames: u64 = "most-frames", Kind::Whole(1..=MAX_FRAMES), D::Derived("2 s of the smallest frames at the maximum rate");
        /// Repetitions of the search for the longest burst.
        pub repetitions: u32 = "repetitions", Kind::Whole(REPETITIONS), D::Presets(Value::Whole(5), Value::Whole(50));
    }
}

impl Procedure for BackToBackTest {
    const ABOUT: About = About {
        key: "back-to-back",
        what: "the longest burst without loss (RFC 9004)",
        title: "back-to-back",
        word: "back-to-back",
        made: Made::Usually,
        at_throughput: true,
    };

    fn complete(&mut self, fastest_pps: f64) {
        if self.most_frames == 0 {
            // At most 3 × 10^9 by the fastest line.
            let frames = (fastest_pps * BURST_S).floor().max(1.0) as u64;
            self.most_frames = frames;
        }
    }
}

/// Back-to-back frames of one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct BackToBackResults {
    /// The longest bursts without loss.
    pub bursts: Option<BurstsOfSize>,
}

/// The longest bursts without loss over all repetitions of one size (RFC 9004).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BurstsOfSize {
    /// Index into the plan's traffic.
    pub traffic: usize,
    /// Frame size with FCS; `None`: the mix.
    pub size: Option<u32>,
    /// The average burst, frames: RFC 9004's back-to-back value.
    pub mean_frames: f64,
    /// Over the repetitions, frames.
    pub frames: Spread,
    /// At which rate they left: the RFC's maximum frame rate, frames a second.
    pub offered_pps: f64,
    /// Implied buffer time: average burst ÷ maximum rate.
    pub implied_ns: f64,
    /// The part of it that the device did not forward meanwhile: implied × (1 − throughput ÷ maximum rate); `None` without
    /// a throughput.
    pub corrected_ns: Option<f64>,
    /// Whether the longest burst tried passed, once or more: all figures are then at least so large.
    pub at_least: bool,
}
