//! What the tests of one path found over time.

use crate::csv;
use crate::doc::{Doc, Sentence};
use crate::format::{Writer, document};
use crate::history::{signed, value};
use crate::svg::{Canvas, Entry, Font, Look, Marker, Panel, Scale, Stroke, legend, palette};
use crate::table::{Cell, Column, Row, Table};
use crate::words::plural;
use narrows_model::Unit;
use narrows_model::run::fleet::{FleetChange, FleetPoint, FleetSeries};
use narrows_model::words::date;
use narrows_model::words::units::bps;

document!(
    FleetSeries,
    "a path of a fleet over time",
    |it, _| doc(it),
    Writer::csv("Comma-separated values, one test or day per line", |it, _| csv::table(COLUMNS, &it.points))
);

/// Rows of the table of the report; CSV and JSON have all.
const ROWS_MAX: usize = 50;
/// The table may have no room for older ones.
const DIAGNOSES_MAX: usize = 10;
const NEWEST: &str = "the newest first, 10 at most";
const WIDTH: f64 = 1080.0;
const LEFT: f64 = 100.0;
const HIGH: f64 = 170.0;
const APART: f64 = 84.0;
/// The lines of meshes, in colours that no mark has.
const LINES: [Look; 3] = [
    Look::nth(0),
    Look { marker: Marker::Square, ..Look::nth(5) }.dashed("12 3"),
    Look { marker: Marker::Up, ..Look::nth(2) }.dashed("4 2"),
];
/// What the picture shows, in a sentence beside it.
const SAYS: &str = "Round trip: the line is the median of each probe, the band reaches from its minimum to its 90th percentile. Loss: the part \
    of the packets of each probe. A dashed line marks a change point, a dotted one that the routers of the path changed, a dash-dotted one \
    that settings of one of its hosts did, and a diamond a failed test.";

fn doc(report: &FleetSeries) -> Doc {
    let tests = |it: &FleetPoint| it.of_tests.unwrap_or(1);
    let count = |kind: &str| report.points.iter().filter(|it| it.kind == kind).map(tests).sum::<u64>();
    let failed: u64 = report.points.iter().filter(|it| is_failed(it)).map(tests).sum();
    let says = format!(
        "{} to {}: {}, {}, {failed} without a figure",
        report.from,
        report.to,
        plural(count("load"), "load"),
        plural(count("probe"), "probe")
    );
    let doc = Doc::new(&format!("{} to {}", report.from, report.to)).headline(&says);
    if report.points.is_empty() {
        return doc.paragraph("no test of this path ended in that time");
    }
    let changes = report.changes.iter().map(|it| Sentence::listed(&change(it)));
    let set = report
        .settings
        .iter()
        .map(|it| Sentence::listed(&format!("{}, {}: {}", time(it.at_unix_ms), it.host, it.says)));
    let says =
        |it: &FleetPoint| Some(Sentence::listed(&format!("{}: {}", time(it.at_unix_ms), it.diagnosis.as_ref()?)));
    let diagnosed: Vec<Sentence> = report.points.iter().rev().filter_map(says).take(DIAGNOSES_MAX).collect();
    doc.picture(Some(picture(report)))
        .paragraph(SAYS)
        .then(|doc| if report.changes.is_empty() { doc } else { doc.heading("changes").sentences(changes) })
        .then(|doc| if report.settings.is_empty() { doc } else { doc.heading("settings that changed").sentences(set) })
        .then(|doc| if diagnosed.is_empty() { doc } else { doc.section("diagnoses", NEWEST).sentences(diagnosed) })
        .table(table(report))
}

/// Whether nothing was found: a day on which some tests failed has figures of the others.
const fn is_failed(it: &FleetPoint) -> bool {
    it.failure.is_some() && it.goodput_bps.is_none() && it.rtt_us.is_none()
}

