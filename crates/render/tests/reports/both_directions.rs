//! Diagnoses of both directions, as a reader sees them.

use crate::samples;

use narrows_model::run::both_directions::{BothDirections, DirectionSymmetry, SCHEMA};
use narrows_model::{Direction, Report};
use narrows_render::{Document as _, Format, Style};

fn sample() -> BothDirections {
    let mut down: Report = samples::healthy();
    down.verdict.direction = Direction::Down;
    BothDirections {
        schema: SCHEMA.to_owned(),
        up: Some(samples::limited()),
        down: Some(down),
        symmetry: Some(DirectionSymmetry {
            up_bps: 37.1e6,
            up_interval_bps: [36.9e6, 37.3e6],
            down_bps: 941e6,
            down_interval_bps: [940e6, 942e6],
            ratio: 941.0 / 37.1,
            between_runs: 0.0085,
            differs: true,
        }),
    }
}

fn written(both: &BothDirections, format: Format) -> String {
    both.write(format, Style::default()).expect("a view").expect("a format that it has")
}

#[test]
fn a_headline_each_then_whether_they_differ_then_both_reports() {
    let both = sample();
    let text = written(&both, Format::Text);
    insta::assert_snapshot!(text.split("====").next().expect("a head"));
    assert!(text.contains("==== up: from the client to the server ====\n\nLIMITED "), "{text}");
    assert!(text.contains("==== down: from the server to the client ====\n\nHEALTHY "), "{text}");
    let markdown = written(&both, Format::Markdown);
    insta::assert_snapshot!("head_as_markdown", markdown.split("\n# ").next().expect("a head"));
    let alike = DirectionSymmetry { differs: false, ..both.symmetry.expect("both were measured") };
    let text = written(&BothDirections { symmetry: Some(alike), ..both }, Format::Text);
    assert!(text.contains("The directions do not differ by more than"), "{text}");
}

#[test]
fn the_headline_of_a_fix_that_is_kept_is_that_before_it() {
    let text = written(&BothDirections { up: Some(samples::kept()), ..sample() }, Format::Text);
    assert!(text.starts_with("up    before the fix: The server's receive window holds this path"), "{text}");
    assert!(text.contains("\ndown  Healthy: "), "{text}");
}

#[test]
fn a_direction_that_was_not_measured_is_said_to_be_so() {
    let text = written(&BothDirections { down: None, symmetry: None, ..sample() }, Format::Text);
    assert!(text.contains("down  nothing was measured\nThe directions are not compared"), "{text}");
    assert!(!text.contains("==== down"), "{text}");
}

#[test]
fn json_keeps_the_keys_of_a_single_report() {
    let json: serde_json::Value = serde_json::from_str(&written(&sample(), Format::Json)).expect("JSON");
    assert_eq!(json["schema"], "narrows.both-directions/1");
    let single = serde_json::to_value(samples::limited()).expect("JSON");
    assert_eq!(json["up"], single);
}
