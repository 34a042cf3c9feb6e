//! Stored runs, read, diagnosed and rendered again: the regression test of the diagnosis. Every `fixtures/runs/*.run.json` is picked
//! up; those of format 1 test its conversion, too.
//!
//! Some of them are made here from the figures of documents; after a change of `stories.rs`, `UPDATE_RUNS=1` writes them anew.

mod ablation;
mod drawn;
mod figures;
mod stories;
mod told;

use narrows_diagnose::diagnose;
use narrows_model::run::RunPlan;
use narrows_model::{Place, Report, Run, Status, Verdict};
use narrows_render::{Document as _, Format, Style};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/runs")
}

/// The stored runs by the names of their files, in the order of names.
fn stored() -> Vec<(String, Run)> {
    let mut names = narrows_sys::files::list(&folder()).expect("the stored runs");
    names.sort();
    let stem = |name: &String| Some((name.strip_suffix(".run.json")?.to_owned(), folder().join(name)));
    let load = |path: PathBuf| narrows_store::load(&path).expect("a run of a known form");
    names.iter().filter_map(stem).map(|(stem, path)| (stem, load(path))).collect()
}

fn the(name: &str) -> Run {
    stored().into_iter().find(|(stem, _)| stem == name).expect(name).1
}

fn report(run: &Run) -> Report {
    narrows_diagnose::report(run).expect("a baseline")
}

fn verdicts(run: &Run) -> Vec<Verdict> {
    (0..).map_while(|round| diagnose(run, round)).map(|round| round.verdict).collect()
}

/// The report of a run that is no diagnosis, on a terminal; `None` of a diagnosis.
fn rendered(run: &Run) -> Option<String> {
    (!matches!(run.plan, RunPlan::Diagnose(_))).then(|| styled(run, Style::default()))
}

fn styled(run: &Run, style: Style) -> String {
    let text = match &run.plan {
        RunPlan::Diagnose(_) => report(run).write(Format::Text, style),
        RunPlan::Measure(_) => narrows_runner::measurement(run).expect("a measurement").write(Format::Text, style),
        RunPlan::Search(_) => narrows_runner::search_report(run).expect("a search").write(Format::Text, style),
        RunPlan::Sweep(_) => narrows_runner::sweep_report(run).expect("a sweep").write(Format::Text, style),
    };
    text.expect("a report").expect("text")
}

#[test]
fn a_report_fits_every_width_and_a_pipe_has_every_column() {
    for (name, run) in stored() {
        for (width, full) in [40, 48, 60, 80].into_iter().flat_map(|width| [(width, false), (width, true)]) {
            let text = styled(&run, Style { width, full, ..Style::default() });
            // A command is copied, so it stands in one line.
            for line in text.lines().filter(|line| !line.contains("sysctl -w") && !line.contains("$ ")) {
                assert!(line.chars().count() <= width, "{name} in {width} columns: {line}");
            }
        }
        let [screen, narrow] =
            [(160, false), (60, true)].map(|(width, wide)| styled(&run, Style { width, wide, ..Style::default() }));
        for word in screen.split_whitespace().filter(|word| word.chars().all(|it| it.is_ascii_alphanumeric())) {
            assert!(narrow.contains(word), "{name}: {word} is missing in a pipe: {narrow}");
        }
    }
}

/// What must not change unnoticed: status, headline, and of each cause its place and the kinds of its evidence; of a run that is no
/// diagnosis its report.
fn shown(run: &Run) -> String {
    let mut text = format!("{}\n", run.made_by);
    if let Some(report) = rendered(run) {
        return text + &report;
    }
    let report = report(run);
    let _ = writeln!(text, "{:?}: {}", report.verdict.status, report.verdict.headline);
    for cause in &report.verdict.causes {
        let kinds: Vec<&str> = cause.witnesses.iter().map(|witness| witness.kind.as_str()).collect();
        let rejected: Vec<&str> = cause.rejected.iter().map(|rejected| rejected.id.as_str()).collect();
        let _ = writeln!(text, "- {} at {}: {}; not {}", cause.id, cause.at, kinds.join(", "), rejected.join(", "));
    }
    for round in &report.rounds {
        let _ = writeln!(text, "act {}: {:?}: {}", round.round, round.status, round.headline);
    }
    text
}

#[test]
fn the_made_runs_are_those_of_the_documents() {
    for run in stories::all() {
        let path = folder().join(format!("{}.run.json", run.id));
        if std::env::var_os("UPDATE_RUNS").is_some() {
            narrows_store::save(&run, &path).expect("a file beside the others");
        }
        let kept = narrows_store::load(&path).expect("UPDATE_RUNS=1 makes it");
        assert!(kept == run, "{} is not what stories.rs makes; UPDATE_RUNS=1 writes it anew", path.display());
    }
}

#[test]
fn every_stored_run_is_diagnosed_as_before() {
    for (name, run) in stored() {
        insta::assert_snapshot!(name, shown(&run));
    }
}

#[test]
fn the_short_slot_is_named_at_its_host_whichever_way_the_load_went() {
    for name in ["10g-x4-slot-up", "10g-x4-slot-down"] {
        let report = report(&the(name));
        let verdict = &report.verdict;
        assert_eq!(verdict.status, Status::Limited, "{name}: {verdict:#?}");
        let cause = &verdict.causes[0];
        assert_eq!((cause.id.as_str(), cause.at), ("pcie-width", Place::Client), "{name}");
        let kinds: Vec<&str> = cause.witnesses.iter().map(|witness| witness.kind.as_str()).collect();
        assert_eq!(kinds, ["ceiling", "parameter", "experiment"], "{name}");
        assert!(cause.witnesses[1].says.contains("4 of 8 lanes"), "{}", cause.witnesses[1].says);
        // Twice the lanes carry at most twice as much; then a core or the link is next.
        let then = cause.predicted_bps.expect("a prediction");
        assert!((6e9..10e9).contains(&then), "{name}: {then}");
    }
}

#[test]
fn the_fixed_buffer_of_2007_is_named_with_the_parameter_that_capped_it() {
    let report = report(&the("long-path-before"));
    let cause = &report.verdict.causes[0];
    assert_eq!(report.verdict.status, Status::Limited, "{:#?}", report.verdict);
    assert_eq!((cause.id.as_str(), cause.at), ("tcp-receive-buffer-fixed", Place::Server));
    assert!(cause.fix.advice.contains("net.core.rmem_max (now 128 KiB)"), "{}", cause.fix.advice);
    // "We are now fully using the 1GE link": 942 Mbit/s were measured after the fix. The label of the card alone does not foretell it.
    assert_eq!(cause.predicted_bps, None);
}

#[test]
fn the_same_path_after_its_tuning_is_healthy() {
    let verdict = report(&the("long-path-after")).verdict;
    assert_eq!(verdict.status, Status::Healthy, "{verdict:#?}");
    assert!((verdict.goodput_bps - 942e6).abs() < 1e6, "{}", verdict.goodput_bps);
}

#[test]
fn a_rate_that_other_traffic_disturbs_accuses_nobody() {
    let verdict = report(&the("long-path-reverse")).verdict;
    assert_ne!(verdict.status, Status::Limited, "{verdict:#?}");
}
