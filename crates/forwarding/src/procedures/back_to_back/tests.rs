//! Known queues, and whatever is observed.

use super::*;
use crate::procedures::device::{Queue, row};
use crate::sim::Dice;
use crate::testing::plan;
use proptest::prelude::*;

const MAX_PPS: f64 = 1_488_095.0;

fn test_of(most_frames: u64, repetitions: u32) -> BackToBackPlan {
    BackToBackPlan { most_frames, max_pps: MAX_PPS, repetitions }
}

/// Runs a test to its end; how many trials it took.
fn run(plan: &BackToBackPlan, mut burst: impl FnMut(u64) -> BurstSeen) -> (BackToBack, u32) {
    let mut test = BackToBack::new(plan).expect("a sound plan");
    let mut trials = 0;
    while let Some(frames) = test.ask() {
        assert_eq!(test.ask(), Some(frames), "the same until something is observed");
        assert!((1..=plan.most_frames).contains(&frames), "{frames} is out of the range");
        test.observe(&burst(frames)).expect("asked for");
        trials += 1;
        assert!(trials <= plan.repetitions * (plan.most_trials() * (INVALID_RETRIES + 1)), "does not end");
    }
    (test, trials)
}

#[test]
fn the_formulas_of_the_rfc() {
    // 26,000 frames at 14.88 Mpps are 1.747 ms; with a throughput of 12.2 Mpps 18 % of that are the buffer: 315 µs.
    let burst = |frames| BurstOfSize {
        traffic: 0,
        size: Some(64),
        repetition: 0,
        frames,
        offered_pps: 14_880_952.0,
        at_most: false,
    };
    let time = buffer_time(&[burst(25_000), burst(27_000)], 12.2e6).expect("bursts");
    assert!((time.implied_ns - 1_747_200.0).abs() < 1.0, "{}", time.implied_ns);
    assert!((time.corrected_ns - 314_775.5).abs() < 1.0, "{}", time.corrected_ns);
    assert_eq!(time.mean_frames, 26_000.0);
    assert_eq!(buffer_time(&[], 1.0), None);
}

#[test]
fn a_size_at_the_line_rate_and_a_mix_have_no_value_and_say_why() {
    let test = BackToBackTest { most_frames: 1_000_000, repetitions: 3 };
    let why = |row, pps| BackToBackPlan::of(&plan(), &test, row, pps).expect_err("no value");
    assert!(why(row(64), Some(14_880_952.380_952_38)).contains("the maximum load"));
    assert!(why(row(64), None).contains("needs a throughput"));
    assert!(why(Row { traffic: 0, size: None }, Some(1e6)).contains("not mixes"));
    assert!(BackToBackPlan::of(&plan(), &test, row(64), Some(12e6)).is_ok());
}

#[test]
fn a_burst_that_always_passes_is_at_least() {
    let (test, _) = run(&test_of(1_000, 2), |frames| Queue { queue: 10_000, drain_pps: 0.0 }.burst(frames, MAX_PPS));
    let bursts = test.bursts(row(64));
    assert!(bursts.iter().all(|burst| burst.frames == 1_000 && burst.at_most), "{bursts:?}");
    assert!(buffer_time(&bursts, 1e5).expect("bursts").at_least);
}

#[test]
fn a_device_without_a_buffer_has_a_burst_of_nothing() {
    let lost = |frames| BurstSeen { sent: frames, received: 0, invalid: None };
    let (test, _) = run(&test_of(100_000, 3), lost);
    assert!(test.bursts(row(64)).iter().all(|burst| burst.frames == 0));
}

#[test]
fn a_tester_that_never_sends_a_whole_burst_ends_the_test_with_a_reason() {
    let short = |frames| BurstSeen { sent: frames - 1, received: 0, invalid: None };
    let (test, trials) = run(&test_of(100_000, 3), short);
    assert_eq!((trials, test.bursts(row(64)).len()), (5, 0));
    let why = test.ended().expect("a reason");
    assert_eq!(why, "bursts of 64 frames stayed invalid: 63 frames sent, but the burst has 64");
}

