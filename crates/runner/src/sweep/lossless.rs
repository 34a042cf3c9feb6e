//! The highest rate without loss of one point: a quick search below the rate that its trial sent.
//!
//! Trials of a second; a rate passes where they lose nothing for more than half of three seconds, and bounds within 2 % of
//! each other are near enough. A point has no more than [`LONGEST_MS`] a flow: who wants the NDR proper asks `narrows search`.

use crate::ends::{Ends, EndsError};
use crate::search;
use narrows_model::run::Ending;
use narrows_model::run::search::{Goal, Observation, Outcome, SearchPlan, SearchRecord, TesterLimit};
use narrows_model::run::sweep::Lossless;
use narrows_model::words::units::{bps, micros};
use narrows_model::{Place, SweepFigures, UdpPlan};
use narrows_views::search::exceeded;

/// The longest search of one flow.
pub(super) const LONGEST_MS: u64 = 25_000;
const TRIAL_MS: u64 = 1_000;
const SUM_MS: u64 = 3_000;
const WIDTH: f64 = 0.02;
/// The lowest rate that is tried, below what arrived in the trial at full rate.
const BELOW: f64 = 50.0;
/// A trial of a second needs a datagram to say anything.
const MIN_PPS: f64 = 1.0;

/// Searches for the flow of these figures. `load` has the rates of the other flow, where there is one.
/// Errors: where the sweep must end; why there is no such rate is in the answer's remark.
pub(super) fn find(
    ends: &mut dyn Ends,
    load: &UdpPlan,
    seen: &SweepFigures,
    size_bytes: u32,
) -> Result<Lossless, EndsError> {
    let nothing = |why: &str| Ok(Lossless { remark: Some(why.to_owned()), ..Lossless::default() });
    let (Some(sent), Some(got)) = (seen.sending_pps, seen.receiving_pps) else {
        return nothing("no search: the record of one end is missing");
    };
    if got <= 0.0 {
        return nothing("no search: nothing arrived");
    }
    let bits = f64::from(size_bytes) * 8.0;
    let counted_ms = load.duration_ms.saturating_sub(load.omit_ms);
    let (least, most) = ((got / BELOW).max(MIN_PPS), sent.max(got));
    // What waited in a queue at the end was not carried.
    let whole = Observation {
        received: (got * counted_ms as f64 / 1e3) as u64,
        delay_growth_us: seen.delay_growth_us,
        ..Observation::default()
    };
    let queued = plan(least, most).least_growth().map_or(0, |part| whole.with_queue(part, counted_ms).queued);
    let without_loss = seen.lost == Some(0) && seen.unsent == Some(0) && queued == 0;
    if without_loss && 2 * counted_ms > SUM_MS {
        let remark = Some("no loss at the maximum rate sent".to_owned());
        return Ok(in_bits(Lossless { lower_pps: Some(sent), remark, ..Lossless::default() }, bits));
    }
    if least >= most {
        return nothing("the rate is too low for a search");
    }
    let searched = search::search(ends, load, seen.flow, &plan(least, most), &mut |_, _, _| {})
        .map_err(|error| EndsError::Failed(error.to_string()))?;
    match searched.ending {
        Ending::Complete => {
            let found = of(&searched.record, bits, least * bits);
            Ok(in_bits(if without_loss { at_least(sent, counted_ms, found) } else { found }, bits))
        }
        Ending::Interrupted => Err(EndsError::Interrupted),
        // The trial itself went well: without its search the point is worth keeping, if the other end is still there.
        Ending::Failed(why) => match ends.inventory(Place::Server) {
            Ok(_) => nothing(&format!("the search failed: {why}")),
            Err(_) => Err(EndsError::Lost(why)),
        },
    }
}

fn plan(least: f64, most: f64) -> SearchPlan {
    let goal = Goal {
        initial_trial_ms: TRIAL_MS,
        final_trial_ms: TRIAL_MS,
        duration_sum_ms: SUM_MS,
        width: WIDTH,
        ..Goal::ndr()
    };
    SearchPlan {
        goals: vec![goal],
        max_search_ms: LONGEST_MS,
        preceding_targets: 1,
        // A rate that the sender does not keep once is not waited for.
        invalid_retries: 1,
        sustained: true,
        ..SearchPlan::between(least, most)
    }
}

