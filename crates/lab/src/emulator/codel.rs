//! Controlled delay, RFC 8289: a queue that stands for an interval loses a packet, and more the longer it stands.

use super::meter::Nanos;

/// The target queueing delay, and the interval within which the delay must fall below it at least once.
const TARGET: Nanos = 5_000_000;
const INTERVAL: Nanos = 100_000_000;

/// Its state (RFC 8289 section 5.4).
#[derive(Debug, Default)]
pub struct CoDel {
    first_above: Nanos,
    drop_next: Nanos,
    count: u32,
    last_count: u32,
    dropping: bool,
}

impl CoDel {
    /// Whether a packet that leaves the queue at an instant after such a stay is dropped.
    pub fn drops(&mut self, at: Nanos, stay: Nanos) -> bool {
        let above = match self.first_above {
            _ if stay < TARGET => {
                self.first_above = 0;
                false
            }
            0 => {
                self.first_above = at + INTERVAL;
                false
            }
            since => at >= since,
        };
        if !above {
            self.dropping = false;
            return false;
        }
        if self.dropping {
            let due = at >= self.drop_next;
            if due {
                self.count += 1;
                self.drop_next += self.gap();
            }
            return due;
        }
        self.dropping = true;
        // Soon after the last time it goes on with the pace that was needed then.
        let delta = self.count.saturating_sub(self.last_count);
        let soon = at.saturating_sub(self.drop_next) < 16 * INTERVAL;
        self.count = if soon && delta > 1 { delta } else { 1 };
        self.last_count = self.count;
        self.drop_next = at + self.gap();
        true
    }

    /// The time to the next drop.
    fn gap(&self) -> Nanos {
        (INTERVAL as f64 / f64::from(self.count.max(1)).sqrt()) as Nanos
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Drops among packets that leave each millisecond after such a stay.
    fn drops(stay_ms: u64, for_ms: u64) -> usize {
        let mut codel = CoDel::default();
        (1..=for_ms).filter(|at| codel.drops(at * 1_000_000, stay_ms * 1_000_000)).count()
    }

    #[test]
    fn a_short_queue_loses_nothing_and_a_standing_one_more_and_more() {
        assert_eq!((drops(4, 5_000), drops(20, 100)), (0, 0));
        // 1/sqrt(n): the n-th drop comes after 0.2 s times the root of n.
        assert_eq!(drops(20, 102), 1);
        let (second, four) = (drops(20, 1_100), drops(20, 4_100));
        assert!((25..40).contains(&second) && four > 12 * second, "{second}, {four}");
    }

    #[test]
    fn it_stops_when_the_queue_is_short_once() {
        let mut codel = CoDel::default();
        let lost = (1..=400_u64).filter(|at| codel.drops(at * 1_000_000, 20_000_000)).count();
        assert!(lost > 3, "{lost}");
        assert!(!codel.drops(401_000_000, 1_000_000));
        assert!((402..=500).all(|at: u64| !codel.drops(at * 1_000_000, 20_000_000)), "an interval anew");
    }
}