#[test]
fn a_device_that_passes_and_fails_at_random_has_no_longest_burst_and_the_test_says_so() {
    // Every length needs three trials, and what failed passes when it is asked once more.
    let (mut nth, mut most, mut failed) = (0, 300_000, Vec::new());
    let (test, trials) = run(&test_of(3_000_000, 2), |frames| {
        nth += 1;
        if nth % 3 == 1 {
            if failed.contains(&frames) {
                most = 2 * frames;
            } else if frames > most {
                failed.push(frames);
            }
        }
        let received = if (frames <= most) == (nth % 3 != 1) { frames } else { frames - 1 };
        BurstSeen { sent: frames, received, invalid: None }
    });
    assert_eq!((trials, test.bursts(row(64)).len()), (80, 0));
    assert!(test.ended().is_some_and(|why| why.ends_with("bursts of equal length pass and fail at random")));
}

#[test]
fn later_repetitions_are_short() {
    let queue = Queue { queue: 3_000, drain_pps: 200_000.0 };
    let burst = |frames| queue.burst(frames, MAX_PPS);
    let (_, once) = run(&test_of(5_000_000, 1), burst);
    let (_, ten) = run(&test_of(5_000_000, 10), burst);
    assert!(ten < once * 7, "{once} trials once, {ten} trials ten times");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_queue_is_found_within_five_percent(
        queue in 50_u64..200_000,
        part in 0.0..0.7_f64,
        hiccup in 0.0..0.01_f64,
        error in -0.005..0.0_f64,
        seed in any::<u64>(),
    ) {
        let device = Queue { queue, drain_pps: MAX_PPS * part };
        let mut dice = Dice::new(seed);
        let (test, _) = run(&test_of(2_976_190, 10), |frames| {
            let mut seen = device.burst(frames, MAX_PPS);
            if dice.unit() < hiccup {
                seen.received = seen.received.saturating_sub(1);
            }
            seen
        });
        let bursts = test.bursts(row(64));
        prop_assert_eq!(bursts.len(), 10);
        let longest = device.longest(MAX_PPS);
        // The throughput is known as well as a search finds it: half a percent too low.
        let time = buffer_time(&bursts, device.drain_pps * (1.0 + error)).expect("bursts");
        prop_assert!((time.mean_frames / longest - 1.0).abs() < 0.05, "{} of {longest}", time.mean_frames);
        let buffer_frames = time.corrected_ns * MAX_PPS / 1e9;
        prop_assert!((0.95..=1.05).contains(&(buffer_frames / queue as f64)), "{buffer_frames} of {queue}");
    }

    #[test]
    fn it_ends_whatever_is_observed(
        most in 1_u64..10_000_000,
        repetitions in 0_u32..6,
        choices in prop::collection::vec(0_u8..5, 1..40),
    ) {
        let mut nth = 0;
        let (test, _) = run(&test_of(most, repetitions), |frames| {
            nth += 1;
            let sound = BurstSeen { sent: frames, received: frames, invalid: None };
            match choices[nth % choices.len()] {
                0 | 1 => sound,
                2 => BurstSeen { received: frames - 1, ..sound },
                3 => BurstSeen { received: frames + 1, ..sound },
                _ => BurstSeen { invalid: Some("no".to_owned()), ..sound },
            }
        });
        prop_assert!(test.ended().is_some() || test.bursts(row(64)).len() == repetitions as usize);
    }

    #[test]
    fn it_takes_no_more_trials_than_the_schedule_says(
        most in 1_u64..10_000_000,
        choices in prop::collection::vec(any::<bool>(), 1..60),
    ) {
        let plan = test_of(most, 3);
        let mut nth = 0;
        let (_, trials) = run(&plan, |frames| {
            nth += 1;
            let received = if choices[nth % choices.len()] { frames } else { 0 };
            BurstSeen { sent: frames, received, invalid: None }
        });
        prop_assert!(trials <= 3 * plan.most_trials(), "{trials}, at most {}", 3 * plan.most_trials());
    }
}