fn of(record: &SearchRecord, bits: f64, least_bps: f64) -> Lossless {
    let Some((result, goal)) = record.results.first().zip(record.plan.goals.first()) else {
        return Lossless::default();
    };
    let remark = match result.outcome {
        Outcome::Found => exceeded(goal, result, record).map(|it| {
            format!(
                "lossless is more than the path sustains, {} at most: in {} a queue took in the excess, and the delay grew by {}",
                bps(it.sustained_pps * bits),
                micros(it.trial_ms * 1000),
                micros(it.grew_us)
            )
        }),
        Outcome::MinLoadFails => Some(format!("datagrams are lost even at {}", bps(least_bps))),
        Outcome::MaxLoadPasses => Some("no loss at the maximum rate sent, with pacing".to_owned()),
        Outcome::Unfinished => {
            Some(format!("a search of {} did not reach the width of 2 %", micros(LONGEST_MS * 1000)))
        }
        Outcome::TesterLimited(TesterLimit::Unsent) => {
            Some("limited by the sender: its socket refused datagrams".to_owned())
        }
        Outcome::TesterLimited(TesterLimit::Invalid | TesterLimit::AtMaximum) => {
            Some("limited by the sender: above this it does not send at the rate that was asked for".to_owned())
        }
    };
    Lossless { lower_pps: result.lower_pps, upper_pps: result.upper_pps, remark, ..Lossless::default() }
}

/// The trial at full rate lost nothing: a search, whose trials are paced, does not bound the row below what the row shows.
fn at_least(sent: f64, trial_ms: u64, found: Lossless) -> Lossless {
    if found.lower_pps.is_some_and(|lower| lower >= sent) {
        return found;
    }
    Lossless {
        lower_pps: Some(sent),
        upper_pps: found.upper_pps.filter(|upper| *upper > sent),
        remark: Some(format!("no loss at the maximum rate sent, in one trial of {}", micros(trial_ms * 1000))),
        ..found
    }
}

fn in_bits(found: Lossless, bits: f64) -> Lossless {
    let of = |pps: Option<f64>| pps.map(|pps| pps * bits);
    Lossless { lower_bps: of(found.lower_pps), upper_bps: of(found.upper_pps), ..found }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::run::search::{GoalResult, LoadTrial};
    use narrows_search::Search;

    #[test]
    fn the_quick_search_is_sound_for_every_rate() {
        for (least, most) in [(1.0, 1.001), (20_000.0, 1e6), (1e6, 50e6)] {
            assert_eq!(plan(least, most).check(), Ok(()), "{least} to {most}");
        }
    }

    #[test]
    fn bounds_are_told_in_both_units_with_their_reason() {
        let plan = plan(1.0, 1e6);
        let mut record = Search::new(&plan).unwrap().record();
        let result = GoalResult {
            goal: "NDR".into(),
            outcome: Outcome::TesterLimited(TesterLimit::Unsent),
            lower_pps: Some(1_000.0),
            upper_pps: Some(1_020.0),
            conditional_throughput_pps: Some(1_000.0),
        };
        record.results = vec![result.clone()];
        let found = in_bits(of(&record, 800.0, 0.0), 800.0);
        assert_eq!((found.lower_bps, found.upper_bps), (Some(800_000.0), Some(816_000.0)));
        assert!(found.remark.is_some_and(|remark| remark.contains("limited by the sender")));
        record.results = vec![GoalResult { outcome: Outcome::MinLoadFails, lower_pps: None, ..result.clone() }];
        assert_eq!(of(&record, 800.0, 2e6).remark.as_deref(), Some("datagrams are lost even at 2.00 Mbit/s"));
        // 3 % more arrived than in the time in which it was sent: 1000 / 1.03.
        let seen =
            Observation { sent: 1_000, received: 1_000, delay_growth_us: Some(30_000), ..Observation::default() };
        record.trials = vec![LoadTrial { load_pps: 1_000.0, duration_ms: 1_000, ended_at_ms: 1_000, seen }];
        record.results = vec![GoalResult { outcome: Outcome::Found, ..result }];
        let remark = of(&record, 800.0, 0.0).remark.expect("more than the path sustains");
        assert!(remark.contains("than the path sustains, 777 kbit/s at most: in 1.00 s"), "{remark}");
    }

    #[test]
    fn what_passed_without_loss_is_the_least_that_is_lossless() {
        let found = |lower, upper| Lossless { lower_pps: lower, upper_pps: upper, ..Lossless::default() };
        let of = |lower, upper| {
            let it = at_least(1000.0, 1000, found(lower, upper));
            (it.lower_pps, it.upper_pps)
        };
        assert_eq!(of(Some(800.0), Some(816.0)), (Some(1000.0), None));
        assert_eq!(of(None, Some(1200.0)), (Some(1000.0), Some(1200.0)));
        assert_eq!(of(Some(1100.0), None), (Some(1100.0), None));
    }
}
