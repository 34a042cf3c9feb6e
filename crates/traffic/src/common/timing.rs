//! When a stream ended, compared with the plan.

/// The end of one stream and its planned end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    /// Planned end in microseconds since the start; `None` where bytes end the trial.
    pub(crate) end_us: Option<u64>,
    /// When the stream ended.
    pub(crate) ended_us: u64,
}

impl Timing {
    /// The clocks of the two ends start about a round-trip time apart: an end that came this much early is still in time.
    const SLACK_US: u64 = 1_000_000;

    pub(crate) fn in_time(self) -> bool {
        self.end_us.is_some_and(|end| self.ended_us >= end - Self::SLACK_US.min(end / 4))
    }

    /// `after 2.35 s of 10.00 s`, for a remark.
    pub(crate) fn when(self) -> String {
        #[allow(clippy::cast_precision_loss)]
        let seconds = |us: u64| us as f64 / 1e6;
        match self.end_us {
            Some(end) => format!("after {:.2} s of {:.2} s", seconds(self.ended_us), seconds(end)),
            None => format!("after {:.2} s", seconds(self.ended_us)),
        }
    }
}
