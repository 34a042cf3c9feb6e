//! A mesh: who is to blame, the grid of its loads, and what slow hosts have in common.

mod loads;

pub(crate) use loads::{COLUMNS, lines};

use crate::csv;
use crate::doc::{Doc, Pair};
use crate::format::{Writer, document};
use crate::style::Tone;
use crate::table::{Cell, Column, Row, Table};
use crate::words::plural;
use narrows_model::run::mesh::{MeshLoad, MeshPath, MeshReport, MeshState, MeshTried, SLOW};
use narrows_model::words::units::{bps, micros, percent};

document!(
    MeshReport,
    "a mesh",
    |it, _| doc(it),
    Writer::csv("Comma-separated values, one load per line", |it, _| csv::table(COLUMNS, lines(it)))
);

pub(crate) fn doc(report: &MeshReport) -> Doc {
    let (word, tone) = match (report.suspects.is_empty(), report.measured()) {
        (_, 0) => ("NOTHING", Tone::Bad),
        (true, _) if !report.losing.is_empty() => ("LOSS", Tone::Bad),
        (true, _) if !report.starved.is_empty() => ("STARVED", Tone::Mark),
        (true, measured) if measured < report.loads.len() => ("EVEN", Tone::Mark),
        (true, _) => ("EVEN", Tone::Good),
        _ => ("SLOW", Tone::Bad),
    };
    let plan = &report.plan;
    let each = format!(
        "{} between {} hosts, {} of TCP each, {}",
        plural(report.loads.len() as u64, "load"),
        report.members.len(),
        micros(plan.duration_ms.saturating_mul(1_000)),
        plural(plan.streams.into(), "stream")
    );
    Doc::new("mesh")
        .verdict(word, tone, &report.headline)
        .paragraph(&each)
        .then(|doc| suspects(doc, report))
        .then(|doc| losing(doc, report))
        .then(|doc| absent(doc, report))
        .then(|doc| if report.members.len() <= GRID_MAX { round_trips(doc.table(grid(report)), report) } else { doc })
        .picture(loads::band(report))
        .then(|doc| slow(doc, report))
        .then(|doc| narrow(doc, report))
        .then(|doc| unanswered(doc, report))
        .then(|doc| differences(doc, report))
        .then(|doc| if report.members.len() <= GRID_MAX { doc.on_page(loads::every_load(report)) } else { doc })
        .then(|doc| {
            let cut = report.interrupted.then(|| "interrupted: the rest of the loads was not made".to_owned());
            let starved = (!report.starved.is_empty()).then(|| {
                let hosts = report.starved.join(", ");
                format!("out of CPU, so their slow loads are not held against the network: {hosts}")
            });
            let shared = (!report.shared.is_empty()).then(|| {
                let hosts = report.shared.join(", ");
                format!("another mesh ran on these hosts, so loads may have disturbed each other: {hosts}")
            });
            let early = report.ended_early.as_ref().map(|why| format!("the rest of the loads was not made: {why}"));
            let small = small_groups(report);
            let small = (!small.is_empty()).then(|| {
                format!("groups of fewer than three hosts are compared only with themselves: {}", small.join(", "))
            });
            doc.warnings(cut.into_iter().chain(early).chain(starved).chain(shared).chain(small))
        })
}

/// More hosts make no grid that a reader takes in; CSV and JSON have all loads.
const GRID_MAX: usize = 40;

fn suspects(doc: Doc, report: &MeshReport) -> Doc {
    if report.suspects.is_empty() {
        return doc;
    }
    let pairs = report.suspects.iter().map(|suspect| {
        let [low, high] = suspect.interval.map(percent);
        let or = if suspect.or.is_empty() { String::new() } else { format!("; as likely: {}", suspect.or.join(", ")) };
        let loads = plural(suspect.loads as u64, "slow load");
        let found = diagnosis(report, suspect.worst);
        let alone = if suspect.repeated == 0 { ", none repeated alone" } else { "" };
        let says = format!("of what its loads should carry ({low} to {high}); explains {loads}{alone}{or}{found}");
        Pair::new(&suspect.element, &says).figure(&percent(suspect.carries)).tone(Tone::Bad)
    });
    doc.section("who is slow", "the fewest that explain all slow loads").pairs(pairs)
}

