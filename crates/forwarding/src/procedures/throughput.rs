//! Throughput of one row (RFC 2544, section 26.1): how its search is set up, and the repetitions that confirm what it found.
//!
//! The search is that of the crate; here are its bounds. It never asks the tester for more than the tester was seen to carry
//! by itself: a search that ends there is *limited by the tester* and says of the device only that it carries as much.
//!
//! A result is one number of one afternoon. The repetitions say how much it moves: the load stays, and what arrives and what
//! is lost is summed up over them.

use super::loss::request;
use super::procedure::{Context, Keep, Known, Load, Procedure, Request, Seen, SetUp, max_pps, observation};
use super::schedule::{Scheduled, fixed, overhead_ms, rehearse, scheduled};
use crate::data::plan::Row;
use crate::data::{ForwardingPlan, ForwardingRecord, ForwardingTrial, SearchOfSize, Test, ThroughputTest};
use narrows_model::load::frames::FrameLoad;
use narrows_model::run::search::{Goal, GoalResult, LoadTrial, Observation, Outcome, SearchMethod, SearchPlan};
use narrows_search::classify::{Weighed, reduce};
use narrows_search::search::{Search, SearchError};

/// The lowest load, in parts of the highest: a device that carries less is none for this link.
const LOWEST: f64 = 1e-4;
/// Frames that the shortest trial holds at the lowest load, so that a lost one is a percent.
const MIN_FRAMES: f64 = 100.0;
/// The most trials of a search.
const MAX_TRIALS: u32 = 1_000;

/// The search of a row. `tester_pps` is what the tester alone carries of these frames.
/// Errors: one sentence: the plan has no such row, or its numbers leave nothing to search.
pub fn search_plan(
    plan: &ForwardingPlan,
    test: &ThroughputTest,
    row: Row,
    tester_pps: Option<f64>,
) -> Result<SearchPlan, String> {
    let most_pps = max_pps(plan, row)?;
    let max_load_pps = tester_pps.map_or(most_pps, |tester| tester.min(most_pps));
    let shortest_ms = test.goals.iter().map(|goal| goal.initial_trial_ms).min().unwrap_or(1_000).max(1);
    let search = SearchPlan {
        method: SearchMethod::Mlr,
        goals: test.goals.clone(),
        max_search_ms: test.max_search_ms,
        max_trials: MAX_TRIALS,
        tester_max_pps: tester_pps,
        ..SearchPlan::between((max_load_pps * LOWEST).max(MIN_FRAMES * 1e3 / shortest_ms as f64), max_load_pps)
    };
    search.check()?;
    Ok(search)
}

/// The throughput that a search found for a goal, frames a second, and whether the device may carry more.
pub fn found(result: &GoalResult) -> Option<(f64, bool)> {
    let at_least = match result.outcome {
        Outcome::Found | Outcome::MinLoadFails => false,
        Outcome::MaxLoadPasses | Outcome::Unfinished | Outcome::TesterLimited(_) => true,
    };
    result.lower_pps.map(|pps| (pps, at_least))
}

/// The throughput of a row by the record's search for the first goal, frames a second, and whether the device may carry more.
pub fn of_row(record: &ForwardingRecord, row: Row) -> Option<(f64, bool)> {
    record.search(row)?.record.results.first().and_then(found)
}

/// Why a repetition at the throughput counts for nothing, if so: it is not the load that was asked for, or it failed for nothing but
/// unsent frames. `None` for trials of other tests.
pub fn doubt(plan: &ForwardingPlan, trial: &ForwardingTrial) -> Option<String> {
    let goal = plan.first_goal().filter(|_| trial.test == Test::Confirmation)?;
    let FrameLoad::FramesPerSecond(load_pps) = trial.directions.first()?.sent.plan.load else { return None };
    let seen = observation(trial, 0);
    let trial = LoadTrial { load_pps, duration_ms: goal.final_trial_ms, ended_at_ms: 0, seen };
    match reduce(&trial) {
        Err(why) => Some(why.into_owned()),
        Ok(seen) => is_of_the_tester(goal, &seen).then(|| stall(&seen)),
    }
}

fn is_of_the_tester(goal: &Goal, seen: &Weighed) -> bool {
    seen.loss_ratio > goal.loss_ratio && seen.path_loss_ratio <= goal.loss_ratio
}

fn stall(seen: &Weighed) -> String {
    let unsent = seen.loss_ratio - seen.path_loss_ratio;
    format!("the tester stalled: {:.2} % of the frames were unsent", unsent * 100.0)
}

