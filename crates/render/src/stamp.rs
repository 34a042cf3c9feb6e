//! A STAMP session: the round trip, and each direction beside the other.

use crate::csv;
use crate::doc::Doc;
use crate::format::{Writer, document};
use crate::over_time::{Curve, plot};
use crate::style::Tone;
use crate::table::{Cell, Column, Row, Table};
use crate::words::plural;
use narrows_model::load::stamp::{StampDirection, StampInterval, StampPacket, StampReport};
use narrows_model::words::figures::float;
use narrows_model::words::units::{bytes, micros, percent};
use narrows_model::{Distribution, Unit};

document!(
    StampReport,
    "a STAMP session",
    |it, _| doc(it),
    Writer::csv("Comma-separated values, one interval per line", |it, _| csv::table(COLUMNS, &it.series))
);

/// The columns of its CSV.
pub(crate) const COLUMNS: &[&str] =
    &["from_s", "to_s", "sent", "lost", "lost_up", "lost_down", "rtt_p50_us", "rtt_max_us"];

/// ns as a time with a unit.
fn time(ns: u64) -> String {
    micros(ns.div_ceil(1_000))
}

fn title(report: &StampReport) -> String {
    let plan = &report.plan;
    let how = if plan.authenticated { "authenticated" } else { "open" };
    let packets = plural(plan.packets.into(), "packet");
    format!(
        "{packets} of {} every {}, DSCP {}, {how} mode, to {} ({})",
        bytes(plan.bytes.into()),
        micros(plan.interval_us),
        plan.dscp,
        report.asked,
        report.address
    )
}

fn loss(report: &StampReport) -> String {
    let part = if report.sent == 0 { 0.0 } else { float(report.lost) / float(report.sent) };
    let unknown = match report.lost_unknown {
        0 => String::new(),
        count => format!(", {count} of them in an unknown direction"),
    };
    format!("{} sent, {} replies, {} lost ({}){unknown}", report.sent, report.replies, report.lost, percent(part))
}

fn directions(report: &StampReport) -> Table {
    let columns = [
        Column::words("direction"),
        Column::figures("lost"),
        Column::figures("95 %").spare(3),
        Column::figures("reordered").spare(2),
        Column::figures("copies").spare(4),
        Column::figures("variation p50"),
        Column::figures("p99"),
        Column::figures("max").spare(1),
        Column::figures("delay min"),
        Column::figures("hops").spare(5),
        Column::words("DSCP").spare(6),
        Column::words("ECN").spare(7),
    ];
    let remark = "variation: one-way delay above its minimum";
    let mut all = Table::new("each direction", remark, &columns);
    for (name, way) in [("up", &report.up), ("down", &report.down)] {
        all.rows.push(row(name, way));
    }
    all
}

fn row(name: &str, way: &StampDirection) -> Row {
    let lost = way.lost.map(|lost| format!("{lost} of {}", way.known));
    let interval = way.loss_interval.map(|[low, high]| format!("{}–{}", percent(low), percent(high)));
    let of = |value: fn(&Distribution) -> u64| (way.variation_ns.count > 0).then(|| time(value(&way.variation_ns)));
    let delay = way.delay_ns.map(|[least, _]| {
        let sign = if least < 0 { "-" } else { "" };
        format!("{sign}{} ±{}", time(least.unsigned_abs()), time(way.clock_error_ns.unwrap_or(0)))
    });
    let hops = way.hops.map(|[least, most]| if least == most { least.to_string() } else { format!("{least}–{most}") });
    let classes = |all: &[(u8, u64)]| match all {
        [] => None,
        [(one, _)] => Some(one.to_string()),
        many => Some(many.iter().map(|(value, count)| format!("{value} ({count})")).collect::<Vec<_>>().join(", ")),
    };
    Row::new(vec![
        Cell::new(name),
        Cell::maybe(lost).tone_if(way.lost.is_some_and(|lost| lost > 0), Tone::Mark),
        Cell::maybe(interval),
        Cell::new(way.reordered.to_string()),
        Cell::new(way.copies.to_string()),
        Cell::maybe(of(|it| it.p50)),
        Cell::maybe(of(|it| it.p99)),
        Cell::maybe(of(|it| it.max)),
        Cell::maybe(delay),
        Cell::maybe(hops),
        Cell::maybe(classes(&way.dscp)),
        Cell::maybe(classes(&way.ecn)),
    ])
}

fn times(report: &StampReport) -> Table {
    let columns = [
        Column::words(""),
        Column::figures("min"),
        Column::figures("mean").spare(1),
        Column::figures("p50"),
        Column::figures("p90").spare(2),
        Column::figures("p99"),
        Column::figures("p99.9").spare(3),
        Column::figures("max"),
    ];
    let mut all = Table::new("round trip", "the time in the reflector is not part of it", &columns);
    for (name, times) in [("RTT", &report.rtt_ns), ("in the reflector", &report.reflector_ns)] {
        let part = |value: u64, of: f64| Cell::maybe((float(times.count) * of >= 1.0).then(|| time(value)));
        all.rows.push(Row::new(vec![
            Cell::new(name),
            part(times.min, 1.0),
            part(crate::words::rounded(times.mean), 1.0),
            part(times.p50, 0.5),
            part(times.p90, 0.1),
            part(times.p99, 0.01),
            part(times.p99_9, 0.001),
            part(times.max, 1.0),
        ]));
    }
    all
}

