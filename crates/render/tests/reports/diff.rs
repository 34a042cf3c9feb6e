//! Two diagnoses side by side: what is matched, and how it is written.

use crate::samples;

use narrows_model::run::diff::{DiffGroup, DiffReport};
use narrows_model::run::report::ExperimentView;
use narrows_model::{Direction, Ending, Place};
use narrows_render::{Document as _, Format, Style};
use narrows_views::diff::of_reports;

fn written(diff: &DiffReport, format: Format, style: Style) -> String {
    diff.write(format, style).expect("no JSON").expect("it has the format")
}

fn text(diff: &DiffReport, style: Style) -> String {
    written(diff, Format::Text, style)
}

/// The path before its receive buffer was raised, and after.
fn mended() -> DiffReport {
    let mut after = samples::healthy();
    after.run.id = "20070920-101500-0000002b".into();
    after.verdict.goodput_bps = 631e6;
    let experiment = |id: &str| ExperimentView { id: id.into(), what: String::new(), goodput_bps: 640e6 };
    after.experiments = vec![experiment("more-streams"), experiment("larger-buffers")];
    of_reports(&samples::limited(), &after)
}

#[test]
fn figures_are_matched_and_what_changed_is_found() {
    let diff = mended();
    let find = |group, name: &str| {
        diff.figures.iter().find(|it| it.group == group && it.name == name).map(|it| (it.values, it.differs))
    };
    assert_eq!(find(DiffGroup::Goodput, "goodput"), Some(([Some(37.1e6), Some(631e6)], true)));
    assert_eq!(find(DiffGroup::Path, "capacity"), Some(([None, Some(978e6)], true)));
    assert_eq!(find(DiffGroup::Path, "idle RTT"), Some(([Some(34_851.0), Some(34_851.0)], false)));
    assert_eq!(find(DiffGroup::Ceilings, "tcp-receive-window"), Some(([Some(37.2e6), None], true)));
    assert_eq!(find(DiffGroup::Ceilings, "link-speed"), Some(([Some(949e6), Some(949e6)], false)));
    assert_eq!(find(DiffGroup::Experiments, "more-streams"), Some(([Some(148.2e6), Some(640e6)], true)));
    assert_eq!(find(DiffGroup::Experiments, "larger-buffers"), Some(([None, Some(640e6)], true)));
    let changed: Vec<_> = diff.parameters.iter().map(|it| (it.at, it.key.as_str())).collect();
    assert_eq!(changed, [(Place::Server, "tcp.rmem.min")]);
    assert!((diff.goodput_ratio.expect("A got something") - 17.008).abs() < 0.001);
    assert!(diff.summary.iter().any(|it| it.contains("inside the predicted 602 Mbit/s to 666 Mbit/s")));
    samples::same::reads_back(&diff);
}

#[test]
fn a_run_equals_itself() {
    let diff = of_reports(&samples::healthy(), &samples::healthy());
    assert!(diff.figures.iter().all(|it| !it.differs) && diff.parameters.is_empty() && diff.remarks.is_empty());
    assert_eq!(diff.goodput_ratio, Some(1.0));
    insta::assert_snapshot!(text(&diff, Style::default()));
}

#[test]
fn what_cannot_be_compared_is_said() {
    let mut other = samples::long_names();
    other.verdict.direction = Direction::Down;
    other.run.ending = Ending::Interrupted;
    let diff = of_reports(&samples::limited(), &other);
    assert_eq!(diff.remarks.len(), 3, "{:?}", diff.remarks);
    assert!(diff.remarks[0].contains("the direction is not the same: up in A, down in B"));
    for width in [80, 100, 160] {
        let text = text(&diff, Style { width, ..Style::default() });
        assert!(!text.contains('\x1b'));
        assert!(text.lines().all(|line| line.chars().count() <= width), "{width}: {text}");
    }
}

#[test]
fn as_text() {
    insta::assert_snapshot!(text(&mended(), Style::default()));
}

#[test]
fn as_text_with_what_is_the_same() {
    insta::assert_snapshot!(text(&mended(), Style { full: true, width: 80, ..Style::default() }));
}

#[test]
fn as_markdown() {
    insta::assert_snapshot!(written(&mended(), Format::Markdown, Style::default()));
}
