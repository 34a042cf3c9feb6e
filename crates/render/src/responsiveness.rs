//! Responsiveness under working conditions: RPM with its class, and the latency of each direction beside the idle one.

use crate::csv;
use crate::doc::{Doc, Sentence};
use crate::format::{Writer, document};
use crate::over_time::{Curve, plot};
use crate::style::Tone;
use crate::table::{Cell, Column, Row, Table};
use crate::words::plural;
use narrows_model::load::responsiveness::{
    Band, ResponsivenessDirection, ResponsivenessLoad, ResponsivenessPlan, ResponsivenessPoint, ResponsivenessReport,
};
use narrows_model::words::units::{bps, grouped, micros};
use narrows_model::{Distribution, Flow, Unit};

document!(
    ResponsivenessReport,
    "a test of responsiveness",
    |it, _| doc(it),
    Writer::csv("Comma-separated values, one interval of one direction per line", |it, _| csv::table(
        COLUMNS, &it.series
    ))
);

/// The columns of its CSV.
pub(crate) const COLUMNS: &[&str] =
    &["direction=flow", "from_s", "to_s", "goodput_bps", "connections", "working_p50_us", "self_p50_us"];

/// ns as a time with a unit.
fn time(ns: u64) -> String {
    micros(ns.div_ceil(1_000))
}

fn signed(ns: i64) -> String {
    format!("{}{}", if ns < 0 { "-" } else { "+" }, time(ns.unsigned_abs()))
}

const fn word(flow: Flow) -> &'static str {
    match flow {
        Flow::Up => "up",
        Flow::Down => "down",
    }
}

fn title(report: &ResponsivenessReport) -> String {
    let control = report.congestion_control.as_ref().map(|name| format!(", {name} here")).unwrap_or_default();
    format!("HTTP/2 over TLS to {} ({}){control}", report.asked, report.address)
}

fn rpm(value: f64) -> String {
    grouped(i128::from(crate::words::rounded(value)))
}

/// The finding of a direction: `down  512 RPM, fair (high confidence), 94.1 Mbit/s with 9 connections in 12.0 s`.
fn finding(it: &ResponsivenessDirection) -> String {
    let responsiveness = it.responsiveness.map_or("responsiveness unknown".to_owned(), |it| {
        format!("{} RPM, {} ({} confidence)", rpm(it.rpm), it.band.word(), it.confidence.word())
    });
    format!(
        "{responsiveness}; {} ({} confidence) with {} in {}",
        bps(it.goodput_bps),
        it.goodput_confidence.word(),
        plural(it.connections.into(), "connection"),
        micros(it.duration_ms * 1_000)
    )
}

const fn tone(band: Band) -> Tone {
    match band {
        Band::Poor => Tone::Bad,
        Band::Fair => Tone::Mark,
        Band::Good | Band::Excellent => Tone::Good,
    }
}

fn latencies(report: &ResponsivenessReport) -> Table {
    let columns = [
        Column::words(""),
        Column::figures("p50"),
        Column::figures("p95"),
        Column::figures("p99"),
        Column::figures("max").spare(1),
        Column::figures("over idle"),
        Column::figures("RPM"),
        Column::figures("samples").spare(2),
    ];
    let mut all =
        Table::new("round trips", "idle, working: of new connections; self probes: on connections with load", &columns);
    let row = |name: String, times: &Distribution, p95: u64, over: Option<i64>, value: Option<f64>| {
        let part = |value: u64| Cell::maybe((times.count > 0).then(|| time(value)));
        Row::new(vec![
            Cell::new(name),
            part(times.p50),
            part(p95),
            part(times.p99),
            part(times.max),
            Cell::maybe(over.map(signed)),
            Cell::maybe(value.map(rpm)),
            Cell::new(grouped(times.count)),
        ])
    };
    all.rows.push(row("idle".to_owned(), &report.idle_ns, report.idle_p95_ns, None, None));
    for it in &report.directions {
        let way = word(it.flow);
        let values = it.responsiveness;
        let (foreign, own) = (values.map(|it| it.foreign_rpm), values.map(|it| it.self_rpm));
        all.rows.push(row(format!("{way}, working"), &it.working_ns, it.working_p95_ns, it.increase_ns, foreign));
        let over = it.increase_ns.zip(it.gap_ns).map(|(increase, gap)| increase + gap);
        all.rows.push(row(format!("{way}, self probes"), &it.self_ns, it.self_p95_ns, over, own));
    }
    all
}