pub(super) fn set_up(plan: &ForwardingPlan, row: Row, known: &Known) -> Option<SetUp> {
    let test = plan.tests.throughput.as_ref()?;
    Some(search_plan(plan, test, row, known.tester_pps).and_then(|search_plan| {
        let search = Search::new(&search_plan).map_err(|error| error.to_string())?;
        let (test, phase) = (test.clone(), Phase::Search(Box::new(search)));
        Ok(Box::new(Throughput { row, test, search_plan, phase, not_confirmed_pps: None }) as _)
    }))
}

pub(super) fn schedule(plan: &ForwardingPlan, row: Row) -> Vec<Scheduled> {
    let Some(test) = &plan.tests.throughput else { return Vec::new() };
    let mut list = Vec::new();
    if let Ok(search) = search_plan(plan, test, row, None) {
        let overhead_ms = overhead_ms(plan);
        let shortest_ms = test.goals.iter().map(|goal| goal.initial_trial_ms).min().unwrap_or(1).max(1);
        // What a trial takes beside its load is an allowance: no bound of their number.
        let most = search.max_search_ms / shortest_ms;
        let most = u32::try_from(most).unwrap_or(u32::MAX).clamp(1, search.max_trials);
        // A trial is begun where its load ends in time; what follows the load may go beyond.
        let at_most = (most, search.max_search_ms.saturating_add(overhead_ms));
        list.push(scheduled(Test::Throughput, row, rehearse(&search, overhead_ms), at_most));
    }
    let each_ms = test.goals.first().map_or(0, |goal| goal.final_trial_ms);
    list.push(fixed(plan, Test::Confirmation, row, test.confirm, each_ms));
    list
}

/// A search, then the repetitions that confirm it; once more where they do not.
struct Throughput {
    row: Row,
    test: ThroughputTest,
    search_plan: SearchPlan,
    phase: Phase,
    /// What the search before found, where this is the second.
    not_confirmed_pps: Option<f64>,
}

enum Phase {
    Search(Box<Search>),
    Confirm(Confirmation),
    Over,
}

impl Throughput {
    /// Writes what the search found.
    fn found(&mut self, context: &mut Context<'_>) -> Option<f64> {
        let Phase::Search(search) = &self.phase else { return None };
        let record = search.record();
        for result in &record.results {
            (context.says)(&match result.lower_pps {
                Some(pps) => format!("{}: {pps:.0} frames/s", result.goal),
                None => {
                    let goal = record.plan.goals.iter().find(|goal| goal.name == result.goal);
                    let unproven = goal.and_then(|goal| narrows_search::unproven(goal, result, &record.trials));
                    let says = unproven.map(|it| it.words(&format!("{:.0} frames/s", it.load_pps)));
                    let why = says.unwrap_or_else(|| match result.outcome {
                        Outcome::Unfinished => "not finished: no rate passed so far".to_owned(),
                        _ => "no rate passes".to_owned(),
                    });
                    format!("{}: {why}", result.goal)
                }
            });
        }
        let pps = record.results.first().and_then(found).map(|(pps, _)| pps);
        let (Row { traffic, size }, not_confirmed_pps) = (self.row, self.not_confirmed_pps);
        context.record.searches.push(SearchOfSize { traffic, size, record, not_confirmed_pps });
        pps
    }

    /// The device no longer carries what the search found: search once more. The second result
    /// counts. The repetitions are kept as trials of the search.
    fn search_again(&mut self, pps: f64, context: &mut Context<'_>) -> Result<(), SearchError> {
        (context.says)("not confirmed by the repetitions: search repeated");
        self.not_confirmed_pps = Some(pps);
        context.record.searches.pop();
        for trial in &mut context.record.trials {
            if trial.test == Test::Confirmation && trial.is_of(self.row) {
                trial.test = Test::Throughput;
            }
        }
        self.phase = Phase::Search(Box::new(Search::new(&self.search_plan)?));
        Ok(())
    }
}

impl Procedure for Throughput {
    fn next(&mut self, context: &mut Context<'_>) -> Result<Option<Request>, SearchError> {
        if let Phase::Search(search) = &mut self.phase {
            if let Some(request) = request(Test::Throughput, search, context) {
                return Ok(Some(request));
            }
            self.phase = match self.found(context) {
                Some(pps) => Phase::Confirm(Confirmation::new(&self.test, pps)?),
                None => Phase::Over,
            };
        }
        let Phase::Confirm(confirmation) = &mut self.phase else { return Ok(None) };
        if let Some((pps, duration_ms)) = confirmation.ask() {
            let load = Load::Rate { pps, duration_ms };
            return Ok(Some(Request::new(Test::Confirmation, confirmation.made(), load, Keep::Always)));
        }
        let (confirmed, pps) = (confirmation.result(), confirmation.load_pps);
        let device_changed = confirmed.passed + confirmed.invalid < confirmed.repetitions && !confirmed.holds;
        if device_changed && self.not_confirmed_pps.is_none() {
            self.search_again(pps, context)?;
            return self.next(context);
        }
        self.phase = Phase::Over;
        Ok(None)
    }

