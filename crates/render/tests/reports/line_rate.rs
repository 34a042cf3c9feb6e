//! The arithmetic of lines, as a reader sees it.

use narrows_model::load::line_rate::LineRateReport;
use narrows_render::{Style, json, line_rate};

const SIZES: [u32; 8] = [64, 128, 256, 512, 1024, 1280, 1518, 9216];

#[test]
fn the_tables_of_the_usual_lines() {
    let report = LineRateReport::of(&[100_000_000, 1_000_000_000, 10_000_000_000, 100_000_000_000], &SIZES);
    insta::assert_snapshot!(line_rate::report(&report, Style::default()));
}

#[test]
fn no_line_is_wider_than_eighty_columns() {
    let report = LineRateReport::of(&[1, 10_000, 999_000_000_000, 9_000_000_000_000_000], &SIZES);
    let text = line_rate::report(&report, Style { width: 80, ..Style::default() });
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn json_keeps_what_the_text_rounds() {
    let report = LineRateReport::of(&[1_000_000_000], &[64]);
    let text = json::pretty(&report).expect("JSON");
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let row = &value["tables"][0]["rows"][0];
    assert_eq!(value["schema"], "narrows.line-rate/1");
    assert_eq!(row["frames_per_second"], 1e9 / 672.0);
    assert_eq!((&row["wire_bytes"], &row["frame_ns"]), (&84.into(), &672.0.into()));
    assert!(row["tcp_goodput_bps"].is_null(), "a frame of 64 bytes has no room for a segment with timestamps");
}
