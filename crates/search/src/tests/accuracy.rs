//! Known devices: accuracy and duration of the search.

use crate::sim::{Device, Ended, search};
use narrows_model::run::search::{Goal, Outcome, SearchMethod, SearchPlan};
use proptest::prelude::*;

/// Whether a lower bound is at most 1 % below the truth, and not above it.
fn near(lower: f64, truth: f64) -> bool {
    (truth * 0.99..=truth).contains(&lower)
}

fn plan() -> SearchPlan {
    SearchPlan::between(1_000.0, 2e7)
}

fn in_time(ended: &Ended) -> bool {
    ended.took.as_secs_f64() < 120.0
}

/// 100 Mbit/s and 1 Gbit/s at 1,500 B, 1 Gbit/s at 64 B frames, odd ones, and one near the highest load.
const CAPACITIES: [f64; 7] = [1_234.5, 8_333.3, 83_333.3, 812_743.0, 1_488_095.2, 7_654_321.9, 19_500_000.0];

#[test]
fn a_capacity_is_found_by_both_goals_within_two_minutes() {
    for capacity in CAPACITIES {
        let ended = search(&plan(), &Device::of(capacity), 1);
        assert_eq!(ended.outcomes(), [Outcome::Found; 2], "{capacity}");
        assert!(near(ended.lower(0), capacity), "NDR of {capacity}: {:?}", ended.results);
        // PDR accepts 0.5 % more: its truth is capacity ÷ 0.995.
        assert!(near(ended.lower(1), capacity / 0.995), "PDR of {capacity}: {:?}", ended.results);
        assert!(in_time(&ended), "{capacity} took {:?}", ended.took);
        let throughput = ended.results[0].conditional_throughput_pps.expect("with the lower bound");
        assert_eq!(throughput, ended.lower(0), "no loss at the NDR");
    }
}

#[test]
fn a_policer_with_a_bucket_is_found_at_its_rate_per_trial() {
    for capacity in CAPACITIES {
        // A bucket of 4 ms.
        let device = Device { bucket: (capacity * 0.004).floor(), ..Device::of(capacity) };
        let ended = search(&plan(), &device, 2);
        assert_eq!(ended.outcomes(), [Outcome::Found; 2]);
        assert!(near(ended.lower(0), capacity * 1.004 + 1.0), "{capacity}: {:?}", ended.results);
        assert!(in_time(&ended), "{capacity} took {:?}", ended.took);
    }
}

#[test]
fn a_shallow_queue_has_a_pdr_where_its_loss_is_half_a_percent() {
    let device = Device { queue: Some(64), ..Device::of(83_333.0) };
    let (mut low, mut high) = (1_000.0, 83_333.0);
    while high - low > 1.0 {
        let middle = f64::midpoint(low, high);
        if device.queue_loss(middle) > 0.005 { high = middle } else { low = middle }
    }
    for seed in 0..20 {
        let ended = search(&plan(), &device, seed);
        // The loss of one trial varies, so a load within a width above may pass.
        let error = ended.lower(1) / low - 1.0;
        assert!((-0.01..=0.005).contains(&error), "seed {seed}: {error:.4}, truth {low}, {:?}", ended.results);
        assert!(ended.lower(0) < ended.lower(1));
        assert!(in_time(&ended), "seed {seed} took {:?}", ended.took);
    }
}

#[test]
fn random_loss_leaves_no_ndr_but_the_pdr_of_the_capacity() {
    // At the lowest load a trial of a second has 20,000 packets, of which some are always lost.
    let plan = SearchPlan::between(20_000.0, 2e6);
    for seed in 0..20 {
        let device = Device { random_loss: 0.001, ..Device::of(812_743.0) };
        let ended = search(&plan, &device, seed);
        assert_eq!(ended.outcomes(), [Outcome::MinLoadFails, Outcome::Found], "seed {seed}");
        // Of the permitted 0.5 %, 0.1 % is used.
        let truth = 812_743.0 * 0.999 / 0.995;
        assert!(near(ended.lower(1), truth * 1.0005), "seed {seed}: {:?}, truth {truth}", ended.results);
        assert!(in_time(&ended), "seed {seed} took {:?}", ended.took);
    }
}

