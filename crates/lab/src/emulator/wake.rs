//! How late a sleeping thread wakes on this machine, learned from the ends of its own waits.
//!
//! A core takes tens of microseconds to come back from a rest, and on a virtual machine more. A packet that wakes the thread came
//! about that much earlier than it is read: to take the time of reading for the time of arrival would lengthen the path.

use super::meter::Nanos;

/// More than this is not the core's doing.
const LATE_MAX: Nanos = 150_000;
/// Waits shorter than this do not let a core rest.
const REST: Nanos = 100_000;

/// A running mean of how late waits end.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wake {
    late: Nanos,
}

impl Wake {
    /// A wait that was to last `asked` ended `late` after its end.
    pub fn learn(&mut self, asked: Nanos, late: Nanos) {
        if asked >= REST && late <= LATE_MAX {
            self.late = if self.late == 0 { late } else { (self.late * 7 + late) / 8 };
        }
    }

    /// When a packet arrived that ended a wait: the wait began at `began`, when there was none, and ended at `ended`.
    #[must_use]
    pub fn arrival(&self, began: Nanos, ended: Nanos) -> Nanos {
        ended.saturating_sub(self.late).max(began)
    }

    /// How long before its end a wait should stop, for the rest to be spun.
    #[must_use]
    pub fn early(&self) -> Nanos {
        // The mean and half of it: most waits then end in time.
        self.late + self.late / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_learns_from_rests_and_forgets_accidents() {
        let mut wake = Wake::default();
        assert_eq!(wake.arrival(0, 500_000), 500_000, "nothing is known yet");
        for _ in 0..100 {
            wake.learn(500_000, 30_000);
            wake.learn(500_000, 5_000_000); // somebody else had the core
            wake.learn(10_000, 1_000); // no rest
        }
        assert_eq!(wake.arrival(0, 500_000), 470_000);
        assert_eq!(wake.arrival(490_000, 500_000), 490_000, "there was none before");
        assert_eq!(wake.early(), 45_000);
    }
}
