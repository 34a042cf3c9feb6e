//! The search: its lines, tables and pictures.

use crate::samples;

use narrows_model::run::report::PathProfileView;
use narrows_model::run::search::*;
use narrows_model::run::search_report::{BoundsAt, LoadUnit, SearchReport};
use narrows_model::*;
use narrows_render::{Style, search};
use narrows_views as views;
use samples::udp::run_view;

fn plan() -> SearchPlan {
    SearchPlan { tester_max_pps: Some(1.2e6), ..SearchPlan::between(1_000.0, 1_000_000.0) }
}

fn trial(load_pps: f64, ended_at_ms: u64, loss: f64) -> LoadTrial {
    let intended = load_pps as u64;
    let received = intended - (intended as f64 * loss) as u64;
    let seen = Observation {
        intended,
        offered: intended,
        sent: intended,
        received,
        effective_ms: 1_050,
        ..Observation::default()
    };
    LoadTrial { load_pps, duration_ms: 1_000, ended_at_ms, seen }
}

fn result(goal: &str, outcome: Outcome, lower: Option<f64>, upper: Option<f64>) -> GoalResult {
    GoalResult {
        goal: goal.into(),
        outcome,
        lower_pps: lower,
        upper_pps: upper,
        conditional_throughput_pps: lower.map(|pps| pps * 0.9999),
    }
}

fn record() -> SearchRecord {
    let loads = [
        (1_000_000.0, 0.9),
        (100_000.0, 0.19),
        (81_000.0, 0.0),
        (90_000.0, 0.1),
        (82_000.0, 0.012),
        (81_200.0, 0.0),
        (81_400.0, 0.002),
        (81_300.0, 0.0),
        (81_600.0, 0.004),
        (81_350.0, 0.0004),
        (81_700.0, 0.006),
    ];
    let mut trials: Vec<LoadTrial> =
        loads.iter().enumerate().map(|(n, (load, loss))| trial(*load, 1_050 * (n as u64 + 1), *loss)).collect();
    trials[0].seen.sent = 900_000;
    trials[3].seen.invalid = Some("the rate was not kept: 88.1 kpps of 90.0 kpps".into());
    SearchRecord {
        plan: plan(),
        trials,
        results: vec![
            result("NDR", Outcome::Found, Some(81_300.0), Some(81_350.0)),
            result("PDR", Outcome::Found, Some(81_600.0), Some(81_700.0)),
        ],
        spent: vec![Spent { what: "path profile".to_owned(), ms: 2_480 }],
    }
}

fn history(record: &SearchRecord) -> Vec<BoundsAt> {
    let of = |goal: &Goal, until: usize| {
        let seen = || record.trials[..=until].iter().filter(|it| it.seen.invalid.is_none());
        let passes = |it: &&LoadTrial| it.seen.loss_ratio().expect("something was due") <= goal.loss_ratio;
        GoalBounds {
            goal: goal.name.clone(),
            lower_pps: seen().filter(passes).map(|it| it.load_pps).max_by(f64::total_cmp),
            upper_pps: seen().filter(|it| !passes(it)).map(|it| it.load_pps).min_by(f64::total_cmp),
            target: 1,
            targets: 3,
            settled: until >= 9,
        }
    };
    (0..record.trials.len())
        .map(|n| BoundsAt {
            at_ms: record.trials[n].ended_at_ms,
            bounds: record.plan.goals.iter().map(|goal| of(goal, n)).collect(),
        })
        .collect()
}

fn built(record: &SearchRecord, curve: Vec<LossPoint>) -> SearchReport {
    let unit = LoadUnit::datagram(1472, Family::Ipv4);
    let path_profile = None;
    let around = views::search::Context {
        flow: Flow::Up,
        unit,
        sizes: Vec::new(),
        history: history(record),
        curve,
        path_profile,
    };
    views::search::build(record, around, run_view())
}

fn curve() -> SearchReport {
    let mut record = record();
    record.plan.method = SearchMethod::LossCurve { step: 0.1, trial_ms: 1_000 };
    record.plan.max_load_pps = 100_000.0;
    record.plan.goals.clear();
    record.results.clear();
    record.trials = (0..6)
        .map(|n| {
            let load = 100_000.0 - 10_000.0 * f64::from(n);
            trial(load, 1_050 * (u64::from(n as u32) + 1), (1.0 - 81_300.0 / load).max(0.0))
        })
        .collect();
    let points = record.trials.iter().map(|it| LossPoint {
        load_pps: it.load_pps,
        load_percent: it.load_pps / 1e3,
        loss_ratio: it.seen.loss_ratio().expect("something was due"),
        unsent_ratio: if it.load_pps > 95_000.0 { 0.02 } else { 0.0 },
    });
    let points = points.collect();
    built(&record, points)
}