/// What the diagnosis of a load found, where there is one.
fn diagnosis(report: &MeshReport, load: [usize; 2]) -> String {
    let found = report.diagnoses.iter().find(|it| [it.from, it.to] == load);
    found.map_or_else(String::new, |it| {
        let run = it.run.as_ref().map_or_else(String::new, |id| format!(" (`narrows report {id}`)"));
        let fix = it.fix.as_ref().map_or_else(String::new, |fix| format!("; fix {fix}"));
        let tried = it.tried.as_ref().map_or_else(String::new, tried);
        format!("; {} to {}: {}{fix}{tried}{run}", name(report, it.from), name(report, it.to), it.headline)
    })
}

/// What a fix gained that was tried.
fn tried(it: &MeshTried) -> String {
    let all = if it.settings.len() > 1 { format!(" ({})", it.settings.join("; ")) } else { String::new() };
    let gained = it.proof.as_ref().map(|proof| {
        let helped = proof.helped_words().to_lowercase();
        format!("; tried{all} in {} pairs of loads: {}: {helped}", proof.after_bps.len(), proof.gain_words())
    });
    let failed = it.failed.as_ref().map(|why| format!("; not tried: {why}"));
    let end = match (it.left.as_slice(), &gained) {
        ([], None) => String::new(),
        ([], Some(_)) => "; rolled back".to_owned(),
        (left, _) => format!("; rollback not confirmed: {}", left.join("; ")),
    };
    [gained, failed].into_iter().flatten().chain([end]).collect()
}

fn absent(doc: Doc, report: &MeshReport) -> Doc {
    let away = report.members.iter().filter_map(|member| Some((member, member.absent.as_ref()?)));
    // That is said of the whole.
    let away = away.filter(|(_, why)| !report.interrupted || why.as_str() != "interrupted");
    let pairs: Vec<Pair> = away.map(|(member, why)| Pair::new(&member.name, why).tone(Tone::Mark)).collect();
    if pairs.is_empty() { doc } else { doc.section("hosts not taking part", "").pairs(pairs) }
}

fn name(report: &MeshReport, at: usize) -> &str {
    report.members.get(at).map_or("", |it| it.name.as_str())
}

/// Elements that lose packets of probes.
fn losing(doc: Doc, report: &MeshReport) -> Doc {
    if report.losing.is_empty() {
        return doc;
    }
    let pairs = report.losing.iter().map(|it| {
        let [low, high] = it.interval.map(percent);
        let or = if it.or.is_empty() { String::new() } else { format!("; as likely: {}", it.or.join(", ")) };
        let slows =
            if it.loads == 0 { String::new() } else { format!("; that slows {}", plural(it.loads as u64, "load")) };
        let found = it.worst.map_or_else(String::new, |load| diagnosis(report, load));
        let lost = format!("{} of {}{or}{slows}{found}", it.lost, it.sent);
        let says = format!("of its packets at a low rate are lost ({low} to {high}): {lost}");
        Pair::new(&it.element, &says).figure(&percent(it.lost as f64 / it.sent.max(1) as f64)).tone(Tone::Bad)
    });
    doc.section("what loses packets", "probes at a low rate; the fewest that explain the losses").pairs(pairs)
}

/// What probes say of the path between two hosts, in either direction.
fn round_trip(report: &MeshReport, a: usize, b: usize) -> Option<f64> {
    let path = report.paths.iter().find(|it| [[a, b], [b, a]].contains(&[it.from, it.to]) && it.rtt_us.is_some())?;
    path.rtt_us.map(|[_, median, _]| median)
}