fn change(it: &FleetChange) -> String {
    let unit = if it.figure == "goodput" { Unit::BitsPerSecond } else { Unit::Microseconds };
    let [low, high] = it.interval.map(signed);
    let of = [it.before, it.after].map(|mean| value(unit, mean));
    format!(
        "{}: {} ({low} to {high}), from {} to {}, since {}",
        it.figure,
        signed(it.change),
        of[0],
        of[1],
        time(it.at_unix_ms)
    )
}

fn time(unix_ms: u64) -> String {
    date::utc(unix_ms / 1_000)
}

fn table(report: &FleetSeries) -> Table {
    let columns = [
        Column::id("time"),
        Column::words("test"),
        Column::figures("goodput").spare(1),
        Column::figures("retransmits").spare(2),
        Column::figures("round trip").spare(1),
        Column::figures("one way").spare(2),
        Column::figures("lost").spare(1),
        Column::words("says").spare(1),
    ];
    let shown = match report.points.len() {
        many if many > ROWS_MAX => format!("the newest {ROWS_MAX} of {many}; CSV and JSON have all"),
        _ => "the newest first".to_owned(),
    };
    let figures = "round trip: minimum, median, 90th percentile; one way: median, and how far the clocks may be out";
    let mut table = Table::new("tests", format!("{shown}; {figures}"), &columns);
    let one_way = |[us, error]: [f64; 2]| format!("{:.2} ± {:.2} ms", us / 1e3, error / 1e3);
    let rtt = |all: [f64; 3]| all.map(|us| format!("{:.2}", us / 1e3)).join(" / ") + " ms";
    let row = |it: &FleetPoint| {
        Row::new(vec![
            Cell::new(time(it.at_unix_ms)),
            Cell::new(format!("{}, {}", it.mesh, it.kind)),
            Cell::maybe(it.goodput_bps.map(bps)),
            Cell::maybe(it.retransmits.map(|it| it.to_string())),
            Cell::maybe(it.rtt_us.map(rtt)),
            Cell::maybe(it.one_way_us.map(one_way)),
            Cell::maybe(it.packets.map(|[sent, lost]| format!("{lost} of {sent}"))),
            Cell::new(it.failure.as_ref().or(it.diagnosis.as_ref()).map_or("", String::as_str)),
        ])
    };
    table.rows.extend(report.points.iter().rev().take(ROWS_MAX).map(row));
    table.trimmed()
}

