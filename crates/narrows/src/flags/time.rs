//! Times of a load.

use super::values::{duration, millis};
use crate::failure::Failure;
use clap::Args;
use std::time::Duration;

/// How long something lasts.
#[derive(Debug, Args)]
pub(crate) struct DurationArg {
    /// Test duration
    #[arg(long, short = 't', value_parser = duration, value_name = "TIME", default_value = "10s")]
    pub(crate) duration: Duration,
}

/// What no summary counts.
#[derive(Debug, Args)]
pub(crate) struct OmitArg {
    /// Exclude this time from the summary (slow start)
    #[arg(long, short = 'O', value_parser = duration, value_name = "TIME")]
    omit: Option<Duration>,
}

/// How often counters are read.
#[derive(Debug, Args)]
pub(crate) struct IntervalArg {
    /// Interval between samples
    #[arg(long, short = 'i', value_parser = duration, value_name = "TIME", default_value = "1s")]
    pub(crate) interval: Duration,
}

impl DurationArg {
    pub(crate) fn ms(&self) -> u64 {
        millis(self.duration)
    }
}

impl OmitArg {
    pub(crate) fn ms(&self) -> Option<u64> {
        self.omit.map(millis)
    }
}

impl IntervalArg {
    /// Refuses what a live view cannot keep.
    pub(crate) fn check_live(&self) -> Result<(), Failure> {
        if (Duration::from_millis(50)..=Duration::from_secs(3600)).contains(&self.interval) {
            return Ok(());
        }
        Err(Failure::usage(format!("interval is {} ms, but must be from 50 ms to 1 h", self.ms())))
    }

    pub(crate) fn ms(&self) -> u64 {
        millis(self.interval)
    }
}

/// What a TCP load of this length needs to leave slow start: two seconds, of a short one a quarter.
pub(crate) fn slow_start_ms(duration_ms: u64) -> u64 {
    2_000.min(duration_ms / 4)
}
