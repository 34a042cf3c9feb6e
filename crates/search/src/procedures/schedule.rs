//! Every trial of a benchmark and the time of it all, before anything is sent: what `--dry-run` prints.
//!
//! Where a procedure decides as it goes, there are two numbers: the most it can take by its limits, and what is to be
//! expected. The latter is no rule of thumb: the procedure itself is run, on a device that exists only in numbers and
//! carries a good third of what is offered.

use super::back_to_back::{BackToBack, BackToBackPlan, BurstSeen};
use super::{loss, throughput};
use crate::search::{Search, Step};
use narrows_model::forwarding::plan::Row;
use narrows_model::forwarding::{ForwardingPlan, Test};
use narrows_model::run::search::{Observation, SearchPlan};
use std::time::Duration;

/// What a trial takes beside its load, its residue and its rest: devices are opened, counters read. An allowance.
const SETUP_MS: u64 = 300;
/// How long the tester is looked at alone, for each row.
pub const QUALIFY_MS: u64 = 1_000;
/// The device in numbers carries this part of the most that is offered: no round part of anything, so that no search finds
/// it by luck.
const CARRIES: f64 = 0.371;
/// And its queue holds so many frames.
const QUEUE_FRAMES: f64 = 1_024.0;
/// The longest rehearsal of a search.
const REHEARSALS: u32 = 100_000;

/// The trials of one test of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheduled {
    /// The test.
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
#[must_use]
pub fn total(schedule: &[Scheduled]) -> (u64, u64) {
    schedule.iter().fold((0, 0), |(expected, most), one| {
        (expected.saturating_add(one.expected_ms), most.saturating_add(one.at_most_ms))
    })
}

/// Every test of every row, in the order in which they are made. What a row turns out not to need (bursts of a size that
/// reached the line rate) is in it: before anything is sent nobody knows.
#[must_use]
pub fn schedule(plan: &ForwardingPlan) -> Vec<Scheduled> {
    plan.rows().into_iter().flat_map(|row| of_row(plan, row)).collect()
}

/// What of a plan cannot be made, a sentence each: all set-ups are tried for each row. Empty where all can. To be asked before
/// anything runs, after the plan file was read: it knows the words, this knows what follows from their values.
#[must_use]
pub fn check(plan: &ForwardingPlan) -> Vec<String> {
    let mut wrong = Vec::new();
    for row in plan.rows() {
        let name = row.size.map_or_else(|| "the mix".to_owned(), |size| format!("{size} B"));
        let mut note = |test: &str, outcome: Result<SearchPlan, String>| {
            if let Err(why) = outcome {
                wrong.push(format!("{test} of traffic[{}], {name}: {why}", row.traffic));
            }
        };
        if let Some(test) = &plan.tests.throughput {
            note("throughput", throughput::search_plan(plan, test, row, None));
        }
        if let Some(test) = &plan.tests.loss {
            note("loss", loss::search_plan(plan, test, row, None));
        }
    }
    wrong
}

fn of_row(plan: &ForwardingPlan, row: Row) -> Vec<Scheduled> {
    let overhead_ms = overhead_ms(plan);
    let tests = &plan.tests;
    let fixed = |test: Test, trials: u32, each_ms: u64| {
        let ms = u64::from(trials).saturating_mul(each_ms.saturating_add(overhead_ms));
        of(test, row, (trials, ms), (trials, ms))
    };
    let mut list = vec![fixed(Test::Qualification, 1, QUALIFY_MS)];
    if let Some(test) = &tests.throughput {
        if let Ok(search) = throughput::search_plan(plan, test, row, None) {
            let shortest_ms = test.goals.iter().map(|goal| goal.initial_trial_ms).min().unwrap_or(1).max(1);
            list.push(searched(Test::Throughput, row, &search, shortest_ms, overhead_ms));
        }
        let each_ms = test.goals.first().map_or(0, |goal| goal.final_trial_ms);
        list.push(fixed(Test::Confirmation, test.confirm, each_ms));
    }
    if let Some(test) = tests.latency.as_ref().filter(|_| plan.one_clock()) {
        list.push(fixed(Test::Latency, test.repetitions, test.duration_ms));
    }
    if let Some(test) = &tests.loss
        && let Ok(search) = loss::search_plan(plan, test, row, None)
    {
        let loads = loss::loads(test.step);
        let most_ms = u64::from(loads).saturating_mul(test.duration_ms.saturating_add(overhead_ms));
        let expected = rehearse(&search, overhead_ms);
        list.push(of(Test::Loss, row, expected, (loads, most_ms)));
    }
    if let Some(test) = &tests.back_to_back
        && let Some(most_pps) = plan.most_pps(row)
        && let Ok(bursts) = BackToBackPlan::of(plan, test, row, Some(most_pps * CARRIES))
    {
        list.push(of_bursts(&bursts, row, overhead_ms));
    }
    if let Some(test) = &tests.recovery {
        list.push(fixed(Test::Recovery, test.repetitions, test.overload_ms.saturating_add(test.after_ms)));
    }
    if let Some(test) = &tests.reset {
        list.push(fixed(Test::Reset, 1, test.within_ms));
    }
    if let Some(test) = &tests.worst_case {
        list.push(fixed(Test::WorstCase, test.repetitions, test.duration_ms));
    }
    list.retain(|one| one.most_trials > 0);
    list
}

