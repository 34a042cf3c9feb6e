//! How late a sleeping thread wakes on this machine, learned from its own waits.
//!
//! A core takes tens of microseconds to leave an idle state, and more on a virtual machine. A packet that wakes the thread
//! arrived about that much earlier than it is read: taking the read time as arrival time would lengthen the path.

use super::meter::Nanos;

/// A longer delay is not caused by the core's idle state.
const LATE_MAX: Nanos = 150_000;
/// Waits shorter than this do not idle a core.
const REST: Nanos = 100_000;

/// A running mean of the wake-up delay.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wake {
    late: Nanos,
}

impl Wake {
    /// Learns from a wait that was to last `asked` and ended `late` after its end.
    pub fn learn(&mut self, asked: Nanos, late: Nanos) {
        if asked >= REST && late <= LATE_MAX {
            self.late = if self.late == 0 { late } else { (self.late * 7 + late) / 8 };
        }
    }

    /// When the packet arrived that ended a wait from `began`, when the queue was empty, to `ended`.
    pub fn arrival(&self, began: Nanos, ended: Nanos) -> Nanos {
        ended.saturating_sub(self.late).max(began)
    }

    /// How long before its end a wait should stop, so that the rest is spent spinning.
    pub fn early(&self) -> Nanos {
        // The mean and half of it: most waits then end in time.
        self.late + self.late / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_learns_from_idle_waits_and_ignores_outliers() {
        let mut wake = Wake::default();
        assert_eq!(wake.arrival(0, 500_000), 500_000, "nothing is known yet");
        for _ in 0..100 {
            wake.learn(500_000, 30_000);
            wake.learn(500_000, 5_000_000); // the core was busy with something else
            wake.learn(10_000, 1_000); // too short for an idle state
        }
        assert_eq!(wake.arrival(0, 500_000), 470_000);
        assert_eq!(wake.arrival(490_000, 500_000), 490_000, "there was none before");
        assert_eq!(wake.early(), 45_000);
    }
}
