//! The most that a server answers, whatever its client sends and however long it was silent before.

use narrows_model::RrPlan;
use narrows_sys::clock;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Maximum credit that idle time accumulates.
const BURST: Duration = Duration::from_millis(50);
/// Requests that came too fast wait this long before the next look at the clock.
pub(super) const AGAIN: Duration = Duration::from_millis(1);
/// Headers of an answer, as in the rate of the plan.
const HEADER_BYTES: f64 = 64.0;

/// The answers of all streams of a trial. A token bucket: requests on their way and time before the first one give no credit.
#[derive(Debug)]
pub(super) struct Budget(Option<Bucket>);

#[derive(Debug)]
struct Bucket {
    rate_per_s: f64,
    bytes_per_s_of_stream: u64,
    /// What may be answered, and when that was true.
    state: Mutex<(f64, Instant)>,
}

impl Budget {
    pub(super) fn new(plan: &RrPlan) -> Self {
        Self(plan.max_answers_per_s.map(|rate_per_s| {
            let bytes_per_s =
                rate_per_s * (f64::from(plan.response_bytes) + HEADER_BYTES) / f64::from(plan.streams.max(1));
            let bytes_per_s_of_stream = (bytes_per_s as u64).max(1_000);
            Bucket { rate_per_s, bytes_per_s_of_stream, state: Mutex::new((most(rate_per_s), clock::now())) }
        }))
    }

    /// Takes up to so many answers; how many may be given now.
    pub(super) fn take(&self, wanted: u64, now: Instant) -> u64 {
        let Some(bucket) = &self.0 else { return wanted };
        let mut state = bucket.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (left, since) = *state;
        let grown = bucket.rate_per_s * now.saturating_duration_since(since).as_secs_f64();
        let left = (left + grown).min(most(bucket.rate_per_s));
        let taken = wanted.min(left as u64);
        let left = left - taken as f64;
        *state = (left, now.max(since));
        taken
    }

    /// The share of one stream of the rate, for its socket: an answer alone may be long.
    pub(super) fn bytes_per_s_of_stream(&self) -> Option<u64> {
        self.0.as_ref().map(|bucket| bucket.bytes_per_s_of_stream)
    }
}

fn most(rate_per_s: f64) -> f64 {
    (rate_per_s * BURST.as_secs_f64()).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(rate: f64) -> Budget {
        Budget::new(&RrPlan { max_answers_per_s: Some(rate), streams: 4, outstanding: 1024, ..RrPlan::default() })
    }

    #[test]
    fn a_server_answers_no_faster_than_the_plan_and_a_silence_saves_up_a_burst_alone() {
        let (all, now) = (budget(100.0), clock::now());
        // Requests in flight and time before the first request give no credit.
        assert_eq!(all.take(5_000, now + Duration::from_secs(10)), 5);
        let mut answered = 0;
        for ms in 0..=2_000 {
            answered += all.take(5_000, now + Duration::from_millis(10_000 + ms));
        }
        assert!((199..=200).contains(&answered), "{answered}");
        assert_eq!(all.take(5_000, now + Duration::from_secs(22)), 5, "after ten seconds of silence");
        assert_eq!(all.take(5_000, now), 0, "a clock that another thread read earlier");
        assert_eq!(Budget::new(&RrPlan::default()).take(u64::MAX, now), u64::MAX);
    }

    #[test]
    fn long_answers_come_one_at_a_time() {
        let (slow, now) = (budget(0.1), clock::now());
        let at = |s| slow.take(9, now + Duration::from_secs(s));
        assert_eq!([0, 0, 5, 11, 100, 101].map(at), [1, 0, 0, 1, 1, 0]);
    }

    #[test]
    fn the_rate_of_bytes_is_shared_out_over_streams() {
        let plan = RrPlan { max_answers_per_s: Some(100.0), streams: 4, response_bytes: 936, ..RrPlan::default() };
        assert_eq!(Budget::new(&plan).bytes_per_s_of_stream(), Some(25_000));
        assert_eq!(Budget::new(&RrPlan::default()).bytes_per_s_of_stream(), None);
    }
}