/// Goodput, round trip with its band, and loss over time.
pub fn picture(report: &FleetSeries) -> String {
    let at = |it: &FleetPoint| it.at_unix_ms as f64;
    let meshes = meshes(report);
    let goodput = stretches(report, "load", |it| it.goodput_bps);
    let median = stretches(report, "probe", |it| it.rtt_us.map(|all| all[1]));
    let lost = |it: &FleetPoint| it.packets.filter(|[sent, _]| *sent > 0).map(|[sent, lost]| lost as f64 / sent as f64);
    let loss = stretches(report, "probe", lost);
    let mut plots = vec![
        ("goodput", "goodput", Unit::BitsPerSecond, goodput),
        ("round trip", "round trip", Unit::Microseconds, median),
        ("loss", "packets lost", Unit::Fraction, loss),
    ];
    plots.retain(|it| !it.3.is_empty());
    let title = format!("{} to {}", report.from, report.to);
    // The names of many meshes take lines of the legend.
    let high = 110.0 + 20.0 * (meshes.len() / 3) as f64 + (HIGH + APART) * plots.len() as f64;
    let mut canvas = Canvas::titled(WIDTH, high, &crate::words::clean(&title), SAYS.split(". ").next().unwrap_or(SAYS));
    let named = |(nth, name): (usize, &&str)| Entry::line(Font::LABEL.fit(name, 140.0), line(nth));
    let mut entries: Vec<Entry> = match meshes.len() {
        0 | 1 => vec![Entry::line("each test", line(0))],
        _ => meshes.iter().enumerate().map(named).collect(),
    };
    entries.extend([
        Entry::plain("change point", Look::nth(1).dashed("7 4")),
        Entry::plain("routers changed", Look::nth(3).dashed("2 4")),
        Entry::plain("settings changed", Look::nth(4).dashed("8 3 2 3")),
        Entry::point("failed", Look { color: palette::VERMILION, ..Look::nth(2) }),
    ]);
    let mut top = 84.0 + legend(&mut canvas, (LEFT, 84.0), WIDTH - 20.0, &entries) + 16.0;
    let times = report.points.iter().map(at);
    let [first, last] = [times.clone().fold(f64::INFINITY, f64::min), times.fold(0.0, f64::max)];
    let xs = Scale::Linear(first, last.max(first + 60_000.0));
    for (figure, title, unit, parts) in &plots {
        let highest = report.points.iter().filter_map(|it| it.rtt_us.map(|all| all[2]));
        let all = parts.iter().flat_map(|(_, points)| points).map(|it| it.1);
        let ys = match *figure {
            "round trip" => Scale::from_zero(all.chain(highest)),
            // Without loss the axis still says what little would be.
            "loss" => Scale::from_zero(all.chain([0.01])),
            _ => Scale::from_zero(all),
        };
        let panel = Panel { left: LEFT, top, wide: WIDTH - LEFT - 40.0, high: HIGH, xs, ys };
        panel.grid_y(&mut canvas, title, |it| value(*unit, it));
        axis(&mut canvas, panel, xs);
        if *figure == "round trip" {
            band(&mut canvas, panel, report);
        }
        marks(&mut canvas, panel, report, figure);
        let are_many = parts.iter().map(|(_, points)| points.len()).sum::<usize>() > 150;
        for (mesh, points) in parts {
            if are_many && points.len() > 1 {
                panel.plain(&mut canvas, points, line(*mesh));
            } else {
                let hint = |(x, y): (f64, f64)| format!("{}: {}", time(x as u64), value(*unit, y));
                panel.series(&mut canvas, points, line(*mesh), hint);
            }
        }
        top += HIGH + APART;
    }
    canvas.finish()
}

/// The meshes whose tests there are, in the order of their first ones.
fn meshes(report: &FleetSeries) -> Vec<&str> {
    let mut meshes: Vec<&str> = Vec::new();
    for it in &report.points {
        if !meshes.contains(&it.mesh.as_str()) {
            meshes.push(it.mesh.as_str());
        }
    }
    meshes
}

const fn line(mesh: usize) -> Look {
    LINES[mesh % LINES.len()]
}

/// Values that belong together, by their times in ms, each with the place of its mesh.
type Stretches<T> = Vec<(usize, Vec<(f64, T)>)>;

/// Those of one kind of tests: another mesh has a line of its own, and where a test found nothing, nothing is known.
fn stretches<T>(report: &FleetSeries, kind: &str, value: impl Fn(&FleetPoint) -> Option<T>) -> Stretches<T> {
    let mut all: Stretches<T> = Vec::new();
    for (nth, mesh) in meshes(report).into_iter().enumerate() {
        all.push((nth, Vec::new()));
        for it in report.points.iter().filter(|it| it.kind == kind && it.mesh == mesh) {
            match (value(it), all.last_mut()) {
                (Some(value), Some((_, last))) => last.push((it.at_unix_ms as f64, value)),
                (None, Some((_, last))) if it.failure.is_some() && !last.is_empty() => all.push((nth, Vec::new())),
                _ => {}
            }
        }
    }
    all.retain(|(_, it)| !it.is_empty());
    all
}

fn axis(canvas: &mut Canvas, panel: Panel, xs: Scale) {
    let (from, to) = xs.ends();
    let ticks: Vec<f64> = (0..=6).map(|nth| from + (to - from) * f64::from(nth) / 6.0).collect();
    // As `2026-11-27 20:56:02`: of one day the time alone tells them apart.
    let label = |ms: f64| {
        let words = time(ms.max(0.0) as u64);
        let range = if to - from < 86_400e3 { 11..16 } else { 5..16 };
        words.get(range).unwrap_or_default().replace('T', " ")
    };
    let [first, last] = [from, to].map(|ms| time(ms.max(0.0) as u64).chars().take(10).collect::<String>());
    let days = if first == last { first } else { format!("{first} to {last}") };
    panel.axis_x(canvas, &ticks, &format!("{days}, UTC"), label);
}

