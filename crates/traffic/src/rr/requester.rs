//! What each requesting stream has, whatever carries its transactions: the plan, the deadline, the schedule, the latencies.

use super::outcome::{Leaves, Outcome};
use super::pace::Pace;
use super::tally::Tally;
use crate::common::limits::{CALL_LIMIT, GRACE};
use crate::common::threads::Control;
use narrows_model::RrPlan;
use narrows_stats::Histogram;
use std::time::{Duration, Instant};

/// The wait after an immediate failure, so that a closed port is not flooded.
pub(super) const BACKOFF: Duration = Duration::from_millis(10);
/// A stream ends after this many immediate failures in a row.
pub(super) const MAX_FAILURES: u32 = 100;

/// The position of a stream among all of its trial.
#[derive(Debug, Clone, Copy)]
pub(super) struct Position {
    pub(super) id: u32,
    pub(super) index: usize,
    pub(super) count: usize,
}

/// The context of one requesting stream.
pub(super) struct Requester<'a> {
    pub(super) id: u32,
    pub(super) plan: &'a RrPlan,
    pub(super) tally: &'a Tally,
    control: &'a Control<'a>,
    /// No request begins at or after it.
    pub(super) deadline: Instant,
    /// Latencies of earlier requests are not in the distribution.
    pub(super) counted_from: Instant,
    pub(super) pace: Option<Pace>,
    latency: Histogram,
    immediate_failures: u32,
    pub(super) notes: Vec<String>,
}

impl<'a> Requester<'a> {
    pub(super) fn new(
        Position { id, index, count }: Position,
        plan: &'a RrPlan,
        tally: &'a Tally,
        control: &'a Control<'a>,
        start: Instant,
    ) -> Self {
        Self {
            id,
            plan,
            tally,
            control,
            deadline: start + Duration::from_millis(plan.duration_ms),
            counted_from: start + Duration::from_millis(plan.omit_ms),
            pace: plan.rate_per_s.map(|rate| Pace::new(rate, count, index, start)),
            latency: Histogram::new(),
            immediate_failures: 0,
            notes: Vec::new(),
        }
    }

    /// The outcome, if the trial was ended.
    pub(super) fn ended(&self) -> Option<Outcome> {
        if self.control.stop.is_set() {
            return Some(Outcome::Stopped);
        }
        self.control.over.is_set().then_some(Outcome::Complete)
    }

    /// Whether the next request may be sent now.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        now < self.deadline && self.pace.as_ref().is_none_or(|pace| pace.due() <= now)
    }

    /// The instant from which the latency of the request that is sent now counts: when it was due. Counted from the sending,
    /// requests delayed by a slow answer would look fast (coordinated omission).
    pub(super) fn begin(&mut self, now: Instant) -> Instant {
        self.pace.as_mut().map_or(now, Pace::take)
    }

    /// The longest wait until the next request is due; `None` if there is no next one.
    pub(super) fn until_due(&self, now: Instant) -> Option<Duration> {
        if now >= self.deadline {
            return None;
        }
        let due = self.pace.as_ref().map_or(now, Pace::due).min(self.deadline);
        Some(due.saturating_duration_since(now).min(CALL_LIMIT))
    }

    /// Whether the time for the last answers is over, too.
    pub(super) fn is_late(&self, now: Instant) -> bool {
        now >= self.deadline + GRACE
    }

    /// A transaction is complete.
    #[inline]
    pub(super) fn complete(&mut self, origin: Instant, now: Instant) {
        let nanos = nanos(now.saturating_duration_since(origin));
        if origin >= self.counted_from {
            self.latency.record(nanos);
        }
        self.tally.complete(nanos);
        self.immediate_failures = 0;
    }

    /// A transaction failed immediately; true when the stream has to end.
    pub(super) fn fail_immediately(&mut self) -> bool {
        self.tally.fail(1);
        self.immediate_failures += 1;
        self.immediate_failures >= MAX_FAILURES
    }

    /// What the thread leaves. Requests that were due and never sent are in a note, for they have no latency.
    pub(super) fn leave(mut self, outcome: Outcome, connect: Histogram) -> Leaves {
        if let (Some(pace), Outcome::Complete | Outcome::Unanswered(_)) = (&self.pace, &outcome)
            && let missed @ 1.. = pace.missed(self.deadline)
        {
            self.notes.push(format!(
                "{missed} requests were due and could not be made before the end, for the ones before them took too long: \
                 their latencies are missing, and they were the longest"
            ));
        }
        Leaves { outcome, latency: self.latency, connect, local: None, notes: self.notes }
    }
}

/// Whole nanoseconds.
pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
