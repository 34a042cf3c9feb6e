//! What arrived of one step. Pure; times are nanoseconds.

use narrows_model::{ProfileStep, StepPart, StepReceived};

/// Datagrams, and time, that show a queue or loss well enough to end a step.
const ENOUGH: u32 = 60;
const ENOUGH_NS: u64 = 60_000_000;
/// Loss ratio that ends a step.
const LOST: f64 = 0.15;

#[derive(Debug)]
pub(super) struct Arrivals {
    pub(super) id: u16,
    /// By sequence number: arrival time, and arrival minus send time (two clocks).
    seen: Vec<Option<(u64, i64)>>,
    received: u32,
    highest: Option<u32>,
    first_ns: u64,
    last_ns: u64,
    duplicates: u32,
    reordered: u32,
    /// How many came while the queue was above the step's limit, and since when.
    queued: (u32, u64),
    /// How many were missing at last, and since when.
    lossy_since: Option<(u32, u64)>,
}

impl Arrivals {
    pub(super) fn new(id: u16) -> Self {
        Self {
            id,
            seen: Vec::new(),
            received: 0,
            highest: None,
            first_ns: 0,
            last_ns: 0,
            duplicates: 0,
            reordered: 0,
            queued: (0, 0),
            lossy_since: None,
        }
    }

    /// Takes a datagram. `above_ns`: its delay above the least of the trial.
    pub(super) fn take(&mut self, n: u32, arrived_ns: u64, delay_ns: i64, above_ns: i64, step: Option<&ProfileStep>) {
        if n >= narrows_model::ProfilePlan::MAX_DATAGRAMS {
            return;
        }
        let index = n as usize;
        if self.seen.len() <= index {
            self.seen.resize(index + 1, None);
        }
        if self.seen[index].is_some() {
            self.duplicates += 1;
            return;
        }
        self.seen[index] = Some((arrived_ns, delay_ns));
        if self.received == 0 {
            self.first_ns = arrived_ns;
        }
        self.received += 1;
        self.last_ns = self.last_ns.max(arrived_ns);
        if self.highest.is_some_and(|highest| n < highest) {
            self.reordered += 1;
        }
        self.highest = self.highest.max(Some(n));
        let limit_ns = step.map_or(8_000_000, |step| i64::from(step.stop_above_us) * 1000);
        if above_ns > limit_ns {
            if self.queued.0 == 0 {
                self.queued.1 = arrived_ns;
            }
            self.queued.0 += 1;
        }
        if self.lossy_since.is_none() && self.missing() > 0 {
            self.lossy_since = Some((n, arrived_ns));
        }
    }

    fn missing(&self) -> u32 {
        self.highest.map_or(0, |highest| (highest + 1).saturating_sub(self.received))
    }

    pub(super) const fn has_all(&self, datagrams: u32) -> bool {
        self.received >= datagrams
    }

    /// The highest number that came was sent.
    pub(super) fn sent_at_least(&self) -> u32 {
        self.highest.map_or(0, |highest| highest + 1)
    }

    /// Whether the step has shown what it can: a queue, or loss.
    pub(super) fn is_enough(&self) -> bool {
        let long = |since: u64| self.last_ns.saturating_sub(since) >= ENOUGH_NS;
        let queued = self.queued.0 >= ENOUGH && long(self.queued.1);
        let lossy = self.lossy_since.is_some_and(|(from, since)| {
            let sent = self.highest.unwrap_or(0).saturating_sub(from).max(1);
            self.missing() >= ENOUGH && f64::from(self.missing()) >= LOST * f64::from(sent) && long(since)
        });
        queued || lossy
    }

    /// The account of a step of which so many datagrams were sent.
    pub(super) fn account(&self, sent: u32, socket_drops: u32) -> StepReceived {
        let seen = &self.seen[..self.seen.len().min(sent as usize)];
        let mut delays: Vec<i64> = seen.iter().flatten().map(|(_, delay)| *delay).collect();
        delays.sort_unstable();
        let at = |part: usize| delays.get((delays.len().saturating_sub(1)) * part / 10).copied().unwrap_or(0);
        let present = |n: u32| seen.get(n as usize).is_some_and(Option::is_some);
        let gaps = (0..sent).filter(|n| !present(*n) && (*n == 0 || present(n - 1))).count();
        let width = sent.div_ceil(StepReceived::PARTS).max(1);
        StepReceived {
            datagrams: u32::try_from(delays.len()).unwrap_or(u32::MAX),
            span_ns: self.last_ns.saturating_sub(self.first_ns),
            duplicates: self.duplicates,
            reordered: self.reordered,
            gaps: u32::try_from(gaps).unwrap_or(u32::MAX),
            first_missing: (0..sent).find(|n| !present(*n)),
            socket_drops,
            min_delay_ns: at(0),
            delays_ns: [at(1), at(5), at(9)],
            parts: (0..sent.div_ceil(width)).map(|part| self.part(part * width, width, seen)).collect(),
        }
    }

    fn part(&self, from: u32, width: u32, seen: &[Option<(u64, i64)>]) -> StepPart {
        let within = seen.iter().skip(from as usize).take(width as usize).flatten();
        let mut delays: Vec<i64> = within.clone().map(|(_, delay)| *delay).collect();
        delays.sort_unstable();
        StepPart {
            from,
            received: u32::try_from(delays.len()).unwrap_or(u32::MAX),
            last_ns: within.map(|(at, _)| at.saturating_sub(self.first_ns)).max().unwrap_or(0),
            delay_ns: delays.get(delays.len() / 2).copied().unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: ProfileStep =
        ProfileStep { id: 1, datagrams: 1000, datagram_bytes: 1472, gap_ns: 1_000_000, stop_above_us: 8_000 };

    fn arrivals(delays_ms: impl Iterator<Item = (u32, i64)>) -> Arrivals {
        let mut arrivals = Arrivals::new(1);
        for (n, ms) in delays_ms {
            let delay = ms * 1_000_000;
            arrivals.take(n, u64::from(n) * 1_000_000 + delay as u64, delay, delay, Some(&STEP));
        }
        arrivals
    }

    #[test]
    fn an_account_counts_what_is_missing_late_and_twice() {
        let arrivals = arrivals([(0, 0), (1, 0), (4, 0), (3, 1), (3, 1), (6, 2)].into_iter());
        let account = arrivals.account(8, 0);
        assert_eq!((account.datagrams, account.duplicates, account.reordered), (5, 1, 1));
        assert_eq!((account.gaps, account.first_missing), (3, Some(2)));
        assert_eq!(account.parts.len(), 8);
        assert_eq!(account.parts[6], StepPart { from: 6, received: 1, last_ns: 8_000_000, delay_ns: 2_000_000 });
        assert!(!arrivals.is_enough());
    }

    #[test]
    fn a_long_queue_and_much_loss_are_enough() {
        assert!(!arrivals((0..60).map(|n| (n, 9))).is_enough());
        assert!(arrivals((0..70).map(|n| (n, 9))).is_enough());
        assert!(!arrivals((0..400).map(|n| (n, 7))).is_enough());
        assert!(arrivals((0..200).step_by(2).map(|n| (n, 0))).is_enough());
        assert!(!arrivals((0..900).filter(|n| n % 20 > 0).map(|n| (n, 0))).is_enough());
    }
}