#[test]
fn the_ends_of_the_range_are_results_of_their_own() {
    let ended = search(&plan(), &Device::of(3e7), 1);
    assert_eq!(ended.outcomes(), [Outcome::MaxLoadPasses; 2]);
    assert_eq!((ended.results[0].lower_pps, ended.results[0].upper_pps), (Some(2e7), None));
    let ended = search(&plan(), &Device::of(100.0), 1);
    assert_eq!(ended.outcomes(), [Outcome::MinLoadFails; 2]);
    assert_eq!((ended.results[0].lower_pps, ended.results[0].upper_pps), (None, Some(1_000.0)));
    assert_eq!(ended.results[0].conditional_throughput_pps, None);
    let fail_fast = search(&SearchPlan { fail_fast: true, ..plan() }, &Device::of(100.0), 1);
    assert!(fail_fast.took <= ended.took);
    assert_eq!(fail_fast.outcomes()[0], Outcome::MinLoadFails);
}

#[test]
fn bisection_finds_a_quiet_device_too() {
    for capacity in CAPACITIES {
        let plan = SearchPlan { method: SearchMethod::Bisection, ..plan() };
        let ended = search(&plan, &Device::of(capacity), 1);
        assert_eq!(ended.outcomes(), [Outcome::Found; 2], "{capacity}");
        assert!(near(ended.lower(0), capacity), "{capacity}: {:?}", ended.results);
        assert!(near(ended.lower(1), capacity / 0.995), "{capacity}: {:?}", ended.results);
    }
}

#[test]
fn the_long_presets_confirm_at_full_length_only_near_the_truth() {
    let goals = vec![Goal::rfc2544(), Goal::tst009()];
    let plan = SearchPlan { goals, max_search_ms: 4 * 3600 * 1000, ..plan() };
    let ended = search(&plan, &Device::of(812_743.0), 1);
    assert_eq!(ended.outcomes(), [Outcome::Found; 2]);
    assert!(near(ended.lower(0), 812_743.0) && near(ended.lower(1), 812_743.0), "{:?}", ended.results);
    let long: Vec<f64> =
        ended.search.trials().iter().filter(|trial| trial.duration_ms == 60_000).map(|trial| trial.load_pps).collect();
    assert!(long.iter().all(|load| (load / 812_743.0 - 1.0).abs() < 0.02), "{long:?}");
    assert!(long.len() <= 5, "{long:?}");
}

#[test]
fn a_loss_curve_falls_until_two_trials_lose_nothing() {
    let method = SearchMethod::LossCurve { step: 0.1, trial_ms: 1_000 };
    let plan = SearchPlan { method, goals: Vec::new(), ..SearchPlan::between(1_000.0, 1e6) };
    let ended = search(&plan, &Device::of(655_000.0), 1);
    assert!(ended.results.is_empty());
    let points = crate::loss_curve(&plan, ended.search.trials());
    let percent: Vec<f64> = points.iter().map(|point| point.load_percent.round()).collect();
    assert_eq!(percent, [100.0, 90.0, 80.0, 70.0, 60.0, 50.0]);
    let loss: Vec<f64> = points.iter().map(|point| (point.loss_ratio * 1e3).round() / 1e3).collect();
    assert_eq!(loss, [0.345, 0.272, 0.181, 0.064, 0.0, 0.0]);
    let lossy = search(&plan, &Device { random_loss: 0.01, ..Device::of(1e6) }, 1);
    assert_eq!(lossy.search.trials().len(), 10, "down to the lowest load and no further");
}