/// From the minimum to the 90th percentile of each probe.
fn band(canvas: &mut Canvas, panel: Panel, report: &FleetSeries) {
    for (mesh, known) in stretches(report, "probe", |it| it.rtt_us) {
        let above = known.iter().map(|(x, all)| (panel.x(*x), panel.y(all[2])));
        let below = known.iter().rev().map(|(x, all)| (panel.x(*x), panel.y(all[0])));
        let outline: Vec<(f64, f64)> = above.chain(below).collect();
        canvas.polygon(&outline, line(mesh).color, 0.2);
    }
}

/// Change points of this figure, changes of routers, and tests that failed.
fn marks(canvas: &mut Canvas, panel: Panel, report: &FleetSeries, figure: &str) {
    let mut mark = |at_unix_ms: u64, stroke: Stroke| {
        let x = panel.x(at_unix_ms as f64);
        canvas.line([x, panel.top, x, panel.bottom()], stroke);
        x
    };
    let mut routers: Option<&[String]> = None;
    for point in report.points.iter().filter(|it| !it.hops.is_empty()) {
        if routers.is_some_and(|before| before != point.hops) {
            mark(point.at_unix_ms, Look::nth(3).dashed("2 4").stroke(1.5));
        }
        routers = Some(&point.hops);
    }
    // Before and after what was measured they are only named.
    let within =
        report.points.first().map_or(0, |it| it.at_unix_ms)..=report.points.last().map_or(0, |it| it.at_unix_ms);
    for it in report.settings.iter().filter(|it| within.contains(&it.at_unix_ms)) {
        mark(it.at_unix_ms, Look::nth(4).dashed("8 3 2 3").stroke(1.5));
    }
    let changes: Vec<(f64, String)> = report
        .changes
        .iter()
        .filter(|it| it.figure == figure)
        .map(|it| (mark(it.at_unix_ms, Look::nth(1).dashed("7 4").stroke(1.6)), signed(it.change)))
        .collect();
    for (x, words) in changes {
        canvas.text((x + 5.0, panel.top + 12.0), &words, Font::LABEL);
    }
    let kind = if figure == "goodput" { "load" } else { "probe" };
    for point in report.points.iter().filter(|it| it.kind == kind && is_failed(it)) {
        let at = (panel.x(point.at_unix_ms as f64), panel.bottom() - 6.0);
        let hint = format!("{}: {}", time(point.at_unix_ms), point.failure.as_deref().unwrap_or_default());
        canvas.marker(Look::nth(2).marker, at, 4.0, palette::VERMILION, &hint);
    }
}

