//! Every trial of a benchmark and the time of it all, before anything is sent: what `--dry-run` prints.
//!
//! Where a procedure decides as it goes, there are two numbers: the most it can take by its limits, and what is to be
//! expected. The latter is no rule of thumb: the procedure itself is run, on a device that exists only in numbers and
//! carries a good third of what is offered.

use crate::data::plan::Row;
use crate::data::{ForwardingPlan, Test};
use narrows_model::run::search::{Observation, SearchPlan};
use narrows_search::search::{Search, Step};
use std::time::Duration;

/// What a trial takes beside its load, its residue and its rest: devices are opened, counters read. An allowance.
const SETUP_MS: u64 = 300;
/// How long the tester is looked at alone, for each row.
pub(super) const QUALIFY_MS: u64 = 1_000;
/// The device in numbers carries this part of the most that is offered: no round part of anything, so that no search finds
/// it by luck.
pub(super) const CARRIES: f64 = 0.371;
/// And its queue holds so many frames.
pub(super) const QUEUE_FRAMES: f64 = 1_024.0;
/// Maximum number of trials in a simulated search.
pub(super) const REHEARSALS: u32 = 100_000;

/// The trials of one test of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheduled {
    pub test: Test,
    /// Index into [`ForwardingPlan::traffic`].
    pub traffic: usize,
    /// Frame size with FCS; `None`: the mix.
    pub size: Option<u32>,
    /// Trials to be expected.
    pub trials: u32,
    /// The most trials, invalid ones that are made again left out.
    pub most_trials: u32,
    /// What they take at most.
    pub at_most_ms: u64,
    /// What they are expected to take.
    pub expected_ms: u64,
}

/// Expected and longest time of a schedule, ms.
pub fn total(schedule: &[Scheduled]) -> (u64, u64) {
    schedule.iter().fold((0, 0), |(expected, most), one| {
        (expected.saturating_add(one.expected_ms), most.saturating_add(one.at_most_ms))
    })
}

/// Trials whose number and length are known.
pub(super) fn fixed(plan: &ForwardingPlan, test: Test, row: Row, trials: u32, each_ms: u64) -> Scheduled {
    let ms = u64::from(trials).saturating_mul(each_ms.saturating_add(overhead_ms(plan)));
    scheduled(test, row, (trials, ms), (trials, ms))
}

/// Trials and time, expected and at most.
pub(super) const fn scheduled(test: Test, row: Row, expected: (u32, u64), most: (u32, u64)) -> Scheduled {
    // What is expected is never more than the limits let through.
    let trials = if expected.0 < most.0 { expected.0 } else { most.0 };
    let expected_ms = if expected.1 < most.1 { expected.1 } else { most.1 };
    Scheduled {
        test,
        traffic: row.traffic,
        size: row.size,
        trials,
        most_trials: most.0,
        at_most_ms: most.1,
        expected_ms,
    }
}

/// What each trial takes beside its load.
pub(super) const fn overhead_ms(plan: &ForwardingPlan) -> u64 {
    SETUP_MS.saturating_add(plan.conditions.residue_ms).saturating_add(plan.conditions.rest_ms)
}

/// Trials and time of a search on the device in numbers.
pub(super) fn rehearse(plan: &SearchPlan, overhead_ms: u64) -> (u32, u64) {
    let Ok(mut search) = Search::new(plan) else { return (0, 0) };
    let carries_pps = plan.max_load_pps * CARRIES;
    let (mut now, mut trials) = (Duration::ZERO, 0);
    while let Step::Trial { load_pps, duration } = search.next(now) {
        trials += 1;
        let seconds = duration.as_secs_f64();
        let effective = duration.saturating_add(Duration::from_millis(overhead_ms));
        // Rates times seconds, far below 2^63.
        let (due, through) = ((load_pps * seconds).round() as u64, (carries_pps * seconds).floor() as u64);
        now = now.saturating_add(effective);
        let seen = Observation {
            intended: due,
            offered: due,
            sent: due,
            received: due.min(through),
            effective_ms: u64::try_from(effective.as_millis()).unwrap_or(u64::MAX),
            ..Observation::default()
        };
        if trials >= REHEARSALS || search.observe(seen, now).is_err() {
            break;
        }
    }
    (trials, u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}