#[test]
fn two_goals() {
    insta::assert_snapshot!(search::text::report(&built(&record(), vec![]), Style::default()));
}

#[test]
fn a_result_that_a_queue_may_raise_says_so() {
    let why = |interval_pps: [f64; 2], buffer_us: f64| {
        let mut record = record();
        record.plan.hint = Some(CapacityHint { interval_pps, buffer_us, agreed_sum_ms: None });
        built(&record, vec![]).goals[0].why.clone()
    };
    // 0.25 % of a second are half of the width.
    assert_eq!(why([81_000.0, 82_000.0], 2_500.0), None);
    assert_eq!(
        why([80_500.0, 81_000.0], 12_000.0).as_deref(),
        Some(
            "trials of 1.00 s may hide an excess of 1.2 % in the profiled queue or bucket of 12.0 ms; use trials of \
            5.00 s (--duration)"
        )
    );
    assert_eq!(
        why([80_000.0, 81_000.0], 1_000.0).as_deref(),
        Some(
            "above the profiled capacity (942 Mbit/s to 954 Mbit/s of payload): trials of 1.00 s may hide the excess \
            in the queue or bucket; use longer trials (--duration)"
        )
    );
    let mut grown = record();
    for trial in &mut grown.trials {
        trial.seen.delay_growth_us = Some(8_600);
    }
    insta::assert_snapshot!(
        "a_queue_took_in_the_excess",
        built(&grown, vec![]).goals[0].why.as_deref().unwrap_or_default()
    );
    // The higher load filled the queue, and tells more of what one path sustains.
    let lower = grown.results.iter().filter_map(|it| it.lower_pps).fold(f64::MAX, f64::min);
    for trial in grown.trials.iter_mut().filter(|trial| trial.load_pps > lower) {
        trial.seen.delay_growth_us = Some(53_000);
    }
    let goals = built(&grown, vec![]).goals;
    let sustained: Vec<_> =
        goals.iter().map(|goal| goal.why.as_ref().and_then(|why| why.split("in 1.00 s").next())).collect();
    assert!(sustained.len() == 2 && sustained[0].is_some_and(|why| why.contains("about")), "{sustained:?}");
    assert_eq!(sustained[0], sustained[1], "one path sustains one rate");
    let path_profile = PathProfileView {
        summary: "the path sustains 976 Mbit/s behind a queue".into(),
        capacity_bps: Some(976e6),
        capacity_interval_bps: Some([966e6, 986e6]),
        queue_us: 12_000.0,
        ..samples::profile()
    };
    let report = SearchReport { path_profile: Some(path_profile), ..built(&record(), vec![]) };
    let text = search::text::summary(&report, Style::default());
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = "path profile, IP packets: the path sustains 976 Mbit/s behind a queue; in datagrams of 1472 B that is about 958 Mbit/s of \
                payload; longest queue 12.0 ms";
    assert!(text.contains(line), "{text}");
}

#[test]
fn what_was_not_found_has_its_reason() {
    let mut record = record();
    record.plan.tester_max_pps = None;
    record.plan.goals =
        vec![Goal::ndr(), Goal::pdr(), Goal::rfc2544(), Goal::tst009(), Goal { name: "own".into(), ..Goal::pdr() }];
    record.results = vec![
        result("NDR", Outcome::MinLoadFails, None, Some(1_000.0)),
        result("PDR", Outcome::MaxLoadPasses, Some(1e6), None),
        result("RFC 2544", Outcome::Unfinished, Some(81_000.0), Some(90_000.0)),
        result("TST009", Outcome::TesterLimited(TesterLimit::Unsent), Some(81_000.0), Some(90_000.0)),
        result("own", Outcome::TesterLimited(TesterLimit::AtMaximum), Some(81_000.0), None),
    ];
    let mut report = built(&record, vec![]);
    report.run.ending = Ending::Interrupted;
    insta::assert_snapshot!(search::text::summary(&report, Style::default()));
}

#[test]
fn a_loss_curve() {
    insta::assert_snapshot!(search::text::report(&curve(), Style::default()));
}

#[test]
fn a_narrow_terminal() {
    for report in [built(&record(), vec![]), curve()] {
        let text = search::text::report(&report, Style { width: 60, ..Style::default() });
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
    }
}

#[test]
fn as_json_it_reads_back() {
    let report = built(&record(), vec![]);
    samples::same::reads_back(&report);
    assert_eq!(report.goals[0].lower.map(|it| it.wire_bps), Some(81_300.0 * 1538.0 * 8.0));
}

#[test]
fn pictures() {
    insta::assert_snapshot!("search.svg", search::svg::picture(&built(&record(), vec![])));
    insta::assert_snapshot!("curve.svg", search::curve::picture(&curve()));
    let mut nothing = record();
    nothing.trials.clear();
    assert!(search::svg::picture(&built(&nothing, vec![])).contains("No trials."));
}