pub(crate) fn doc(report: &StampReport) -> Doc {
    let doc = Doc::new("STAMP session").picture(Some(picture(report)));
    let doc = doc.lead("STAMP", &title(report), Some(&loss(report)));
    let doc = if report.replies > 0 { doc.table(times(report)).table(directions(report)) } else { doc };
    doc.warnings(report.remarks.iter().cloned())
}

/// Round trips and losses over time (SVG).
pub fn picture(report: &StampReport) -> String {
    let points = |of: fn(&StampInterval) -> Option<f64>| -> Vec<(f64, f64)> {
        report.series.iter().filter_map(|it| Some((f64::midpoint(it.from_s, it.to_s), of(it)?))).collect()
    };
    let lost = |name: &str, of| Curve { name: name.to_owned(), figures: vec![vec![], vec![], points(of)] };
    let curves = [
        Curve {
            name: "round trip".to_owned(),
            figures: vec![points(|it| it.rtt_p50_us), points(|it| it.rtt_max_us), points(|it| Some(float(it.lost)))],
        },
        lost("up", |it| it.lost_up.map(float)),
        lost("down", |it| it.lost_down.map(float)),
    ];
    let figures =
        [("median RTT", Unit::Microseconds), ("longest RTT", Unit::Microseconds), ("lost packets", Unit::Count)];
    plot("STAMP session", &title(report), &figures, &curves)
}

/// One line of progress: the packets of the last second.
pub fn progress(packets: &[StampPacket], shown: usize) -> String {
    let new = &packets[shown.min(packets.len())..];
    let back: Vec<u64> = new
        .iter()
        .filter_map(|packet| packet.reply.map(|reply| reply.arrived_ns.saturating_sub(packet.sent_ns)))
        .collect();
    let mean = back.iter().sum::<u64>().checked_div(back.len() as u64);
    let mean = mean.map(|mean| format!(", mean RTT {}", time(mean))).unwrap_or_default();
    format!("{} sent so far; of the last {}: {} back{mean}", packets.len(), new.len(), back.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fits::{NARROWEST, fits};
    use crate::format::{Document as _, Format};
    use crate::style::Style;
    use narrows_model::load::stamp::{SCHEMA, StampPlan};

    fn report() -> StampReport {
        let spread = |min: u64| Distribution {
            count: 4_000,
            min,
            mean: float(min) * 1.1,
            p50: min + 50_000,
            p90: min + 90_000,
            p99: min + 300_000,
            p99_9: min + 700_000,
            p99_99: min + 900_000,
            max: min + 1_000_000,
            buckets: Vec::new(),
        };
        let way = |lost, delay| StampDirection {
            known: 4_000,
            lost: Some(lost),
            loss_interval: Some([0.0001, 0.002]),
            reordered: 3,
            copies: 0,
            variation_ns: spread(0),
            delay_ns: Some([delay, delay + 4]),
            clock_error_ns: Some(1_500_000),
            hops: Some([3, 3]),
            dscp: vec![(0, 10), (46, 3_990)],
            ecn: vec![(0, 4_000)],
        };
        let interval = |nth: u32| StampInterval {
            from_s: f64::from(nth),
            to_s: f64::from(nth + 1),
            sent: 100,
            lost: 2 + u64::from(nth),
            lost_up: Some(2),
            lost_down: Some(nth.into()),
            rtt_p50_us: Some(20_050.0),
            rtt_max_us: (nth > 0).then_some(21_000.5),
        };
        StampReport {
            schema: SCHEMA.into(),
            plan: StampPlan {
                packets: 4_000,
                interval_us: 10_000,
                bytes: 100,
                dscp: 46,
                authenticated: true,
                extensions: true,
            },
            asked: "far".into(),
            address: "192.0.2.7:862".into(),
            sent: 4_000,
            replies: 3_992,
            lost: 8,
            lost_unknown: 1,
            stateful: Some(true),
            rtt_ns: spread(20_000_000),
            reflector_ns: spread(20_000),
            up: way(2, 9_000_000),
            down: way(5, -1_200_000),
            series: (0..3).map(interval).collect(),
            remarks: vec!["the losses after the last reply are of an unknown direction".into()],
        }
    }

    #[test]
    fn it_fits_the_narrowest_terminal() {
        let style = Style { width: NARROWEST, ..Style::default() };
        fits("stamp", &doc(&report()).text(style));
        fits("stamp, no reply", &doc(&StampReport { replies: 0, ..report() }).text(style));
    }

    #[test]
    fn a_session_in_words() {
        insta::assert_snapshot!("wide", doc(&report()).text(Style { width: 130, ..Style::default() }));
        insta::assert_snapshot!("narrow", doc(&report()).text(Style { width: 60, ..Style::default() }));
        insta::assert_snapshot!("markdown", doc(&report()).markdown());
        insta::assert_snapshot!("csv", report().write(Format::Csv, Style::default()).unwrap().unwrap());
        insta::assert_snapshot!("picture", picture(&report()));
        let nothing = StampReport { replies: 0, remarks: vec!["nothing came back".into()], ..report() };
        insta::assert_snapshot!("nothing", doc(&nothing).text(Style { width: 80, ..Style::default() }));
    }
}
