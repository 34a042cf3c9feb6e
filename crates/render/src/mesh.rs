//! A mesh: who is to blame, the grid of its loads, and what slow hosts have in common.

use crate::doc::{Doc, Pair};
use crate::style::Tone;
use crate::table::{Cell, Column, Row, Table};
use crate::words::plural;
use narrows_model::run::mesh::{MeshLoad, MeshReport, MeshState};
use narrows_model::words::units::{bps, micros, percent};

/// The columns of its CSV.
pub(crate) const COLUMNS: &[&str] =
    &["from", "to", "state", "goodput_bps", "expected_bps", "beside_others_bps", "retransmits"];

/// Less than this part of what a load should carry is slow; the judge's own word is in the report's suspects.
const SLOW: f64 = 0.8;

pub(crate) fn doc(report: &MeshReport) -> Doc {
    let (word, tone) = match (report.suspects.is_empty(), measured(report)) {
        (_, 0) => ("NOTHING", Tone::Bad),
        (true, _) => ("EVEN", Tone::Good),
        _ => ("SLOW", Tone::Bad),
    };
    let plan = &report.plan;
    let each = format!(
        "{} between {} hosts, {} of TCP each, {}",
        plural(report.loads.len() as u64, "load"),
        report.members.len(),
        micros(plan.duration_ms * 1_000),
        plural(plan.streams.into(), "stream")
    );
    Doc::new("mesh")
        .verdict(word, tone, &report.headline)
        .paragraph(&each)
        .then(|doc| suspects(doc, report))
        .then(|doc| absent(doc, report))
        .then(|doc| if report.members.len() <= GRID_MAX { doc.table(grid(report)) } else { doc })
        .then(|doc| slow(doc, report))
        .then(|doc| differences(doc, report))
        .then(|doc| {
            let cut = report.interrupted.then(|| "interrupted: the rest of the loads was not made".to_owned());
            let starved = (!report.starved.is_empty())
                .then(|| format!("no CPU time left, so their loads accuse nobody: {}", report.starved.join(", ")));
            doc.warnings(cut.into_iter().chain(starved))
        })
}

/// More hosts make no grid that a reader takes in; CSV and JSON have all loads.
const GRID_MAX: usize = 40;

fn measured(report: &MeshReport) -> usize {
    report.loads.iter().filter(|load| matches!(load.state, MeshState::Measured { .. })).count()
}

fn suspects(doc: Doc, report: &MeshReport) -> Doc {
    if report.suspects.is_empty() {
        return doc;
    }
    let pairs = report.suspects.iter().map(|suspect| {
        let [low, high] = suspect.interval.map(percent);
        let or = if suspect.or.is_empty() { String::new() } else { format!("; as likely: {}", suspect.or.join(", ")) };
        let loads = plural(suspect.loads as u64, "slow load");
        Pair::new(&suspect.element, &format!("of what its loads should carry ({low} to {high}); explains {loads}{or}"))
            .figure(&percent(suspect.carries))
            .tone(Tone::Bad)
    });
    doc.section("who is slow", "the fewest that explain all slow loads").pairs(pairs)
}

fn absent(doc: Doc, report: &MeshReport) -> Doc {
    let away = report.members.iter().filter_map(|member| Some((member, member.absent.as_ref()?)));
    let pairs: Vec<Pair> = away.map(|(member, why)| Pair::new(&member.name, why).tone(Tone::Mark)).collect();
    if pairs.is_empty() { doc } else { doc.section("absent hosts", "").pairs(pairs) }
}

fn of(report: &MeshReport, from: usize, to: usize) -> Option<(&MeshLoad, Option<f64>)> {
    let at = report.loads.iter().position(|load| (load.from, load.to) == (from, to))?;
    Some((&report.loads[at], report.expected_bps.get(at).copied().flatten()))
}

/// Mbit/s in a cell: three digits.
fn megabits(bps: f64) -> String {
    let value = bps / 1e6;
    format!(
        "{value:.*}",
        if value < 9.995 {
            2
        } else if value < 99.95 {
            1
        } else {
            0
        }
    )
}