fn round_trips(doc: Doc, report: &MeshReport) -> Doc {
    if report.paths.iter().all(|path| path.rtt_us.is_none()) {
        return doc;
    }
    doc.table(square(report, "round trip", "ms, median of probes at a low rate; –: not known", |from, to| {
        let us = if from < to { return Cell::new("") } else { round_trip(report, from, to) };
        us.map_or_else(|| Cell::new("–"), |us| Cell::new(format!("{:.*}", if us < 9_950.0 { 2 } else { 1 }, us / 1e3)))
    }))
}

/// Probes that nobody answered: of an end that sends none the other one tells.
fn unanswered(doc: Doc, report: &MeshReport) -> Doc {
    let is_open = |it: &&MeshPath| it.from < it.to && round_trip(report, it.from, it.to).is_none();
    let pairs: Vec<Pair> = report
        .paths
        .iter()
        .filter(is_open)
        .filter_map(|it| Some((it, it.remarks.last()?)))
        .take(ROWS_MAX)
        .map(|(it, why)| {
            Pair::new(&format!("{} to {}", name(report, it.from), name(report, it.to)), why).tone(Tone::Mark)
        })
        .collect();
    if pairs.is_empty() { doc } else { doc.section("probes without an answer", "").pairs(pairs) }
}

/// Groups whose hosts have no others to be compared with.
fn small_groups(report: &MeshReport) -> Vec<&str> {
    let of = |group: &str| report.members.iter().filter(|it| it.group == group && it.absent.is_none()).count();
    let mut small: Vec<&str> =
        report.members.iter().map(|it| it.group.as_str()).filter(|group| (1..3).contains(&of(group))).collect();
    small.sort_unstable();
    small.dedup();
    small.into_iter().map(|group| if group.is_empty() { "the hosts without a group" } else { group }).collect()
}

/// Ways that let only smaller packets pass than most do.
fn narrow(doc: Doc, report: &MeshReport) -> Doc {
    let mut all: Vec<u32> = report.paths.iter().filter_map(|path| path.mtu_bytes).collect();
    all.sort_unstable();
    let runs = all.chunk_by(|a, b| a == b).max_by_key(|run| run.len());
    let Some(most) = runs.and_then(|run| run.first().copied()) else { return doc };
    let pairs: Vec<Pair> = report
        .paths
        .iter()
        .filter_map(|path| Some((path, path.mtu_bytes.filter(|bytes| *bytes < most)?)))
        .take(ROWS_MAX)
        .map(|(path, bytes)| {
            let way = format!("{} to {}", name(report, path.from), name(report, path.to));
            Pair::new(&way, &format!("is the largest IP packet; most paths pass {most} B"))
                .figure(&format!("{bytes} B"))
        })
        .collect();
    if pairs.is_empty() { doc } else { doc.section("smaller path MTU", "").pairs(pairs) }
}

/// A load with what it should carry, and whether it is slow.
#[derive(Clone, Copy)]
struct Seen<'a> {
    load: &'a MeshLoad,
    expected_bps: Option<f64>,
    is_slow: bool,
    /// It carries too little, and that is for lack of CPU time.
    is_starved: bool,
}

fn seen(report: &MeshReport) -> impl Iterator<Item = Seen<'_>> {
    let judged = report.expected_bps.iter().zip(&report.slow);
    report.loads.iter().zip(judged).map(|(load, (expected, slow))| {
        let carries =
            |bps: f64| matches!(load.state, MeshState::Measured { goodput_bps, .. } if goodput_bps < SLOW * bps);
        let is_starved = !*slow && expected.is_some_and(carries);
        Seen { load, expected_bps: *expected, is_slow: *slow, is_starved }
    })
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
fn cell(load: Option<Seen<'_>>) -> Cell {
    match load {
        None => Cell::new("–"),
        Some(Seen { load, is_slow, is_starved, .. }) => match &load.state {
            MeshState::Measured { goodput_bps, .. } => {
                let (mark, tone) = match (is_slow, is_starved) {
                    (true, _) => ("!", Tone::Bad),
                    (_, true) => ("c", Tone::Mark),
                    _ => ("", Tone::Good),
                };
                Cell::new(format!("{mark}{}", megabits(*goodput_bps))).tone(tone)
            }
            MeshState::Unreachable(_) => Cell::new("unreachable").tone(Tone::Mark),
            MeshState::Failed(_) => Cell::new("failed").tone(Tone::Mark),
            MeshState::NotMade => Cell::new("not made"),
        },
    }
}

