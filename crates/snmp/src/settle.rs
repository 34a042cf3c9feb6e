//! Waits until an agent's counters are up to date. Agents read their hardware only every few seconds and answer from a cache
//! in between, so that a reading right after the load is too small: the reader waits until the counters include what is known
//! to have passed, and no longer change.

use crate::agent::Agent;
use crate::counters::PortCounters;
use crate::error::SnmpError;
use crate::growth::Growth;
use crate::interface::InterfaceName;
use narrows_sys::clock;
use std::time::{Duration, Instant};

/// What to wait for, and how long.
#[derive(Debug, Clone)]
pub struct Settling {
    /// The reading before the load.
    pub before: PortCounters,
    /// Frames known to have been received here, such as those that the receiver counted; 0 if unknown.
    pub min_in: u64,
    /// Frames known to have been sent here; 0 if unknown.
    pub min_out: u64,
    /// Time between two readings; two equal ones end the wait.
    pub every: Duration,
    /// The maximum wait. Agents answer from a cache for up to 15 s.
    pub wait: Duration,
}

/// The state of the wait.
#[derive(Debug)]
pub(crate) struct Watch<'a> {
    settling: &'a Settling,
    start: Instant,
    last: Option<PortCounters>,
}

impl<'a> Watch<'a> {
    pub(crate) const fn new(settling: &'a Settling, start: Instant) -> Self {
        Self { settling, start, last: None }
    }

    /// Adds a reading; returns it if it was the last one.
    pub(crate) fn see(&mut self, reading: PortCounters, now: Instant) -> Option<PortCounters> {
        let agrees = self.last.as_ref().is_some_and(|last| last.stands_at(&reading));
        // The next reading would exceed the limit.
        let over = now.saturating_duration_since(self.start) + self.settling.every > self.settling.wait;
        if agrees && self.has_seen(&reading) || over {
            return Some(reading);
        }
        self.last = Some(reading);
        None
    }

    /// There is no use in waiting for a missing or reset counter: the growth reports it.
    fn has_seen(&self, reading: &PortCounters) -> bool {
        let growth = Growth::between(&self.settling.before, reading);
        let enough = |frames: Option<u64>, least: u64| frames.is_none_or(|frames| frames >= least);
        enough(growth.input.frames(), self.settling.min_in) && enough(growth.output.frames(), self.settling.min_out)
    }
}

impl Agent {
    /// Reads an interface repeatedly until two consecutive readings agree and include what is known to have passed,
    /// or the time is over; returns the last one.
    pub fn settle(&self, interface: &InterfaceName, settling: &Settling) -> Result<PortCounters, SnmpError> {
        let mut watch = Watch::new(settling, clock::now());
        loop {
            if let Some(last) = watch.see(self.counters(interface)?, clock::now()) {
                return Ok(last);
            }
            clock::sleep(settling.every);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::{Counter, SideCounters, Width};

    fn reading(frames: u64) -> PortCounters {
        let read = |value| Counter::Read { object: "x", value, width: Width::Bits64 };
        let side = || SideCounters {
            octets: read(frames * 64),
            unicast: read(frames),
            multicast: read(0),
            broadcast: read(0),
            discards: read(0),
            errors: read(0),
        };
        let interface = InterfaceName { index: 1, name: "p".into(), description: "p".into() };
        PortCounters { interface, up_time: 1, discontinuity: None, speed_mbps: None, input: side(), output: side() }
    }

    /// Readings one second apart, for at most five seconds: the last one, and when it was made.
    fn end(least: u64, readings: &[u64]) -> Option<(u64, u64)> {
        let settling = Settling {
            before: reading(0),
            min_in: least,
            min_out: least,
            every: Duration::from_secs(1),
            wait: Duration::from_secs(5),
        };
        let start = clock::now();
        let mut watch = Watch::new(&settling, start);
        let mut readings = readings.iter().zip(0..);
        readings.find_map(|(frames, second)| {
            watch.see(reading(*frames), start + Duration::from_secs(second)).map(|_| (*frames, second))
        })
    }

    #[test]
    fn a_caching_agent_is_awaited() {
        assert_eq!(end(100, &[0, 0, 0, 100, 100, 7]), Some((100, 4)));
    }

    #[test]
    fn two_equal_readings_end_the_wait() {
        assert_eq!(end(0, &[90, 100, 100, 7]), Some((100, 2)));
        assert_eq!(end(0, &[100]), None, "one reading says nothing");
    }

    #[test]
    fn the_wait_is_limited() {
        assert_eq!(end(100, &[0; 9]), Some((0, 5)));
        assert_eq!(end(0, &[1, 2, 3, 4, 5, 6, 7]), Some((6, 5)));
    }
}
