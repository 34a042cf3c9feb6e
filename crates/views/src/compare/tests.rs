//! Verdicts, units, pairs and warnings of small comparisons.

use super::*;
use narrows_model::run::compare::CompareVerdict;
use narrows_model::run::history::Headline;

fn numbers(values: &[f64]) -> Side {
    Side { name: "file".into(), values: Values::Numbers(values.to_vec()) }
}

fn options() -> Options {
    Options { level: 0.95, margin: 0.01, paired: false, figures: vec![] }
}

const STEADY: [f64; 6] = [100.0, 100.2, 99.8, 100.1, 99.9, 100.05];

fn verdicts(sides: &[Side], options: &Options) -> Vec<CompareVerdict> {
    compare(sides, options).unwrap().figures[0].comparisons.iter().map(|it| it.verdict).collect()
}

#[test]
fn different_the_same_and_cannot_tell() {
    let higher = STEADY.map(|it| it + 10.0);
    let wide = [90.0, 110.0, 95.0, 105.0, 99.0, 103.0];
    let sides = [STEADY, higher, STEADY.map(|it| it + 0.3), wide].map(|it| numbers(&it));
    let found = verdicts(&sides, &options());
    assert_eq!(found, [CompareVerdict::Different, CompareVerdict::Same, CompareVerdict::CannotTell]);
    let report = compare(&sides, &options()).unwrap();
    let comparisons = &report.figures[0].comparisons;
    // 2/C(12, 6) = 1/462, of three comparisons 3/462.
    assert!((comparisons[0].ranks.p - 1.0 / 462.0).abs() < 1e-12);
    assert!((comparisons[0].p_holm - 3.0 / 462.0).abs() < 1e-12);
    assert_eq!(comparisons[0].ratio, Some(10.0 / 100.025));
    assert!(comparisons[2].runs_needed.unwrap() > 6);
    // A small difference that is proven is the same within the margin, and different with a smaller one.
    let small = Options { margin: 0.001, ..options() };
    let apart = [STEADY, STEADY.map(|it| it + 0.5)].map(|it| numbers(&it));
    assert_eq!(verdicts(&apart, &options()), [CompareVerdict::Same]);
    assert_eq!(verdicts(&apart, &small), [CompareVerdict::Different]);
}

#[test]
fn pairs_cancel_what_is_common() {
    let before = [10.0, 20.0, 40.0, 80.0, 160.0, 320.0];
    let after = [11.0, 21.1, 41.2, 81.3, 161.4, 321.5];
    let sides = [before, after].map(|it| numbers(&it));
    let paired = Options { paired: true, ..options() };
    assert_eq!(verdicts(&sides, &options()), [CompareVerdict::CannotTell]);
    assert_eq!(verdicts(&sides, &Options { margin: 0.001, ..paired.clone() }), [CompareVerdict::Different]);
    let error = compare(&[sides[0].clone(), numbers(&[1.0])], &paired).unwrap_err();
    assert_eq!(error, "cannot compare file with file as pairs: 1 values against 6; leave --paired out");
}

#[test]
fn a_figure_is_named_without_its_direction_where_there_is_only_one() {
    let figures = ["goodput up", "loss", "loss up", "mean RTT up", "mean RTT down", "idle RTT"];
    let figures = figures.iter().map(|it| Headline::new(*it, 1.0, Unit::Number)).collect();
    let run = crate::history::empty("diagnose", figures);
    let named = |name| meant(&run, name);
    assert_eq!(named("goodput").as_deref(), Ok("goodput up"));
    assert_eq!(named("idle").as_deref(), Ok("idle RTT"));
    assert_eq!(named("loss").as_deref(), Ok("loss"), "its own name comes first");
    assert_eq!(named("RTT up").as_deref(), Ok("mean RTT up"));
    let several = named("mean").unwrap_err();
    assert_eq!(
        several,
        "cannot compare the figure `mean`: the name is ambiguous; give one of `mean RTT up`, `mean RTT down`"
    );
    assert_eq!(named("good").as_deref(), Ok("good"), "words are whole");
}

fn run(id: &str, hour: u64, value: f64) -> StoredRun {
    StoredRun {
        id: id.into(),
        started_unix_us: hour * 3_600_000_000,
        plan: "0123".into(),
        ..crate::history::empty("diagnose", vec![Headline::new("goodput up", value, Unit::BitsPerSecond)])
    }
}

#[test]
fn warnings_name_drift_order_and_unlike_runs() {
    let side = |first: u64, values: &[f64]| {
        let runs = (first..).zip(values).map(|(hour, value)| run(&format!("r{hour}"), hour, *value));
        Side { name: "tag:x".into(), values: Values::Runs(runs.collect()) }
    };
    let drifting = side(1, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    let other = side(20, &[3.0, 3.1, 2.9, 3.05, 2.95, 3.02, 30.0]);
    let report = compare(&[drifting.clone(), other], &options()).unwrap();
    assert_eq!(report.figures[0].unit, Unit::BitsPerSecond);
    let text = report.warnings.join("\n");
    assert!(
        text.contains("A, goodput up: the values drift with their order, by +150.0 % from the first to the last"),
        "{text}"
    );
    assert!(text.contains("B, goodput up: outliers, not left out: value 7"), "{text}");
    assert!(text.contains("not interleaved"), "{text}");
    let mut unlike = drifting.clone();
    if let Values::Runs(runs) = &mut unlike.values {
        runs[0].plan = "4567".into();
    }
    let text = compare(&[drifting.clone(), unlike], &options()).unwrap().warnings.join("\n");
    assert!(text.contains("the runs have different plans") && text.contains("a run is on both sides"), "{text}");
    let error =
        compare(&[drifting, numbers(&STEADY)], &Options { figures: vec!["x".into()], ..options() }).unwrap_err();
    assert_eq!(error, "cannot compare run r1: it has no figure `x`; it has `goodput up` (--figure)");
}
