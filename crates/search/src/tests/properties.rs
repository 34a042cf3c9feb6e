//! Invariants for any observation: every search ends, bounds never cross (asserted at every step by the simulator), results
//! follow from the record.

use crate::results;
use crate::sim::{Device, Dice, run, search};
use narrows_model::run::search::{Goal, Observation, Outcome, SearchMethod, SearchPlan};
use proptest::prelude::*;
use std::time::Duration;

/// More trials than any search needs; the plans below disable the limits.
const ENOUGH: usize = 2_000;

/// Observations of a malicious tester.
fn said(choice: u8, load: f64, duration: Duration, dice: &mut Dice) -> Observation {
    let intended = (load * duration.as_secs_f64()).round() as u64;
    let sound =
        Observation { intended, offered: intended, sent: intended, received: intended, ..Observation::default() };
    let part = |dice: &mut Dice| dice.bits() % (intended + 1);
    match choice % 9 {
        0 | 1 => sound,
        2 => Observation { received: intended - intended.min(1), ..sound },
        3 => Observation { received: part(dice), ..sound },
        4 => {
            let sent = part(dice);
            Observation { sent, received: sent, ..sound }
        }
        5 => Observation { received: 0, ..sound },
        6 => Observation { invalid: Some("no".to_owned()), ..sound },
        7 => Observation {
            intended: dice.bits(),
            offered: dice.bits(),
            sent: dice.bits(),
            received: dice.bits(),
            effective_ms: dice.bits() % 1_000_000,
            ..Observation::default()
        },
        _ => Observation { effective_ms: dice.bits() % 10_000, ..sound },
    }
}

fn goals() -> impl Strategy<Value = Vec<Goal>> {
    let goal = (0.0..0.2_f64, 0.0..0.9_f64, 1_u64..40, 1_u64..30, 1_u64..10, 0.001..0.3_f64);
    prop::collection::vec(goal, 1..4).prop_map(|goals| {
        let named = |(index, numbers): (usize, (f64, f64, u64, u64, u64, f64))| {
            let (loss_ratio, exceed_ratio, sum, last, first, width) = numbers;
            let initial_trial_ms = first * 50;
            let final_trial_ms = initial_trial_ms + last * 50;
            Goal {
                name: index.to_string(),
                loss_ratio: if index == 0 { 0.0 } else { loss_ratio },
                exceed_ratio,
                final_trial_ms,
                duration_sum_ms: final_trial_ms + sum * 100,
                initial_trial_ms,
                width,
            }
        };
        goals.into_iter().enumerate().map(named).collect()
    })
}

fn plans() -> impl Strategy<Value = SearchPlan> {
    let method = prop_oneof![
        4 => Just(SearchMethod::Mlr),
        1 => Just(SearchMethod::Bisection),
        1 => Just(SearchMethod::LossCurve { step: 0.07, trial_ms: 100 }),
    ];
    let numbers = (100.0..1e5_f64, 1.01..1e5_f64, 0_u32..5, 1.1..8.0_f64, 0_u32..4);
    (method, goals(), numbers, any::<bool>()).prop_map(|(method, goals, numbers, fail_fast)| {
        let (min, times, preceding_targets, expansion, invalid_retries) = numbers;
        SearchPlan {
            method,
            goals,
            preceding_targets,
            expansion,
            invalid_retries,
            fail_fast,
            tester_max_pps: Some(min * times / 2.0),
            max_search_ms: SearchPlan::LONGEST_MS,
            max_trials: SearchPlan::MAX_TRIALS,
            ..SearchPlan::between(min, min * times)
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_search_ends_for_any_observation(
        plan in plans(),
        choices in prop::collection::vec(any::<u8>(), 1..60),
        seed in any::<u64>(),
    ) {
        prop_assert_eq!(plan.check(), Ok(()));
        let mut dice = Dice::new(seed);
        let mut said_so_far = 0;
        let ended = run(&plan, |load, duration| {
            said_so_far += 1;
            assert!(said_so_far <= ENOUGH, "does not end: {plan:?}");
            said(choices[said_so_far % choices.len()], load, duration, &mut dice)
        });
        let record = ended.search.record();
        prop_assert_eq!(&results(&record.plan, &record.trials), &ended.results);
        for result in &ended.results {
            if let (Some(lower), Some(upper)) = (result.lower_pps, result.upper_pps) {
                prop_assert!(lower < upper);
            }
            let finished = plan.fail_fast || result.outcome != Outcome::Unfinished;
            prop_assert!(finished, "not by the limits, so by its bounds: {:?}", result);
        }
    }

    #[test]
    fn a_search_on_a_drifting_device_ends(
        plan in plans(),
        drift in 0.0..0.2_f64,
        seed in any::<u64>(),
    ) {
        let mut dice = Dice::new(seed);
        let mut capacity = (plan.min_load_pps * plan.max_load_pps).sqrt();
        let mut trials = 0;
        run(&plan, |load, duration| {
            trials += 1;
            assert!(trials <= ENOUGH, "does not end: {plan:?}");
            capacity *= ((dice.unit() - 0.5) * drift).exp();
            Device::of(capacity).trial(load, duration, &mut dice)
        });
    }

    #[test]
    fn a_device_of_any_capacity_is_found(
        part in 0.02..0.98_f64,
        max in 1e5..1e8_f64,
        preceding_targets in 0_u32..5,
        width in 0.001..0.02_f64,
    ) {
        let goals = vec![Goal { width, ..Goal::ndr() }];
        let range = SearchPlan::between(max / 100.0, max);
        let plan = SearchPlan { goals, preceding_targets, max_search_ms: 3_600_000, ..range };
        let capacity = max * part;
        let ended = search(&plan, &Device::of(capacity), 1);
        prop_assert_eq!(ended.outcomes(), [Outcome::Found]);
        // A trial of a second forwards whole packets only.
        let (lower, upper) = (ended.lower(0), ended.results[0].upper_pps.unwrap_or(0.0));
        prop_assert!(lower <= capacity + 1.0 && capacity.floor() <= upper, "{lower}..{upper} does not hold {capacity}");
        prop_assert!(lower >= upper * (1.0 - width) * (1.0 - 1e-9));
    }

    #[test]
    fn unsent_datagrams_are_never_attributed_to_the_path(sender_part in 0.05..0.9_f64, seed in any::<u64>()) {
        let plan = SearchPlan::between(10_000.0, 1e6);
        let device = Device { sender_max: 1e6 * sender_part, ..Device::of(1e9) };
        for outcome in search(&plan, &device, seed).outcomes() {
            prop_assert!(matches!(outcome, Outcome::TesterLimited(_)), "{outcome:?}");
        }
    }
}
