//! Guarantees to the caller that runs the trials.

use crate::sim::{Device, Dice, search};
use crate::{Search, SearchError, Step, results};
use narrows_model::run::search::{Observation, Outcome, SearchMethod, SearchPlan};
use std::time::Duration;

fn plan() -> SearchPlan {
    SearchPlan::between(1_000.0, 2e6)
}

#[test]
fn results_are_derived_from_the_plan_and_the_trials_alone() {
    for method in [SearchMethod::Mlr, SearchMethod::Bisection] {
        let plan = SearchPlan { method, ..plan() };
        let ended = search(&plan, &Device { hiccup: 0.1, random_loss: 1e-5, ..Device::of(812_743.0) }, 3);
        let record = ended.search.record();
        assert_eq!(results(&record.plan, &record.trials), ended.results);
        assert_eq!(record.results, ended.results);
    }
}

#[test]
fn the_same_observations_give_the_same_search() {
    let device = Device { hiccup: 0.3, stall: 0.05, ..Device::of(812_743.0) };
    let (one, other) = (search(&plan(), &device, 7), search(&plan(), &device, 7));
    assert_eq!(one.search.trials(), other.search.trials());
}

#[test]
fn a_bad_plan_is_refused_and_an_observation_without_a_trial_too() {
    let bad = SearchPlan { min_load_pps: 0.0, ..plan() };
    let error = Search::new(&bad).expect_err("refused");
    assert!(error.to_string().starts_with("cannot search: minimum load in packets/s is 0"), "{error}");
    let mut fresh = Search::new(&plan()).expect("sound");
    let answer = fresh.observe(Observation::default(), Duration::ZERO);
    assert_eq!(answer, Err(SearchError::NoTrialPending));
}

#[test]
fn the_time_limit_holds_and_the_bounds_so_far_are_reported() {
    let plan = SearchPlan { max_search_ms: 8_000, ..plan() };
    let ended = search(&plan, &Device::of(812_743.0), 1);
    assert_eq!(ended.outcomes(), [Outcome::Unfinished; 2]);
    assert!(ended.took <= Duration::from_millis(8_100), "{:?}", ended.took);
    let stands = ended.search.bounds();
    assert!(stands.iter().all(|goal| !goal.settled && goal.target <= goal.targets), "{stands:?}");
    let (lower, upper) = (stands[0].lower_pps.expect("passed"), stands[0].upper_pps.expect("failed"));
    assert!((0.97..1.0).contains(&(lower / upper)), "{stands:?}");
}

#[test]
fn the_number_of_trials_is_limited() {
    let ended = search(&SearchPlan { max_trials: 4, ..plan() }, &Device::of(812_743.0), 1);
    assert_eq!(ended.search.trials().len(), 4);
    assert_eq!(ended.outcomes(), [Outcome::Unfinished; 2]);
}

#[test]
fn a_search_can_be_stopped_while_a_trial_is_under_way() {
    let (device, mut dice) = (Device::of(812_743.0), Dice::new(1));
    let mut search = Search::new(&plan()).expect("sound");
    let Step::Trial { load_pps, duration } = search.next(Duration::ZERO) else { panic!("a first trial") };
    assert_eq!((load_pps, duration), (2e6, Duration::from_secs(1)), "the highest load first");
    search.stop();
    assert_eq!(search.observe(device.trial(load_pps, duration, &mut dice), duration), Ok(None));
    assert!(matches!(search.next(duration), Step::Done(results) if results[0].outcome == Outcome::Unfinished));
    assert_eq!(search.trials().len(), 1);
}

#[test]
fn an_invalid_trial_is_reported_and_repeated() {
    let mut search = Search::new(&plan()).expect("sound");
    let first = search.next(Duration::ZERO);
    let seen = Observation { invalid: Some("the sender stalled".to_owned()), ..Observation::default() };
    let answer = search.observe(seen, Duration::from_secs(1));
    assert_eq!(answer, Ok(Some("the sender stalled".to_owned())));
    assert_eq!(search.next(Duration::from_secs(1)), first);
}
