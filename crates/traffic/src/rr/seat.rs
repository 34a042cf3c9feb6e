//! What each requester has, whatever carries its transactions: the plan, the times, the schedule, the book of latencies.

use super::outcome::{Leaves, Outcome};
use super::pace::Pace;
use super::tally::Tally;
use crate::engine::{CALL_LIMIT, GRACE};
use crate::stop::Stop;
use narrows_model::RrPlan;
use narrows_stats::Histogram;
use std::time::{Duration, Instant};

/// After a failure at once, the next try waits so long: a closed port is not hammered.
pub(super) const BACKOFF: Duration = Duration::from_millis(10);
/// So many failures at once in a row, without one transaction between them, and the stream is given up.
pub(super) const PATIENCE: u32 = 100;

/// One requesting stream's place in the trial.
pub(super) struct Seat<'a> {
    pub(super) id: u32,
    pub(super) plan: &'a RrPlan,
    pub(super) tally: &'a Tally,
    pub(super) stop: &'a Stop,
    /// The trial's end for another reason than the user's.
    pub(super) over: &'a Stop,
    /// No request begins at or after it.
    pub(super) deadline: Instant,
    /// Requests before it are not in the book.
    pub(super) counted_from: Instant,
    pub(super) pace: Option<Pace>,
    latency: Histogram,
    failed_at_once: u32,
    pub(super) notes: Vec<String>,
}

impl<'a> Seat<'a> {
    pub(super) fn new(
        (id, position, streams): (u32, usize, usize),
        plan: &'a RrPlan,
        tally: &'a Tally,
        (stop, over): (&'a Stop, &'a Stop),
        start: Instant,
    ) -> Self {
        Self {
            id,
            plan,
            tally,
            stop,
            over,
            deadline: start + Duration::from_millis(plan.duration_ms),
            counted_from: start + Duration::from_millis(plan.omit_ms),
            pace: plan.rate_per_s.map(|rate| Pace::new(rate, streams, position, start)),
            latency: Histogram::new(),
            failed_at_once: 0,
            notes: Vec::new(),
        }
    }

    /// The end that somebody asked for, if one was.
    pub(super) fn told(&self) -> Option<Outcome> {
        if self.stop.is_set() {
            return Some(Outcome::Stopped);
        }
        self.over.is_set().then_some(Outcome::Complete)
    }

    /// Whether the next request may begin now.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        now < self.deadline && self.pace.as_ref().is_none_or(|pace| pace.due() <= now)
    }

    /// The instant from which the latency of the request that begins now counts: when it was due. Were it counted from when it
    /// is sent, the requests that a slow answer holds up would look fast (coordinated omission).
    pub(super) fn begin(&mut self, now: Instant) -> Instant {
        self.pace.as_mut().map_or(now, Pace::take)
    }

    /// How long a wait may last that a request coming due ends; `None` where none will.
    pub(super) fn until_due(&self, now: Instant) -> Option<Duration> {
        if now >= self.deadline {
            return None;
        }
        let due = self.pace.as_ref().map_or(now, Pace::due).min(self.deadline);
        Some(due.saturating_duration_since(now).min(CALL_LIMIT))
    }

    /// Whether the time for the last answers is over as well.
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
        self.failed_at_once = 0;
    }

    /// A transaction failed without delay; true when it is enough.
    pub(super) fn fail_at_once(&mut self) -> bool {
        self.tally.fail(1);
        self.failed_at_once += 1;
        self.failed_at_once >= PATIENCE
    }

    /// What the thread leaves. Requests that were due and never made are told: no latency of theirs is in the book.
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