pub(crate) fn doc(report: &ResponsivenessReport) -> Doc {
    let doc = Doc::new("Responsiveness").picture(Some(picture(report))).lead("responsiveness", &title(report), None);
    let doc = report.directions.iter().fold(doc, |doc, it| {
        doc.of(word(it.flow), &finding(it), it.responsiveness.map_or(Tone::Mark, |it| tone(it.band)))
    });
    doc.table(latencies(report)).sentences(report.remarks.iter().map(|it| Sentence::new(it)))
}

/// Goodput, connections and latency over time (SVG).
pub fn picture(report: &ResponsivenessReport) -> String {
    let curve = |it: &ResponsivenessDirection| {
        let points = |of: fn(&ResponsivenessPoint) -> Option<f64>| -> Vec<(f64, f64)> {
            let series = report.series.iter().filter(|point| point.flow == it.flow);
            series.filter_map(|point| Some((f64::midpoint(point.from_s, point.to_s), of(point)?))).collect()
        };
        Curve {
            name: word(it.flow).to_owned(),
            figures: vec![
                points(|it| Some(it.goodput_bps)),
                points(|it| Some(it.connections.into())),
                points(|it| it.working_p50_us),
                points(|it| it.self_p50_us),
            ],
        }
    };
    let figures = [
        ("goodput", Unit::BitsPerSecond),
        ("connections", Unit::Count),
        ("median of new connections", Unit::Microseconds),
        ("median of self probes", Unit::Microseconds),
    ];
    let curves: Vec<Curve> = report.directions.iter().map(curve).collect();
    plot("Responsiveness", &title(report), &figures, &curves)
}