/// A cell says what it is by its words, not by its colour alone.
fn cell(load: Option<(&MeshLoad, Option<f64>)>) -> Cell {
    match load {
        None => Cell::new("–"),
        Some((load, expected)) => match &load.state {
            MeshState::Measured { goodput_bps, .. } => {
                let slow = expected.is_some_and(|expected| *goodput_bps < SLOW * expected);
                let mark = if slow { "!" } else { "" };
                Cell::new(format!("{mark}{}", megabits(*goodput_bps))).tone(if slow { Tone::Bad } else { Tone::Good })
            }
            MeshState::Unreachable(_) => Cell::new("unreachable").tone(Tone::Mark),
            MeshState::Failed(_) => Cell::new("failed").tone(Tone::Mark),
            MeshState::NotMade => Cell::new("not made"),
        },
    }
}

fn grid(report: &MeshReport) -> Table {
    let numbers = 1..=report.members.len();
    let spare = |nth: usize| u8::try_from(nth).unwrap_or(u8::MAX);
    let columns: Vec<Column> = std::iter::once(Column::id("from \\ to"))
        .chain(numbers.map(|nth| Column::figures(&nth.to_string()).spare(spare(nth))))
        .collect();
    let remark = "Mbit/s; a row is what a host sends; !: below 80 % of what it should be; –: not tested";
    let mut table = Table::new("goodput", remark, &columns);
    for (from, member) in report.members.iter().enumerate() {
        let away = |at: usize| report.members.get(at).is_some_and(|member| member.absent.is_some());
        let cells = (0..report.members.len()).map(|to| match from == to {
            true => Cell::new("·"),
            false if away(from) || away(to) => Cell::new("absent").tone(Tone::Mark),
            false => cell(of(report, from, to)),
        });
        table
            .rows
            .push(Row::new(std::iter::once(Cell::new(format!("{} {}", from + 1, member.name))).chain(cells).collect()));
    }
    table
}

/// Loads that a reader looks for first: slow ones, and those that could not be made.
fn slow(doc: Doc, report: &MeshReport) -> Doc {
    let name = |at: usize| report.members.get(at).map_or("", |it| it.name.as_str());
    let says = |(load, expected): (&MeshLoad, &Option<f64>)| match (&load.state, expected) {
        (MeshState::Measured { goodput_bps, .. }, Some(expected)) if *goodput_bps < SLOW * expected => {
            let beside = load.beside_others_bps.map_or(String::new(), |it| format!("; {} beside others", bps(it)));
            Some(format!("of about {} expected{beside}", bps(*expected))).map(|says| (Some(bps(*goodput_bps)), says))
        }
        (MeshState::Unreachable(why), _) => Some((None, format!("no connection: {why}"))),
        (MeshState::Failed(why), _) => Some((None, format!("failed: {why}"))),
        _ => None,
    };
    let all = report.loads.iter().zip(&report.expected_bps);
    let pairs: Vec<Pair> = all
        .filter_map(|(load, expected)| {
            let (figure, says) = says((load, expected))?;
            let pair = Pair::new(&format!("{} to {}", name(load.from), name(load.to)), &says).tone(Tone::Mark);
            Some(if let Some(figure) = figure { pair.figure(&figure) } else { pair })
        })
        .take(ROWS_MAX)
        .collect();
    if pairs.is_empty() { doc } else { doc.section("slow and failed loads", "").pairs(pairs) }
}

/// CSV and JSON have the others.
const ROWS_MAX: usize = 24;

fn differences(doc: Doc, report: &MeshReport) -> Doc {
    if report.differences.is_empty() {
        return doc;
    }
    let columns = [
        Column::id("setting"),
        Column::words("slow hosts have"),
        Column::figures("of the slow"),
        Column::figures("of the others"),
    ];
    let mut table = Table::new("what differs", "settings that separate the slow hosts from the others", &columns);
    for it in &report.differences {
        let part = |[have, of]: [u64; 2]| format!("{have} of {of}");
        let cells = [it.key.clone(), it.value.clone(), part(it.slow), part(it.others)];
        table.rows.push(Row::new(cells.iter().map(Cell::new).collect()));
    }
    doc.table(table)
}

