//! What each requesting stream has, whatever carries its transactions: the plan, the deadline, the schedule, the latencies.

use super::budget::Budget;
use super::pace::Pace;
use super::tally::Tally;
use crate::common::limits::{CALL_LIMIT, GRACE};
use crate::common::outcome::Outcome;
use crate::common::threads::Control;
use narrows_model::RrPlan;
use narrows_stats::Histogram;
use std::time::{Duration, Instant};

/// The wait after an immediate failure, so that a closed port is not flooded.
pub(super) const BACKOFF: Duration = Duration::from_millis(10);
/// A stream ends after this many immediate failures in a row.
pub(super) const MAX_FAILURES: u32 = 100;

/// The first byte of a response is never that of a text answer.
pub(super) static FILL: [u8; 64 << 10] = [0xA5; 64 << 10];

/// One stream's thread, whatever it does.
#[derive(Debug, Clone, Copy)]
pub(super) struct Worker<'a> {
    pub(super) plan: &'a RrPlan,
    pub(super) control: &'a Control<'a>,
    pub(super) tally: &'a Tally,
    /// What all responders may answer.
    pub(super) budget: &'a Budget,
    pub(super) id: u32,
    /// The position of the stream among all of its trial …
    pub(super) index: usize,
    /// … and how many these are.
    pub(super) count: usize,
}

/// What a stream's thread leaves.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) outcome: Outcome,
    pub(super) latency: Histogram,
    /// Empty unless each transaction has a connection of its own.
    pub(super) connect: Histogram,
    /// This end's address, where the stream found it out.
    pub(super) local: Option<String>,
    /// What went otherwise than planned without ending the stream, without the stream's name.
    pub(super) notes: Vec<String>,
}

impl Left {
    /// Of a stream that took no latencies.
    pub(super) const fn of(outcome: Outcome, notes: Vec<String>) -> Self {
        Self { outcome, latency: Histogram::new(), connect: Histogram::new(), local: None, notes }
    }
}

/// A sentence for each count that is not 0.
pub(super) fn notes<const N: usize>(counts: [(u64, &str); N]) -> impl Iterator<Item = String> {
    counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"))
}

/// The context of one requesting stream.
pub(super) struct Requester<'a> {
    pub(super) worker: Worker<'a>,
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
    pub(super) fn new(worker: Worker<'a>, start: Instant) -> Self {
        let plan = worker.plan;
        Self {
            worker,
            deadline: start + Duration::from_millis(plan.duration_ms),
            counted_from: start + Duration::from_millis(plan.omit_ms),
            pace: plan.rate_per_s.map(|rate| Pace::new(rate, worker.count, worker.index, start)),
            latency: Histogram::new(),
            immediate_failures: 0,
            notes: Vec::new(),
        }
    }

    /// The outcome, if the trial was ended.
    pub(super) fn ended(&self) -> Option<Outcome> {
        self.worker.control.ended()
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
        self.worker.tally.complete(nanos);
        self.immediate_failures = 0;
    }

    /// A transaction failed immediately; true when the stream has to end.
    pub(super) fn fail_immediately(&mut self) -> bool {
        self.worker.tally.fail(1);
        self.immediate_failures += 1;
        self.immediate_failures >= MAX_FAILURES
    }

    /// What the thread leaves. Requests that were due and never sent are in a note, for they have no latency.
    pub(super) fn leave(mut self, outcome: Outcome, connect: Histogram) -> Left {
        if let (Some(pace), Outcome::Complete | Outcome::Incomplete(_)) = (&self.pace, &outcome)
            && let missed @ 1.. = pace.missed(self.deadline)
        {
            self.notes.push(format!(
                "{missed} requests were due but not sent, because earlier ones took too long; their latencies, the \
                longest, are missing"
            ));
        }
        Left { outcome, latency: self.latency, connect, local: None, notes: self.notes }
    }
}

/// Whole nanoseconds.
pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