/// One line of progress: the last interval.
pub fn progress(load: &ResponsivenessLoad, plan: &ResponsivenessPlan) -> String {
    let Some(last) = load.intervals.last() else { return String::new() };
    let before = load.intervals.len().checked_sub(2).and_then(|nth| load.intervals.get(nth)).map_or(0, |it| it.end_us);
    let us = last.end_us.saturating_sub(before).max(1);
    let rate = last.bytes as f64 * 8e6 / us as f64;
    let middle = |mut times: Vec<u64>| {
        times.sort_unstable();
        times.get(times.len() / 2).map_or("–".to_owned(), |us| micros(*us))
    };
    let new = load.foreign.iter().filter(|it| it.at_us > before).flat_map(|it| [it.tcp_us, it.tls_us, it.http_us]);
    let own = load.own.iter().filter(|it| it.at_us > before).map(|it| it.http_us);
    format!(
        "{:<4} {:>4} of {}  {:>2} connections  {:>12}  working {}, self {}",
        word(load.flow),
        micros(last.end_us / 100_000 * 100_000),
        micros(plan.limit_ms * 1_000),
        last.connections,
        bps(rate),
        middle(new.collect()),
        middle(own.collect())
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fits::{NARROWEST, fits};
    use crate::format::{Document as _, Format};
    use crate::style::Style;
    use narrows_model::Ending;
    use narrows_model::load::responsiveness::{
        Confidence, ForeignProbe, Responsiveness, ResponsivenessInterval, SCHEMA, SelfProbe,
    };

    fn times(ms: u64) -> Distribution {
        let ns = ms * 1_000_000;
        Distribution {
            count: 600,
            min: ns / 2,
            mean: 1.0,
            p50: ns,
            p90: ns * 2,
            p99: ns * 3,
            p99_9: ns * 4,
            p99_99: ns * 4,
            max: ns * 4,
            buckets: vec![[ns, 300], [ns * 5 / 2, 280], [ns * 4, 20]],
        }
    }

    fn direction(flow: Flow, rpm: f64, confidence: Confidence) -> ResponsivenessDirection {
        ResponsivenessDirection {
            flow,
            responsiveness: Some(Responsiveness {
                rpm,
                foreign_rpm: rpm * 1.2,
                self_rpm: rpm * 0.8,
                band: Band::of(rpm),
                confidence,
            }),
            goodput_bps: 18_940_000.0,
            goodput_confidence: Confidence::High,
            connections: 12,
            duration_ms: 12_003,
            working_ns: times(110),
            working_p95_ns: 270_000_000,
            self_ns: times(130),
            self_p95_ns: 310_000_000,
            increase_ns: Some(90_000_000),
            gap_ns: Some(20_000_000),
            failed_probes: 0,
            ending: Ending::Complete,
        }
    }

    fn report() -> ResponsivenessReport {
        let point = |nth: u32| ResponsivenessPoint {
            flow: if nth < 3 { Flow::Down } else { Flow::Up },
            from_s: f64::from(nth % 3),
            to_s: f64::from(nth % 3 + 1),
            goodput_bps: 6e6 * f64::from(nth % 3 + 1),
            connections: nth % 3 + 1,
            working_p50_us: Some(110_000.0),
            self_p50_us: (nth != 1).then_some(130_000.5),
        };
        ResponsivenessReport {
            schema: SCHEMA.into(),
            plan: ResponsivenessPlan::default(),
            asked: "far".into(),
            address: "192.0.2.7:4043".into(),
            congestion_control: Some("cubic".into()),
            idle_ns: times(20),
            idle_p95_ns: 48_000_000,
            directions: vec![
                direction(Flow::Down, 1_820.0, Confidence::High),
                direction(Flow::Up, 212.0, Confidence::Medium),
            ],
            series: (0..6).map(point).collect(),
            remarks: vec!["the server's key is that of its token".into()],
        }
    }

    #[test]
    fn it_fits_the_narrowest_terminal() {
        fits("responsiveness", &doc(&report()).text(Style { width: NARROWEST, ..Style::default() }));
    }

    #[test]
    fn a_test_in_words() {
        insta::assert_snapshot!("wide", doc(&report()).text(Style { width: 110, ..Style::default() }));
        insta::assert_snapshot!("narrow", doc(&report()).text(Style { width: 60, ..Style::default() }));
        insta::assert_snapshot!("markdown", doc(&report()).markdown());
        insta::assert_snapshot!("csv", report().write(Format::Csv, Style::default()).unwrap().unwrap());
        insta::assert_snapshot!("picture", picture(&report()));
        let mut nothing = report();
        nothing.directions.truncate(1);
        nothing.directions[0].responsiveness = None;
        nothing.directions[0].working_ns = Distribution::default();
        insta::assert_snapshot!("nothing", doc(&nothing).text(Style { width: 80, ..Style::default() }));
    }

    #[test]
    fn progress_is_of_the_last_interval() {
        let interval = |nth: u32| ResponsivenessInterval {
            end_us: u64::from(nth) * 1_000_000,
            connections: nth,
            bytes: 1_250_000,
        };
        let load = ResponsivenessLoad {
            flow: Flow::Down,
            intervals: vec![interval(1), interval(2)],
            foreign: vec![ForeignProbe { at_us: 1_500_000, tcp_us: 20_000, tls_us: 21_000, http_us: 22_000 }],
            own: vec![SelfProbe { at_us: 900_000, http_us: 5 }],
            failed_probes: 0,
            ending: Ending::Complete,
        };
        insta::assert_snapshot!(
            progress(&load, &ResponsivenessPlan::default()),
            @"down 2.00 s of 20.0 s   2 connections   10.0 Mbit/s  working 21.0 ms, self –"
        );
    }
}
