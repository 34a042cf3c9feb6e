//! The sweep as a picture: bit rate, packet rate and CPU of both ends over the size.

use super::groups::{groups, name};
use crate::figures::{pps, tick};
use crate::measure::udp_words as words;
use crate::svg::{Canvas, Entry, Font, Look, Panel, Scale, legend};
use crate::words::clean;
use narrows_model::run::sweep::SweepRow;
use narrows_model::words::units::bps;
use narrows_model::{SweepProtocol, SweepReport};

const WIDTH: f64 = 1080.0;
const LEFT: f64 = 70.0;
const GAP: f64 = 76.0;
const HIGH: f64 = 250.0;
const CPU_HIGH: f64 = 150.0;
const SENT_HIGH: f64 = 120.0;
/// Distance from a panel's axis to the next panel.
const BETWEEN: f64 = 96.0;
/// The sent rate gets a scale of its own where it is this many times the received rate.
const APART: f64 = 1.5;

/// One line: its value in a row, and its style.
struct Series<'a> {
    rows: &'a [SweepRow],
    look: Look,
}

/// The picture of the whole sweep.
pub fn picture(report: &SweepReport) -> String {
    let series: Vec<Series<'_>> =
        groups(report).enumerate().map(|(n, rows)| Series { rows, look: Look::nth(n) }).collect();
    let title = format!("Sweep of {}", clean(&report.run.target.asked));
    let mut words = vec![clean(&report.run.target.address), format!("{} s each", report.plan.trial_ms as f64 / 1e3)];
    if report.plan.repetitions > 1 {
        words.push(format!("medians of {}", report.plan.repetitions));
    }
    if report.plan.protocols.contains(&SweepProtocol::Udp) {
        words.push(format!("UDP {}", words::rate(report.plan.rate)));
    }
    if report.done < report.planned {
        words.push(format!("{} of {} points", report.done, report.planned));
    }
    let wide = (WIDTH - LEFT - GAP - 30.0) / 2.0;
    let apart = is_sent_apart(report);
    let entries = entries(&series, apart);
    // The legend is drawn once to know its height, which the sheet needs.
    let took = legend(&mut Canvas::new(0.0, 0.0, "", ""), (LEFT, 0.0), WIDTH - 20.0, &entries);
    let top = 78.0 + took + 34.0;
    let sent_top = top + HIGH + BETWEEN;
    let lower = if apart { sent_top + SENT_HIGH + BETWEEN } else { sent_top };
    let mut canvas = Canvas::new(WIDTH, lower + CPU_HIGH + 62.0, &title, &words.join(", "));
    canvas.text((24.0, 34.0), &title, Font::TITLE);
    canvas.text((24.0, 54.0), &words.join(" · "), Font::SUBTITLE);
    legend(&mut canvas, (LEFT, 84.0), WIDTH - 20.0, &entries);

    let sizes = report.plan.sizes.iter().map(|size| f64::from(*size));
    let xs = Scale::factors(sizes).unwrap_or(Scale::Logarithmic(1.0, 10.0));
    let place = |at: usize, top: f64, high: f64, ys: Scale| {
        let left = if at == 0 { LEFT } else { LEFT + wide + GAP };
        Panel { left, top, wide, high, xs, ys }
    };
    rates(&mut canvas, report, &series, apart, |at, ys| place(at, top, HIGH, ys));
    if apart {
        sent_alone(&mut canvas, report, &series, |at, ys| place(at, sent_top, SENT_HIGH, ys));
    }
    cpus(&mut canvas, report, &series, |at, ys| place(at, lower, CPU_HIGH, ys));
    canvas.finish()
}

type Figure = fn(&SweepRow) -> Option<f64>;

/// The sent rates of UDP: bits and datagrams per second.
const SENT: [Figure; 2] = [
    |row| row.sending_bps.map(|it| it.median).filter(|_| row.protocol == SweepProtocol::Udp),
    |row| row.sending_pps.map(|it| it.median).filter(|_| row.protocol == SweepProtocol::Udp),
];

/// The received rates, and the lossless ones: bits and datagrams per second.
const GOT: [[Figure; 2]; 2] = [
    [|row| row.receiving_bps.map(|it| it.median), |row| row.lossless_bps.map(|it| it.median)],
    [
        |row| row.receiving_pps.map(|it| it.median).filter(|_| row.protocol == SweepProtocol::Udp),
        |row| row.lossless_pps.map(|it| it.median),
    ],
];

/// Whether the sent rates need a scale of their own.
fn is_sent_apart(report: &SweepReport) -> bool {
    let highest = |figure: &Figure| report.rows.iter().filter_map(figure).fold(0.0, f64::max);
    SENT.iter().zip(&GOT).any(|(sent, got)| {
        let arrived = got.iter().map(highest).fold(0.0, f64::max);
        arrived > 0.0 && highest(sent) > APART * arrived
    })
}