fn grid(report: &MeshReport) -> Table {
    let starved = if report.starved.is_empty() { "" } else { "; c: the same, for lack of CPU time" };
    let remark =
        format!("Mbit/s; a row is what a host sends; !: below 80 % of what it should be{starved}; –: not tested");
    square(report, "goodput", &remark, |from, to| {
        let load = seen(report).find(|it| (it.load.from, it.load.to) == (from, to));
        let cell = cell(load);
        if load.is_some() { cell.link(loads::id(from, to)) } else { cell }
    })
}

/// A table of all hosts by all hosts.
fn square(report: &MeshReport, title: &str, remark: &str, of: impl Fn(usize, usize) -> Cell) -> Table {
    let numbers = 1..=report.members.len();
    let spare = |nth: usize| u8::try_from(nth).unwrap_or(u8::MAX);
    let columns: Vec<Column> = std::iter::once(Column::id("from \\ to"))
        .chain(numbers.map(|nth| Column::figures(&nth.to_string()).spare(spare(nth))))
        .collect();
    let mut table = Table::new(title, remark, &columns);
    for (from, member) in report.members.iter().enumerate() {
        let away = |at: usize| report.members.get(at).is_some_and(|member| member.absent.is_some());
        let cells = (0..report.members.len()).map(|to| match from == to {
            true => Cell::new("·"),
            false if away(from) || away(to) => Cell::new("absent").tone(Tone::Mark),
            false => of(from, to),
        });
        table
            .rows
            .push(Row::new(std::iter::once(Cell::new(format!("{} {}", from + 1, member.name))).chain(cells).collect()));
    }
    table
}