/// A line of its CSV.
#[derive(serde::Serialize)]
pub(crate) struct Line<'a> {
    from: &'a str,
    to: &'a str,
    state: &'static str,
    goodput_bps: Option<f64>,
    expected_bps: Option<f64>,
    beside_others_bps: Option<f64>,
    retransmits: Option<u64>,
}

/// A load in each line.
pub(crate) fn lines(report: &MeshReport) -> Vec<Line<'_>> {
    let name = |at: usize| report.members.get(at).map_or("", |it| it.name.as_str());
    let line = |(load, expected): (&'_ MeshLoad, &Option<f64>)| {
        let (state, goodput_bps, retransmits) = match &load.state {
            MeshState::Measured { goodput_bps, retransmits, .. } => ("measured", Some(*goodput_bps), *retransmits),
            MeshState::Unreachable(_) => ("unreachable", None, None),
            MeshState::Failed(_) => ("failed", None, None),
            MeshState::NotMade => ("not made", None, None),
        };
        Line {
            from: name(load.from),
            to: name(load.to),
            state,
            goodput_bps,
            expected_bps: *expected,
            beside_others_bps: load.beside_others_bps,
            retransmits,
        }
    };
    report.loads.iter().zip(&report.expected_bps).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fits::{NARROWEST, fits};
    use crate::format::{Document as _, Format};
    use crate::style::Style;
    use narrows_model::run::mesh::{MeshDifference, MeshName, MeshPlan, MeshSuspect, SCHEMA};

    fn report() -> MeshReport {
        let member = |(nth, name): (usize, &str)| MeshName {
            name: name.to_owned(),
            group: String::new(),
            address: format!("192.0.2.{nth}"),
            absent: (nth == 4).then(|| "no route to host".to_owned()),
        };
        let loads: Vec<MeshLoad> = (0..4)
            .flat_map(|from| (0..4).filter(move |to| *to != from).map(move |to| (from, to)))
            .map(|(from, to)| MeshLoad {
                from,
                to,
                opened_by_receiver: false,
                state: match (from, to) {
                    (0, 1) => MeshState::Unreachable("connection timed out".to_owned()),
                    (1, 0) => MeshState::Failed("the other host is gone".to_owned()),
                    (3, 0) => MeshState::NotMade,
                    _ => MeshState::Measured {
                        goodput_bps: if from == 2 { 94.2e6 } else { 941e6 },
                        retransmits: Some(7),
                        busy: [Some(0.2); 2],
                    },
                },
                beside_others_bps: (from == 2).then_some(90e6),
            })
            .collect();
        let expected = |load: &MeshLoad| matches!(load.state, MeshState::Measured { .. }).then_some(941e6);
        MeshReport {
            schema: SCHEMA.to_owned(),
            plan: MeshPlan { duration_ms: 3_000, streams: 1 },
            members: ["a", "b", "c.example", "d", "e"].into_iter().enumerate().map(member).collect(),
            expected_bps: loads.iter().map(expected).collect(),
            loads,
            suspects: vec![MeshSuspect {
                element: "host c.example (sending)".to_owned(),
                or: Vec::new(),
                carries: 0.1,
                interval: [0.09, 0.11],
                loads: 3,
            }],
            starved: vec!["d".to_owned()],
            differences: vec![MeshDifference {
                key: "tcp.wmem_max".to_owned(),
                value: "65536".to_owned(),
                slow: [1, 1],
                others: [0, 3],
                chance: 0.04,
            }],
            headline: "host c.example (sending) carries 10 % of what it should; 9 of 12 loads measured".to_owned(),
            interrupted: true,
        }
    }

    #[test]
    fn a_mesh_in_words() {
        let at = |width| doc(&report()).text(Style { width, ..Style::default() });
        fits("mesh", &at(NARROWEST));
        insta::assert_snapshot!("wide", at(100));
        insta::assert_snapshot!("narrow", at(NARROWEST));
        insta::assert_snapshot!("markdown", doc(&report()).markdown());
        insta::assert_snapshot!("csv", report().write(Format::Csv, Style::default()).unwrap().unwrap());
    }
}