/// A path of this rate in packets of 1,500 B, with a queue in front of it.
fn path(mbps: f64, queue_ms: f64) -> Device {
    let capacity = mbps * 1e6 / 12_000.0;
    Device { bucket: (capacity * queue_ms / 1e3).floor(), ..Device::of(capacity) }
}

/// A search from a profile of it that is off by this factor, with an interval of ± 1 %.
fn hinted(device: &Device, off: f64) -> SearchPlan {
    let (seen, buffer_us) = (device.capacity * off, device.bucket / device.capacity * 1e6);
    SearchPlan::between(100.0, 2e6).from_profile([0.99 * seen, 1.01 * seen], buffer_us, true)
}

/// Whether the bounds of a goal hold the load at which a trial of the final length just passes it, and are close.
fn holds(plan: &SearchPlan, device: &Device, ended: &Ended, goal: usize) -> Result<(), TestCaseError> {
    let (goal, result) = (&plan.goals[goal], &ended.results[goal]);
    prop_assert_eq!(result.outcome, Outcome::Found, "{:?}", ended.results);
    let seconds = goal.final_trial_ms as f64 / 1e3;
    let passes = (device.capacity + device.bucket / seconds) * (1.0 - device.random_loss) / (1.0 - goal.loss_ratio);
    // Whole packets, and four standard deviations of how many are lost by chance.
    let chance = 4.0 * (device.random_loss * passes / seconds).sqrt();
    let (lower, upper) = (result.lower_pps.unwrap_or(0.0), result.upper_pps.unwrap_or(f64::MAX));
    let grain = 2.0 / seconds + chance;
    prop_assert!(lower <= passes + grain && passes - grain <= upper, "{}..{} does not hold {}", lower, upper, passes);
    prop_assert!(lower >= upper * (1.0 - goal.width) * (1.0 - 1e-9));
    let unqueued = device.capacity * (1.0 - device.random_loss) / (1.0 - goal.loss_ratio);
    let hidden = plan.hint.map_or(0.0, |hint| hint.hidden(goal.final_trial_ms));
    let error = (lower - unqueued).abs() - grain;
    prop_assert!(hidden > goal.width || error <= goal.width * unqueued, "{} of {}", lower, unqueued);
    Ok(())
}

