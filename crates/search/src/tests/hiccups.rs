//! A device with hiccups unrelated to its capacity: MLRsearch against plain bisection, over fixed seeds.

use crate::sim::{Device, search};
use narrows_model::run::search::{Goal, Outcome, SearchMethod, SearchPlan};

const CAPACITY: f64 = 812_743.0;
const SEEDS: u64 = 300;

/// The lower bounds of the NDR over the seeds, as parts of the capacity, lowest first.
fn ratios(method: SearchMethod, hiccup: f64) -> Vec<f64> {
    of(&SearchPlan { method, goals: vec![Goal::ndr()], ..SearchPlan::between(1_000.0, 2e6) }, hiccup)
}

fn of(plan: &SearchPlan, hiccup: f64) -> Vec<f64> {
    let device = Device { hiccup, ..Device::of(CAPACITY) };
    let mut ratios: Vec<f64> = (0..SEEDS).map(|seed| search(plan, &device, seed).lower(0) / CAPACITY).collect();
    ratios.sort_by(f64::total_cmp);
    ratios
}

fn within_two_percent(ratios: &[f64]) -> usize {
    ratios.iter().filter(|ratio| (0.98..=1.0).contains(*ratio)).count()
}

#[test]
fn an_exceed_ratio_of_one_half_tolerates_hiccups_that_mislead_bisection() {
    let mlr = ratios(SearchMethod::Mlr, 0.1);
    assert_eq!(within_two_percent(&mlr), mlr.len(), "lowest: {:?}", &mlr[..5]);
    let bisection = ratios(SearchMethod::Bisection, 0.1);
    let good = within_two_percent(&bisection);
    assert!(good < bisection.len() * 7 / 10, "plain bisection was right in {good} of {}", bisection.len());
    assert!(bisection[bisection.len() / 10] < 0.9, "a tenth of its results is off by more than a tenth");
}

#[test]
fn a_hiccup_in_every_fifth_trial_costs_time_but_not_the_result() {
    let mlr = ratios(SearchMethod::Mlr, 0.2);
    assert!(within_two_percent(&mlr) * 100 >= mlr.len() * 98, "lowest: {:?}", &mlr[..8]);
}

#[test]
fn a_shorter_sum_where_a_profile_agrees_tolerates_them_too() {
    let hint = [0.99 * CAPACITY, 1.01 * CAPACITY];
    let plan = SearchPlan::between(1_000.0, 2e6).from_profile(hint, 100.0, true);
    for (hiccup, percent) in [(0.05, 99), (0.1, 97)] {
        let ratios = of(&plan, hiccup);
        assert!(within_two_percent(&ratios) * 100 >= ratios.len() * percent, "{hiccup}: {:?}", &ratios[..12]);
    }
}

#[test]
fn both_goals_are_found_in_time_despite_the_hiccups() {
    let plan = SearchPlan::between(1_000.0, 2e6);
    let device = Device { hiccup: 0.1, ..Device::of(CAPACITY) };
    let mut took: Vec<f64> = (0..SEEDS)
        .map(|seed| {
            let ended = search(&plan, &device, seed);
            assert_eq!(ended.outcomes(), [Outcome::Found; 2], "seed {seed}");
            ended.took.as_secs_f64()
        })
        .collect();
    took.sort_by(f64::total_cmp);
    assert!(took[took.len() * 99 / 100] < 120.0, "median {}, worst {:?}", took[took.len() / 2], took.last());
}
