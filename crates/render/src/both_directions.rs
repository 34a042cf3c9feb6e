//! Diagnoses of both directions: a headline each and whether they differ, then both reports.

use crate::diagnosis::{self, kept::found_at_first};
use crate::doc::Doc;
use crate::format::document;
use crate::words::range;
use narrows_model::run::both_directions::BothDirections;
use narrows_model::words::units::{bps, percent};
use narrows_model::{Direction, Report};

document!(BothDirections, "a diagnosis of both directions", doc);

pub(crate) fn doc(both: &BothDirections, full: bool) -> Doc {
    let head = ways(both).into_iter().fold(Doc::new("Diagnosis of both directions"), |doc, (way, report)| {
        doc.lead(way.word(), &report.map_or_else(|| NOTHING.to_owned(), found_at_first), None)
    });
    let parts = ways(both).into_iter().filter_map(|(way, report)| Some((way, report?)));
    parts.fold(head.plain(&symmetry(both)), |doc, (way, report)| {
        doc.part(diagnosis::doc(report, full).named(title(way)))
    })
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