/// Whether the bounds of each goal hold what the path sustains, however much its queue takes in.
fn hold_what_is_sustained(plan: &SearchPlan, device: &Device, ended: &Ended) -> Result<(), TestCaseError> {
    for (result, goal) in ended.results.iter().zip(&plan.goals) {
        let truth = device.capacity / (1.0 - goal.loss_ratio);
        let (lower, upper) = (result.lower_pps.unwrap_or(0.0), result.upper_pps.unwrap_or(f64::MAX));
        // A third of the width is not told from none, and nothing from a packet.
        let grain = truth * goal.width / 3.0 + 2.0;
        prop_assert!(lower <= truth + grain && truth - grain <= upper, "{}..{} does not hold {}", lower, upper, truth);
        prop_assert!(lower >= upper * (1.0 - goal.width) * (1.0 - 1e-9));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_queue_of_any_depth_is_found_at_what_the_path_sustains_in_10_s(
        decades in 1.0..3.0_f64, queue_ms in 1.0..2_000.0_f64, off in 0.995..1.005_f64,
    ) {
        let device = Device { delays: true, ..path(10_f64.powf(decades), queue_ms) };
        let seen = device.capacity * off;
        let plan = SearchPlan { sustained: true, ..SearchPlan::between(100.0, 2e6) };
        let plan = plan.from_profile([0.99 * seen, 1.01 * seen], 0.0, true);
        let ended = search(&plan, &device, 1);
        hold_what_is_sustained(&plan, &device, &ended)?;
        prop_assert!(ended.took.as_secs_f64() <= 10.0, "{:?}: {:?}", ended.took, ended.search.trials());
    }

    #[test]
    fn without_a_profile_what_passes_of_a_load_above_is_the_second_witness(
        decades in 1.0..3.0_f64, queue_ms in 1.0..2_000.0_f64, wide in any::<bool>(),
    ) {
        let device = Device { delays: true, ..path(10_f64.powf(decades), queue_ms) };
        let plan = SearchPlan { sustained: true, ..SearchPlan::between(100.0, 2e6) };
        // A profile that knows the capacity in datagrams of another size only.
        let interval = [0.9, 1.25].map(|part| part * device.capacity);
        let plan = if wide { plan.from_profile(interval, 0.0, true) } else { plan };
        let plan = plan.without_profile();
        let ended = search(&plan, &device, 1);
        hold_what_is_sustained(&plan, &device, &ended)?;
        prop_assert!(ended.took.as_secs_f64() <= 15.0, "{:?}: {:?}", ended.took, ended.search.trials());
    }

    #[test]
    fn a_right_hint_finds_both_goals_in_12_s(
        (decades, rtt_ms, bdp) in (1.0..3.0_f64, 0.1..20.0_f64, 0.2..4.0_f64), off in 0.995..1.005_f64,
    ) {
        let device = path(10_f64.powf(decades), rtt_ms * bdp);
        let plan = hinted(&device, off);
        let ended = search(&plan, &device, 1);
        for goal in 0..2 {
            holds(&plan, &device, &ended, goal)?;
        }
        let took = ended.took.as_secs_f64();
        prop_assert!(took <= 12.0, "{} s: {:?}", took, ended.search.trials());
    }

    #[test]
    fn a_wrong_hint_costs_time_but_not_the_result(
        (decades, rtt_ms, bdp) in (1.0..3.0_f64, 0.1..20.0_f64, 0.2..4.0_f64),
        off in prop_oneof![Just(0.97), Just(1.03), Just(0.5), Just(2.0), 0.3..4.0_f64],
    ) {
        let device = path(10_f64.powf(decades), rtt_ms * bdp);
        let plan = hinted(&device, off);
        let ended = search(&plan, &device, 1);
        for goal in 0..2 {
            holds(&plan, &device, &ended, goal)?;
        }
        prop_assert!(ended.took.as_secs_f64() <= 60.0, "{:?}: {:?}", ended.took, ended.search.trials());
    }

    #[test]
    fn a_queue_deeper_than_the_profile_saw_is_found_at_what_a_trial_lets_through(
        decades in 1.0..3.0_f64, queue_ms in 1.0..100.0_f64, seen in 0.0..1.0_f64,
    ) {
        let device = path(10_f64.powf(decades), queue_ms);
        let plan = hinted(&Device { bucket: (device.bucket * seen).floor(), ..device.clone() }, 1.0);
        let ended = search(&plan, &device, 1);
        let truth = device.capacity + device.bucket / plan.goals[0].final_trial_ms as f64 * 1e3;
        let (lower, upper) = (ended.lower(0), ended.results[0].upper_pps.unwrap_or(f64::MAX));
        prop_assert!(lower <= truth + 2.0 && truth - 2.0 <= upper, "{}..{} does not hold {}", lower, upper, truth);
    }

    #[test]
    fn random_loss_leaves_the_pdr_where_the_hint_says(
        decades in 2.0..3.0_f64, queue_ms in 0.1..20.0_f64, random_loss in 0.0001..0.003_f64,
        off in prop_oneof![Just(1.0), Just(0.97), Just(1.03), Just(0.5), Just(2.0)], seed in any::<u64>(),
    ) {
        let device = Device { random_loss, ..path(10_f64.powf(decades), queue_ms) };
        let plan = SearchPlan { goals: vec![Goal::pdr()], hint: None, ..hinted(&device, off) };
        let plan = plan.from_profile([0.99, 1.01].map(|part| part * off * device.capacity), queue_ms * 1e3, true);
        holds(&plan, &device, &search(&plan, &device, seed), 0)?;
    }
}