const fn of(test: Test, row: Row, expected: (u32, u64), most: (u32, u64)) -> Scheduled {
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
#[must_use]
pub const fn overhead_ms(plan: &ForwardingPlan) -> u64 {
    SETUP_MS.saturating_add(plan.residue_ms).saturating_add(plan.rest_ms)
}

fn searched(test: Test, row: Row, search: &SearchPlan, shortest_ms: u64, overhead_ms: u64) -> Scheduled {
    let most = search.max_search_ms / shortest_ms.saturating_add(overhead_ms).max(1);
    let most = u32::try_from(most).unwrap_or(u32::MAX).clamp(1, search.max_trials);
    // A trial is begun where its load ends in time; what follows the load may go beyond.
    of(test, row, rehearse(search, overhead_ms), (most, search.max_search_ms.saturating_add(overhead_ms)))
}

/// Trials and time of a search on the device in numbers.
fn rehearse(plan: &SearchPlan, overhead_ms: u64) -> (u32, u64) {
    let Ok(mut search) = Search::new(plan) else { return (0, 0) };
    let carries_pps = plan.max_load_pps * CARRIES;
    let (mut now, mut trials) = (Duration::ZERO, 0);
    while let Step::Trial { load_pps, duration } = search.next(now) {
        trials += 1;
        let seconds = duration.as_secs_f64();
        let effective = duration.saturating_add(Duration::from_millis(overhead_ms));
        // Rates times seconds, far below 2^63.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let (due, through) = ((load_pps * seconds).round() as u64, (carries_pps * seconds).floor() as u64);
        now = now.saturating_add(effective);
        let seen = Observation {
            intended: due,
            offered: due,
            sent: due,
            received: due.min(through),
            effective_ms: u64::try_from(effective.as_millis()).unwrap_or(u64::MAX),
            invalid: None,
        };
        if trials >= REHEARSALS || search.observe(seen, now).is_err() {
            break;
        }
    }
    (trials, u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}

/// Bursts on the device in numbers.
fn of_bursts(plan: &BackToBackPlan, row: Row, overhead_ms: u64) -> Scheduled {
    let (mut trials, mut frames_sent) = (0_u32, 0.0);
    if let Ok(mut test) = BackToBack::new(plan) {
        while let Some(frames) = test.ask() {
            trials += 1;
            frames_sent += frames as f64;
            // Below the frames of the burst, or equal to them.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let received = (QUEUE_FRAMES + frames as f64 * CARRIES).floor().min(frames as f64) as u64;
            let seen = BurstSeen { sent: frames, received, offered_pps: plan.max_pps, invalid: None };
            if trials >= REHEARSALS || test.observe(&seen).is_err() {
                break;
            }
        }
    }
    let most = plan.repetitions.saturating_mul(plan.most_trials());
    let longest_ms = plan.most_frames as f64 / plan.max_pps * 1e3;
    let ms = |load_ms: f64, trials: u32| {
        // A time of at most 30 s times a number of trials.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let load_ms = load_ms.ceil() as u64;
        load_ms.saturating_add(u64::from(trials).saturating_mul(overhead_ms))
    };
    let expected_ms = ms(frames_sent / plan.max_pps * 1e3, trials);
    of(Test::BackToBack, row, (trials, expected_ms), (most, ms(longest_ms * f64::from(most), most)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::procedures::device::{goals, plan};
    use narrows_model::forwarding::{
        BackToBackTest, LatencyTest, LossTest, RecoveryTest, ResetTest, ThroughputTest, WorstCaseTest,
    };

    fn whole() -> ForwardingPlan {
        let mut plan = plan();
        plan.tests.throughput = Some(ThroughputTest { goals: goals(), confirm: 5, max_search_ms: 120_000 });
        plan.tests.latency = Some(LatencyTest { duration_ms: 5_000, repetitions: 3 });
        plan.tests.loss = Some(LossTest { step: 0.1, duration_ms: 1_000 });
        plan.tests.back_to_back = Some(BackToBackTest { most_frames: 1_000_000, repetitions: 10 });
        plan.tests.recovery = Some(RecoveryTest { overload_ms: 5_000, after_ms: 5_000, repetitions: 2 });
        plan.tests.reset = Some(ResetTest { command: vec!["true".to_owned()], within_ms: 60_000 });
        plan.tests.worst_case = Some(WorstCaseTest { duration_ms: 1_000, repetitions: 3 });
        plan
    }

    fn one(list: &[Scheduled], test: Test, size: Option<u32>) -> Scheduled {
        *list.iter().find(|one| one.test == test && one.size == size).expect("scheduled")
    }

    #[test]
    fn what_is_fixed_is_exact() {
        let list = schedule(&whole());
        // 300 ms of set-up, 200 of residue, 100 of rest.
        let latency = one(&list, Test::Latency, Some(64));
        assert_eq!((latency.trials, latency.expected_ms, latency.at_most_ms), (3, 3 * 5_600, 3 * 5_600));
        let recovery = one(&list, Test::Recovery, Some(64));
        assert_eq!((recovery.trials, recovery.expected_ms), (2, 2 * 10_600));
        assert_eq!(one(&list, Test::Confirmation, None).trials, 5, "the mix, too");
        assert_eq!(one(&list, Test::WorstCase, Some(1518)).expected_ms, 3 * 1_600);
    }

    #[test]
    fn what_is_decided_on_the_way_has_a_limit_and_an_expectation() {
        let list = schedule(&whole());
        let search = one(&list, Test::Throughput, Some(64));
        assert!((10..=60).contains(&search.trials), "{search:?}");
        assert!(search.expected_ms < search.at_most_ms && search.at_most_ms == 120_600, "{search:?}");
        // 100 to 40 % lose, 30 and 20 % do not.
        let curve = one(&list, Test::Loss, Some(64));
        assert_eq!((curve.trials, curve.most_trials), (9, 10));
        let bursts = one(&list, Test::BackToBack, Some(64));
        assert!((50..=200).contains(&bursts.trials) && bursts.most_trials > bursts.trials, "{bursts:?}");
        assert!(!list.iter().any(|one| one.test == Test::BackToBack && one.size.is_none()), "no bursts of a mix");
    }

    #[test]
    fn every_row_comes_in_the_order_of_the_plan_and_the_total_is_its_sum() {
        let list = schedule(&whole());
        let mut sizes: Vec<Option<u32>> = list.iter().map(|one| one.size).collect();
        sizes.dedup();
        assert_eq!(sizes, [Some(64), Some(512), Some(1518), None]);
        let (expected, most) = total(&list);
        assert_eq!(expected, list.iter().map(|one| one.expected_ms).sum::<u64>());
        assert!(list.iter().all(|one| one.expected_ms <= one.at_most_ms && one.trials <= one.most_trials));
        assert!(expected < most);
    }

    #[test]
    fn what_leaves_nothing_to_search_is_told_before_anything_runs() {
        assert_eq!(check(&whole()), [""; 0]);
        let slow = ForwardingPlan { max_load_pps: Some(50.0), ..whole() };
        let wrong = check(&slow);
        assert_eq!(wrong.len(), 4, "throughput of each row; a loss curve has 50 frames a trial: {wrong:?}");
        assert_eq!(
            wrong[0],
            "throughput of traffic[0], 64 B: lowest load is 100 packets/s, but must be below the highest, 50 packets/s"
        );
    }

    #[test]
    fn a_plan_file_is_scheduled() {
        let file = narrows_wire::forwarding_plan::parse(
            r#"
            name = "router"
            link = "10G"
            generator = { device = "gen0", address = "198.18.0.2", gateway = "198.18.0.1" }
            receiver = { device = "rcv0", address = "198.19.0.2", gateway = "198.19.0.1" }
            "#,
        );
        let plan = file.expect("a plan").plan;
        assert_eq!(check(&plan), [""; 0]);
        let (expected, most) = total(&schedule(&plan));
        // Three sizes in minutes; the RFC's own values take a day and more.
        assert!((180_000..900_000).contains(&expected), "{expected} ms");
        assert!(most > expected, "{most} ms");
    }

    #[test]
    fn a_plan_without_tests_only_qualifies_the_tester() {
        let list = schedule(&plan());
        assert!(list.iter().all(|one| one.test == Test::Qualification));
        assert_eq!(list.len(), 4);
    }
}