    fn take(&mut self, seen: &Seen, context: &mut Context<'_>) -> Result<(), SearchError> {
        match &mut self.phase {
            Phase::Search(search) => search.observe(seen.observation(seen.effective_ms), context.now).map(drop),
            Phase::Confirm(confirmation) => confirmation.observe(seen.observation(confirmation.goal.final_trial_ms)),
            Phase::Over => Err(SearchError::NoTrialPending),
        }
    }

    fn finish(&mut self, context: &mut Context<'_>) {
        if let Phase::Search(search) = &mut self.phase {
            search.stop();
            self.found(context);
        }
    }
}

/// The repetitions at a result.
#[derive(Debug, Clone)]
pub struct Confirmation {
    load_pps: f64,
    goal: Goal,
    repetitions: u32,
    trials: Vec<LoadTrial>,
    /// How many of them only show that the tester stalled.
    stalled: u32,
    asked: bool,
}

/// What the repetitions say.
#[derive(Debug, Clone, PartialEq)]
pub struct Confirmed {
    /// How many were made.
    pub repetitions: u32,
    /// How many of them lost no more than the goal allows.
    pub passed: u32,
    /// How many say nothing.
    pub invalid: u32,
    /// Whether the goal's own measure is met: of the valid ones no larger part than its exceed ratio failed, and none is
    /// missing.
    pub holds: bool,
}

impl Confirmation {
    /// `test.confirm` trials at `load_pps`, judged by the first goal.
    /// Errors: [`SearchError::Plan`] where the test has no goal or the load is none.
    pub fn new(test: &ThroughputTest, load_pps: f64) -> Result<Self, SearchError> {
        let none = || SearchError::Plan("a throughput test without goals has no result to confirm".to_owned());
        if !(load_pps.is_finite() && load_pps > 0.0) {
            return Err(SearchError::Plan(format!("a load of {load_pps} frames/s cannot be confirmed")));
        }
        let goal = test.goals.first().ok_or_else(none)?.clone();
        Ok(Self { load_pps, goal, repetitions: test.confirm, trials: Vec::new(), stalled: 0, asked: false })
    }

    /// The next trial: load and duration in ms; `None` when all are made. Until one is observed it says the same.
    pub fn ask(&mut self) -> Option<(f64, u64)> {
        // Retries are bounded: a tester that never keeps the rate cannot reach it.
        let again = self.stalled.min(self.repetitions);
        self.asked = self.trials.len() < (self.repetitions + again) as usize;
        self.asked.then_some((self.load_pps, self.goal.final_trial_ms))
    }

    /// Takes what was seen. A repetition that fails for nothing but unsent frames says that the tester stalled, and nothing of the
    /// device: it is made again. One that is invalid is not: that one was invalid is a finding, too.
    /// Errors: [`SearchError::NoTrialPending`] where no trial is under way.
    pub fn observe(&mut self, seen: Observation) -> Result<(), SearchError> {
        if !std::mem::take(&mut self.asked) {
            return Err(SearchError::NoTrialPending);
        }
        let trial = LoadTrial { load_pps: self.load_pps, duration_ms: self.goal.final_trial_ms, ended_at_ms: 0, seen };
        self.stalled += u32::from(reduce(&trial).is_ok_and(|seen| is_of_the_tester(&self.goal, &seen)));
        self.trials.push(trial);
        Ok(())
    }

    /// How many were made.
    fn made(&self) -> u32 {
        u32::try_from(self.trials.len()).unwrap_or(u32::MAX)
    }

