//! Diagnoses of both directions: a headline each and whether they differ, then both reports.

use crate::style::{Style, Tone};
use crate::text::page::Page;
use crate::words::{clean, range};
use crate::{markdown, text};
use narrows_model::run::both_directions::BothDirections;
use narrows_model::words::units::{bps, percent};
use narrows_model::{Direction, Report};

pub fn text(both: &BothDirections, style: Style) -> String {
    let mut page = Page::new(style);
    for (way, report) in ways(both) {
        let headline = report.map_or_else(|| NOTHING.to_owned(), headline);
        page.labelled(&format!("{:<5}", way.word()), &headline, Some(Tone::Strong));
    }
    page.labelled("     ", &symmetry(both), None);
    let mut out = page.finish();
    for (way, report) in ways(both) {
        let Some(report) = report else { continue };
        let title = style.paint(Tone::Strong, &format!("==== {} ====", title(way)));
        out += &format!("\n{title}\n\n{}", text::report(report, style));
    }
    out
}

/// For a ticket or a wiki.
pub fn markdown(both: &BothDirections) -> String {
    let mut out = String::from("# Diagnosis of both directions\n\n");
    for (way, report) in ways(both) {
        let headline = report.map_or_else(|| NOTHING.to_owned(), headline);
        out += &format!("- **{}**: {}\n", way.word(), markdown::text(&headline));
    }
    out += &format!("\n{}\n", markdown::text(&symmetry(both)));
    for report in ways(both).into_iter().filter_map(|(_, report)| report) {
        out += &format!("\n{}", markdown::report(report));
    }
    out
}

const NOTHING: &str = "nothing was measured";

fn ways(both: &BothDirections) -> [(Direction, Option<&Report>); 2] {
    [(Direction::Up, both.up.as_ref()), (Direction::Down, both.down.as_ref())]
}

const fn title(way: Direction) -> &'static str {
    match way {
        Direction::Up => "up: from the client to the server",
        Direction::Down => "down: from the server to the client",
        Direction::Both => "both",
    }
}

fn headline(report: &Report) -> String {
    clean(&report.verdict.headline)
}

/// Whether the directions differ, in a sentence.
fn symmetry(both: &BothDirections) -> String {
    let Some(it) = both.symmetry else {
        return "The directions are not compared: one of them was not measured whole.".to_owned();
    };
    let of = |word: &str, value: f64, interval: [f64; 2]| format!("{word} {} ({})", bps(value), range(interval));
    let (up, down) = (of("up", it.up_bps, it.up_interval_bps), of("down", it.down_bps, it.down_interval_bps));
    if it.differs {
        return format!("The directions differ: {up}, {down}: down carries {:.2} times as much as up.", it.ratio);
    }
    let runs = percent(it.between_runs);
    format!(
        "The directions do not differ by more than their 95 % intervals and the usual {runs} between runs: {up}, {down}."
    )
}
