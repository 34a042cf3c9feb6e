//! A tester that is itself the limit is reported as such.

use crate::sim::{Device, search};
use narrows_model::run::search::{Outcome, SearchMethod, SearchPlan, TesterLimit};

fn plan() -> SearchPlan {
    SearchPlan::between(1_000.0, 2e6)
}

const METHODS: [SearchMethod; 2] = [SearchMethod::Mlr, SearchMethod::Bisection];

#[test]
fn a_sender_that_cannot_keep_up_is_the_limit_not_the_path() {
    for method in METHODS {
        let device = Device { sender_max: 500_000.0, ..Device::of(812_743.0) };
        let ended = search(&SearchPlan { method, ..plan() }, &device, 1);
        assert_eq!(ended.outcomes(), [Outcome::TesterLimited(TesterLimit::Unsent); 2]);
        let lower = ended.lower(0);
        assert!((495_000.0..=500_000.0).contains(&lower), "what was sent is what the path is known to carry: {lower}");
    }
}

#[test]
fn a_path_that_loses_below_the_senders_limit_is_the_limit() {
    for method in METHODS {
        let device = Device { sender_max: 900_000.0, ..Device::of(812_743.0) };
        let ended = search(&SearchPlan { method, ..plan() }, &device, 1);
        assert_eq!(ended.outcomes(), [Outcome::Found; 2]);
    }
}

#[test]
fn a_result_at_the_receivers_maximum_is_limited_by_the_tester() {
    let device = Device { receiver_max: 500_000.0, ..Device::of(812_743.0) };
    // Without qualification it cannot be known.
    assert_eq!(search(&plan(), &device, 1).outcomes(), [Outcome::Found; 2]);
    for method in METHODS {
        // The qualification found it, a few percent off.
        for tester_max in [493_000.0, 500_000.0, 507_000.0] {
            let plan = SearchPlan { method, tester_max_pps: Some(tester_max), ..plan() };
            let ended = search(&plan, &device, 1);
            assert_eq!(ended.outcomes(), [Outcome::TesterLimited(TesterLimit::AtMaximum); 2], "{tester_max}");
            let slower = search(&plan, &Device { capacity: 400_000.0, ..device.clone() }, 1);
            assert_eq!(slower.outcomes(), [Outcome::Found; 2], "a path well below the tester is the path's");
        }
    }
}

#[test]
fn a_result_at_the_testers_maximum_is_limited_by_the_tester() {
    let plan = SearchPlan { tester_max_pps: Some(2e6), ..plan() };
    let ended = search(&plan, &Device::of(1e9), 1);
    assert_eq!(ended.outcomes(), [Outcome::TesterLimited(TesterLimit::AtMaximum); 2]);
    assert_eq!(ended.results[0].lower_pps, Some(2e6));
}

#[test]
fn invalid_trials_are_repeated_and_do_not_harm() {
    let mut invalid = 0;
    for seed in 0..50 {
        let device = Device { stall: 0.1, ..Device::of(812_743.0) };
        let ended = search(&SearchPlan { invalid_retries: 4, ..plan() }, &device, seed);
        assert_eq!(ended.outcomes(), [Outcome::Found; 2], "seed {seed}");
        assert!((0.99..=1.0).contains(&(ended.lower(0) / 812_743.0)), "seed {seed}: {:?}", ended.results);
        invalid += ended.search.trials().iter().filter(|trial| trial.seen.invalid.is_some()).count();
    }
    assert!(invalid > 50, "they are in the record: {invalid}");
}

#[test]
fn loads_that_cannot_be_measured_are_beyond_the_tester() {
    for method in METHODS {
        let device = Device { stalls_above: 500_000.0, ..Device::of(812_743.0) };
        let ended = search(&SearchPlan { method, ..plan() }, &device, 1);
        assert_eq!(ended.outcomes(), [Outcome::TesterLimited(TesterLimit::Invalid); 2]);
        assert!((495_000.0..=500_000.0).contains(&ended.lower(0)), "{:?}", ended.results);
        let always = Device { stall: 1.1, ..Device::of(812_743.0) };
        let ended = search(&SearchPlan { method, ..plan() }, &always, 1);
        assert_eq!(ended.outcomes(), [Outcome::TesterLimited(TesterLimit::Invalid); 2]);
        assert_eq!(ended.results[0].lower_pps, None);
    }
}

#[test]
fn an_invalid_overload_gives_a_hint_for_the_next_load() {
    // A path a hundred times slower than the tester, which stalls above a tenth of its maximum.
    let device = Device { stalls_above: 100_000.0, ..Device::of(10_000.0) };
    let ended = search(&SearchPlan::between(1_000.0, 1_000_000.0), &device, 7);
    assert!((9_900.0..=10_000.0).contains(&ended.lower(0)), "{:?}", ended.results);
    let invalid = ended.search.trials().iter().filter(|trial| trial.seen.invalid.is_some()).count();
    assert_eq!(invalid, 1);
}