fn entries(series: &[Series<'_>], apart: bool) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for it in series {
        let Some(first) = it.rows.first() else { continue };
        entries.push(Entry::line(format!("{}: received", name(first)), it.look));
        if it.rows.iter().any(|row| row.lossless_bps.is_some()) {
            entries.push(Entry::line("max. lossless", it.look.dashed("7 4")));
        }
        if it.rows.iter().any(|row| row.sending_bps.is_some()) && first.protocol == SweepProtocol::Udp {
            let name = if apart { "sent (lower plot)" } else { "sent" };
            entries.push(Entry::plain(name, it.look.dashed("2 4")));
        }
    }
    entries
}

type Place<'a> = &'a dyn Fn(usize, Scale) -> Panel;

fn axis(canvas: &mut Canvas, panel: &Panel, report: &SweepReport) {
    let mut sizes: Vec<f64> = report.plan.sizes.iter().map(|size| f64::from(*size)).collect();
    sizes.sort_by(f64::total_cmp);
    panel.axis_x(canvas, &sizes, "datagram or message size, bytes", |size| format!("{size}"));
}

/// The points of one figure along the sizes.
fn points(rows: &[SweepRow], figure: impl Fn(&SweepRow) -> Option<f64>) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> =
        rows.iter().filter_map(|row| Some((f64::from(row.size_bytes), figure(row)?))).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// A title, and the text of a value.
type Half = (&'static str, fn(f64) -> String);

fn rates(
    canvas: &mut Canvas,
    report: &SweepReport,
    series: &[Series<'_>],
    apart: bool,
    place: impl Fn(usize, Scale) -> Panel,
) {
    let place: Place<'_> = &place;
    let halves: [Half; 2] = [("Payload, bit/s", bps), ("Datagrams per second", pps)];
    for (at, (title, say)) in halves.into_iter().enumerate() {
        let [received, lossless] = GOT[at];
        let sent = SENT[at];
        let drawn = if apart { vec![received, lossless] } else { vec![received, lossless, sent] };
        let values = report.rows.iter().flat_map(|row| drawn.iter().filter_map(move |figure| figure(row)));
        let panel = place(at, Scale::from_zero(values));
        panel.grid_y(canvas, title, tick);
        axis(canvas, &panel, report);
        for it in series {
            let name = it.rows.first().map(name).unwrap_or_default();
            let hint = |what: &'static str| {
                let name = name.clone();
                move |(size, value): (f64, f64)| format!("{name}, {size} B: {} {what}", say(value))
            };
            if !apart {
                panel.plain(canvas, &points(it.rows, sent), it.look.dashed("2 4"));
            }
            panel.series(canvas, &points(it.rows, lossless), it.look.dashed("7 4"), hint("without loss"));
            panel.series(canvas, &points(it.rows, received), it.look, hint("received"));
        }
    }
}

/// The sent rates, on scales of their own.
fn sent_alone(canvas: &mut Canvas, report: &SweepReport, series: &[Series<'_>], place: impl Fn(usize, Scale) -> Panel) {
    let halves: [Half; 2] = [("Sent, bit/s", bps), ("Sent, datagrams per second", pps)];
    for (at, (title, say)) in halves.into_iter().enumerate() {
        let sent = SENT[at];
        let panel = place(at, Scale::from_zero(report.rows.iter().filter_map(sent)));
        panel.grid_y(canvas, title, tick);
        axis(canvas, &panel, report);
        for it in series {
            let name = it.rows.first().map(name).unwrap_or_default();
            let hint = |(size, value): (f64, f64)| format!("{name}, {size} B: {} sent", say(value));
            panel.series(canvas, &points(it.rows, sent), it.look.dashed("2 4"), hint);
        }
    }
}

fn cpus(canvas: &mut Canvas, report: &SweepReport, series: &[Series<'_>], place: impl Fn(usize, Scale) -> Panel) {
    type Side = fn(&SweepRow) -> Option<narrows_model::run::measure::HostCpu>;
    let sides: [(&str, Side); 2] = [
        ("CPU of the sender, % of one core", |row| row.sender),
        ("CPU of the receiver, % of one core", |row| row.receiver),
    ];
    let busy = |it: narrows_model::run::measure::HostCpu| (it.user + it.system + it.softirq) * 100.0;
    let all = report.rows.iter().flat_map(|row| [row.sender, row.receiver]).flatten().map(busy);
    // Both ends on one scale, which includes one whole core.
    let ys = Scale::from_zero(all.chain([100.0]));
    for (at, (title, side)) in sides.into_iter().enumerate() {
        let panel = place(at, ys);
        panel.grid_y(canvas, title, tick);
        axis(canvas, &panel, report);
        for it in series {
            let rows = it.rows;
            let hint = |(size, value): (f64, f64)| {
                let row = rows.iter().find(|row| f64::from(row.size_bytes) == size);
                let split = row.and_then(side).map(|it| {
                    let [user, system, softirq] = [it.user, it.system, it.softirq].map(|part| part * 100.0);
                    format!(" (user {user:.0}, system {system:.0}, softirq {softirq:.0})")
                });
                let name = rows.first().map(name).unwrap_or_default();
                format!("{name}, {size} B: {value:.0} %{}", split.unwrap_or_default())
            };
            panel.series(canvas, &points(rows, |row| side(row).map(busy)), it.look, hint);
        }
    }
}