/// Of its CSV.
const COLUMNS: &[&str] = &[
    "at_unix_ms", "mesh", "kind", "goodput_bps", "retransmits", "rtt_min_us=rtt_us/0", "rtt_p50_us=rtt_us/1",
    "rtt_p90_us=rtt_us/2", "one_way_us=one_way_us/0", "one_way_error_us=one_way_us/1", "sent=packets/0",
    "lost=packets/1", "hops", "failure", "diagnosis", "of_tests",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fits::{NARROWEST, fits};
    use crate::style::Style;
    use narrows_model::run::fleet::FleetSetting;

    #[test]
    fn a_path_over_time_has_its_band_its_marks_and_its_failures() {
        let probe = |nth: u64| FleetPoint {
            at_unix_ms: 1_700_000_000_000 + nth * 60_000,
            mesh: "latency".to_owned(),
            kind: "probe".to_owned(),
            rtt_us: (nth != 3).then_some([90.0, 100.0, 130.0]),
            packets: Some([43, nth % 2]),
            one_way_us: Some([60.0, 7.5]),
            hops: vec![if nth < 4 { "10.0.0.1" } else { "10.0.0.2" }.to_owned()],
            failure: (nth == 3).then(|| "<b>no answer".to_owned()),
            ..FleetPoint::default()
        };
        let change = FleetChange {
            figure: "round trip".to_owned(),
            at_unix_ms: 1_700_000_120_000,
            before: 100.0,
            after: 150.0,
            change: 0.5,
            interval: [0.4, 0.6],
        };
        let (from, to) = ("a".to_owned(), "b<i>".to_owned());
        let set = |nth: u64| FleetSetting {
            at_unix_ms: 1_700_000_000_000 + nth * 60_000,
            host: "a".to_owned(),
            says: "tcp.sack: on → <b>off".to_owned(),
        };
        let report = FleetSeries {
            schema: String::new(),
            from,
            to,
            points: (0..8).map(probe).collect(),
            changes: vec![change],
            settings: vec![set(5), set(99)],
        };
        let svg = picture(&report);
        assert_eq!((svg.matches("fill-opacity").count(), svg.matches("stroke-dasharray=\"2 4\"").count()), (2, 3));
        assert_eq!(svg.matches("stroke-dasharray=\"8 3 2 3\"").count(), 3, "the legend, and one in each panel");
        assert!(svg.contains(">2023-11-14, UTC</text>"), "its day: {svg}");
        assert!(svg.contains("+50.0 %") && svg.contains("&lt;b&gt;no answer") && !svg.contains("<b>"), "{svg}");
        let text = doc(&report).text(Style { width: NARROWEST, ..Style::default() });
        fits("fleet series", &text);
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!(words.join(" ").contains("0 loads, 8 probes, 1 without a figure"), "{text}");
        assert!(text.contains("settings that changed") && text.matches("tcp.sack").count() == 2, "{text}");
        let csv = csv::table(COLUMNS, &report.points).unwrap();
        assert!(
            csv.lines()
                .nth(1)
                .unwrap()
                .starts_with("1700000000000,latency,probe,,,90.0,100.0,130.0,60.0,7.5,43,0,10.0.0.1,"),
            "{csv}"
        );
    }

    #[test]
    fn each_mesh_has_its_line_and_older_rows_are_counted() {
        let load = |nth: u64| FleetPoint {
            at_unix_ms: 1_700_000_000_000 + nth * 3_600_000,
            mesh: ["day", "night"][usize::from(nth % 2 == 1)].to_owned(),
            kind: "load".to_owned(),
            goodput_bps: Some(1e9),
            ..FleetPoint::default()
        };
        let report = FleetSeries {
            schema: String::new(),
            from: "a".to_owned(),
            to: "b".to_owned(),
            points: (0..60).map(load).collect(),
            changes: Vec::new(),
            settings: Vec::new(),
        };
        assert!(!doc(&report).markdown().contains("iagnoses"));
        let said = |nth: u64| FleetPoint { diagnosis: Some(format!("limit {nth}")), goodput_bps: None, ..load(nth) };
        let points = report.points.iter().cloned().chain((0..12).map(said)).collect();
        let text = doc(&FleetSeries { points, ..report.clone() }).markdown();
        let list = text.split("iagnoses").nth(1).expect("its diagnoses").split("| time").next().expect("a list");
        assert_eq!((list.matches(": limit ").count(), list.contains("limit 1\n")), (10, false), "{list}");
        let lines = stretches(&report, "load", |it| it.goodput_bps);
        let counts: Vec<(usize, usize)> = lines.iter().map(|(mesh, points)| (*mesh, points.len())).collect();
        assert_eq!(counts, [(0, 30), (1, 30)]);
        let svg = picture(&report);
        assert!([">day<", ">night<", ">2023-11-14 to 2023-11-17, UTC<"].iter().all(|it| svg.contains(it)), "{svg}");
        assert!(table(&report).remark.starts_with("the newest 50 of 60; "));
    }
}