/// Loads that a reader looks for first: slow ones, and those that could not be made.
fn slow(doc: Doc, report: &MeshReport) -> Doc {
    let says = |Seen { load, expected_bps, is_slow, is_starved }| match (&load.state, expected_bps) {
        (MeshState::Measured { goodput_bps, .. }, Some(expected)) if is_slow || is_starved => {
            let beside = load.beside_others_bps.map_or(String::new(), |it| format!("; {} beside others", bps(it)));
            let starved = if is_starved { "; a host was out of CPU" } else { "" };
            Some(format!("of about {} expected{starved}{beside}", bps(expected)))
                .map(|says| (Some(bps(*goodput_bps)), says))
        }
        (MeshState::Unreachable(why), _) => Some((None, format!("no connection: {why}"))),
        (MeshState::Failed(why), _) => Some((None, format!("failed: {why}"))),
        _ => None,
    };
    let pairs: Vec<Pair> = seen(report)
        .filter_map(|it| {
            let (figure, says) = says(it)?;
            let way = format!("{} to {}", name(report, it.load.from), name(report, it.load.to));
            let pair = Pair::new(&way, &says).tone(Tone::Mark);
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
        Column::words("read by the rule of"),
    ];
    let of_loads = report.differences.iter().any(|it| it.of_loads);
    let (says, unit) = if of_loads {
        ("settings of the hosts at which slow loads begin or end more often than elsewhere", " loads")
    } else {
        ("settings that separate the slow hosts from the others", "")
    };
    let mut table = Table::new("what differs", says, &columns);
    for it in &report.differences {
        let part = |[have, of]: [u64; 2]| format!("{have} of {of}{unit}");
        let cause = it.cause.clone().unwrap_or_default();
        let cells = [it.key.clone(), it.value.clone(), part(it.slow), part(it.others), cause];
        table.rows.push(Row::new(cells.iter().map(Cell::new).collect()));
    }
    doc.table(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fits::{NARROWEST, fits};
    use crate::format::{Document as _, Format};
    use crate::style::Style;
    use narrows_model::run::mesh::{MeshDiagnosis, MeshDifference, MeshLoss, MeshName, MeshPlan, MeshSuspect, SCHEMA};
    use narrows_model::run::report::ProofView;

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
            plan: MeshPlan {
                duration_ms: 3_000,
                streams: 1,
                probe_ms: 8_000,
                diagnose: true,
                try_fixes: true,
                budget_ms: None,
                budget_bytes: None,
            },
            paths: vec![
                MeshPath {
                    from: 0,
                    to: 2,
                    rtt_us: Some([190.0, 230.0, 400.0]),
                    packets: Some([400, 9, 0]),
                    mtu_bytes: Some(1_500),
                    ..MeshPath::default()
                },
                MeshPath { from: 2, to: 0, mtu_bytes: Some(1_400), ..MeshPath::default() },
                MeshPath {
                    from: 1,
                    to: 3,
                    rtt_us: Some([9_100.0, 12_340.0, 13_000.0]),
                    mtu_bytes: Some(1_500),
                    ..MeshPath::default()
                },
            ],
            slow: loads.iter().map(|load| load.from == 2 && load.to != 1).collect(),
            losing: vec![MeshLoss {
                element: "the pair a to c.example alone".to_owned(),
                or: Vec::new(),
                lost: 9,
                sent: 400,
                interval: [0.012, 0.042],
                loads: 1,
                worst: Some([0, 2]),
            }],
            diagnoses: vec![MeshDiagnosis {
                from: 2,
                to: 0,
                headline: "94.2 Mbit/s by tcp-send-buffer at c.example: the send buffer is too small".to_owned(),
                cause: Some("tcp-send-buffer".to_owned()),
                reads: vec!["tcp.wmem_max".to_owned()],
                tried: Some(MeshTried {
                    settings: vec!["c.example: net.ipv4.tcp_wmem = 4096 16384 4194304".to_owned()],
                    proof: Some(ProofView {
                        before_bps: vec![94e6, 94.2e6, 94.1e6],
                        after_bps: vec![938e6, 941e6, 940e6],
                        before_loss: Vec::new(),
                        after_loss: Vec::new(),
                        gain: Some(9.98),
                        gain_interval: Some([9.93, 10.04]),
                        predicted_bps: 941e6,
                        predicted_interval_bps: None,
                        helped: true,
                    }),
                    ..MeshTried::default()
                }),
                fix: Some("at c.example: sysctl -w net.ipv4.tcp_wmem='4096 16384 4194304'".to_owned()),
                run: Some("x7kq".to_owned()),
            }],
            ended_early: Some("the time of --budget was used".to_owned()),
            members: ["a", "b", "c.example", "d", "e"].into_iter().enumerate().map(member).collect(),
            expected_bps: loads.iter().map(expected).collect(),
            loads,
            suspects: vec![MeshSuspect {
                element: "host c.example (sending)".to_owned(),
                or: Vec::new(),
                carries: 0.1,
                interval: [0.09, 0.11],
                loads: 3,
                repeated: 3,
                worst: [2, 0],
            }],
            starved: vec!["d".to_owned()],
            shared: vec!["b".to_owned()],
            differences: vec![MeshDifference {
                key: "tcp.wmem_max".to_owned(),
                value: "65536".to_owned(),
                slow: [1, 1],
                others: [0, 3],
                of_loads: false,
                chance: 0.04,
                cause: Some("tcp-send-buffer".to_owned()),
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
        // Each cell of the grid leads to a row of its page.
        let page = doc(&report()).html();
        let of = |begin: &str| {
            let all = page.match_indices(begin).map(|(at, _)| page[at + begin.len()..].split('"').next().unwrap_or(""));
            all.collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!((of("href=\"#load").len(), of("href=\"#load")), (12, of("id=\"load")));
        insta::assert_snapshot!("csv", report().write(Format::Csv, Style::default()).unwrap().unwrap());
    }
}
