//! The schedule of all procedures.

use super::*;
use crate::data::{BackToBackTest, FrmolTest, LatencyTest, LossTest, RecoveryTest, ResetTest, ThroughputTest};
use crate::testing::plan;
use narrows_model::run::search::Goal;

fn whole() -> ForwardingPlan {
    let mut plan = plan();
    plan.tests.throughput =
        Some(ThroughputTest { goals: vec![Goal::ndr(), Goal::pdr()], confirm: 5, max_search_ms: 120_000 });
    plan.tests.latency = Some(LatencyTest { duration_ms: 5_000, repetitions: 3 });
    plan.tests.loss = Some(LossTest { step: 0.1, duration_ms: 1_000 });
    plan.tests.back_to_back = Some(BackToBackTest { most_frames: 1_000_000, repetitions: 10 });
    plan.tests.recovery = Some(RecoveryTest { overload_ms: 5_000, after_ms: 5_000, repetitions: 2 });
    plan.tests.reset = Some(ResetTest { command: vec!["true".to_owned()], within_ms: 60_000 });
    plan.tests.frmol = Some(FrmolTest { duration_ms: 1_000, repetitions: 3 });
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
    assert_eq!(one(&list, Test::Frmol, Some(1518)).expected_ms, 3 * 1_600);
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
        "throughput of traffic[0], 64 B: minimum load is 100 packets/s, but must be below the maximum load of 50 \
        packets/s"
    );
}

#[test]
fn a_plan_file_is_scheduled() {
    let file = crate::plan_file::parse(
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