    /// What the repetitions so far say.
    pub fn result(&self) -> Confirmed {
        let all = self.trials.iter().filter_map(|trial| reduce(trial).ok());
        let weighed: Vec<Weighed> = all.filter(|seen| !is_of_the_tester(&self.goal, seen)).collect();
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let passed = weighed.iter().filter(|seen| seen.loss_ratio <= self.goal.loss_ratio).count();
        let failed = weighed.len() - passed;
        Confirmed {
            repetitions: self.made(),
            passed: number(passed),
            invalid: number(self.trials.len() - weighed.len()),
            holds: weighed.len() == self.repetitions as usize
                && passed > 0
                && failed as f64 <= self.goal.exceed_ratio * weighed.len() as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::procedures::device::row;
    use crate::sim::{Device, Dice, search};
    use crate::testing::plan;
    use narrows_model::run::search::TesterLimit;
    use std::time::Duration;

    fn test() -> ThroughputTest {
        ThroughputTest { goals: vec![Goal::ndr(), Goal::pdr()], confirm: 5, max_search_ms: 300_000 }
    }

    fn confirm(device: &Device, load_pps: f64) -> Confirmed {
        let mut confirmation = Confirmation::new(&test(), load_pps).expect("sound");
        let mut dice = Dice::new(1);
        while let Some((load, ms)) = confirmation.ask() {
            confirmation.observe(device.trial(load, Duration::from_millis(ms), &mut dice)).expect("asked for");
        }
        confirmation.result()
    }

    #[test]
    fn a_device_of_200_kpps_is_found_within_one_percent_and_confirmed() {
        let device = Device::of(200_000.0);
        let search_plan = search_plan(&plan(), &test(), row(64), None).expect("sound");
        assert!((search_plan.max_load_pps - 14_880_952.38).abs() < 0.01, "10 Gbit/s ÷ 672 bit");
        let ended = search(&search_plan, &device, 1);
        let (pps, at_least) = found(&ended.results[0]).expect("a result");
        assert!((198_000.0..=200_000.0).contains(&pps) && !at_least, "{pps}");
        let confirmed = confirm(&device, pps);
        assert_eq!(confirmed, Confirmed { repetitions: 5, passed: 5, invalid: 0, holds: true });
    }

    #[test]
    fn what_the_tester_carries_bounds_the_search_and_is_named() {
        let tester = 1_500_000.0;
        let search_plan = search_plan(&plan(), &test(), row(64), Some(tester)).expect("sound");
        assert_eq!(search_plan.max_load_pps, tester);
        let ended = search(&search_plan, &Device::of(5e6), 1);
        assert_eq!(ended.outcomes()[0], Outcome::TesterLimited(TesterLimit::AtMaximum));
        assert!(found(&ended.results[0]).expect("a result").1, "at least");
    }

    #[test]
    fn a_load_that_is_too_high_does_not_hold() {
        let confirmed = confirm(&Device::of(200_000.0), 210_000.0);
        assert_eq!((confirmed.passed, confirmed.holds), (0, false));
        let sender = Device { sender_max: 200_000.0, ..Device::of(1e6) };
        assert!(!confirm(&sender, 202_000.0).holds, "unsent, not lost");
    }

    #[test]
    fn a_repetition_that_says_nothing_is_counted_and_nothing_holds_without_it() {
        let mut confirmation = Confirmation::new(&test(), 1e4).expect("sound");
        assert_eq!(confirmation.observe(Observation::default()), Err(SearchError::NoTrialPending));
        assert!(confirmation.ask().is_some());
        let invalid = Observation { invalid: Some("the books disagree".to_owned()), ..Observation::default() };
        confirmation.observe(invalid).expect("asked for");
        assert_eq!((confirmation.result().invalid, confirmation.result().holds), (1, false));
        assert!(Confirmation::new(&test(), f64::NAN).is_err());
    }

    #[test]
    fn a_repetition_in_which_the_tester_stalled_is_made_again_but_not_for_ever() {
        let seen = |sent: u64, received: u64| Observation {
            intended: 10_000,
            offered: sent,
            sent,
            received,
            effective_ms: 1_000,
            ..Observation::default()
        };
        let test = ThroughputTest { goals: vec![Goal { final_trial_ms: 1_000, ..Goal::pdr() }], ..test() };
        let mut confirmation = Confirmation::new(&test, 1e4).expect("sound");
        confirmation.ask();
        confirmation.observe(seen(9_000, 9_000)).expect("asked for");
        let weighed = reduce(&confirmation.trials[0]).expect("a load");
        assert_eq!(stall(&weighed), "the tester stalled: 10.00 % of the frames were unsent");
        // What the device loses beside is no excuse, and what it passes counts.
        while confirmation.ask().is_some() {
            confirmation.observe(seen(10_000, 10_000)).expect("asked for");
        }
        let result = confirmation.result();
        assert_eq!(result, Confirmed { repetitions: 6, passed: 5, invalid: 1, holds: true });
        let mut confirmation = Confirmation::new(&test, 1e4).expect("sound");
        while confirmation.ask().is_some() {
            confirmation.observe(seen(9_000, 9_000)).expect("asked for");
        }
        let result = confirmation.result();
        assert_eq!(result, Confirmed { repetitions: 10, passed: 0, invalid: 10, holds: false });
        let mut confirmation = Confirmation::new(&test, 1e4).expect("sound");
        confirmation.ask();
        confirmation.observe(seen(9_000, 8_000)).expect("asked for");
        assert_eq!(confirmation.stalled, 0, "it lost, too");
    }

    #[test]
    fn a_row_that_is_not_there_cannot_be_searched() {
        assert_eq!(search_plan(&plan(), &test(), row(65), None), Err("the plan has no such frames".to_owned()));
        assert!(search_plan(&plan(), &test(), row(64), Some(10.0)).is_err(), "nothing between the bounds");
    }
}
