//! The sweep as a picture: bit rate and packet rate over the size, and what each point cost both ends.

use super::groups::{groups, name};
use crate::figures::{pps, tick};
use crate::svg::{Canvas, Entry, Font, Look, Panel, Scale, legend};
use crate::udp::words;
use crate::words::clean;
use narrows_model::sweep::SweepRow;
use narrows_model::units::bps;
use narrows_model::{SweepProtocol, SweepReport};

const WIDTH: f64 = 1080.0;
const LEFT: f64 = 70.0;
const GAP: f64 = 76.0;
const HIGH: f64 = 250.0;
const CPU_HIGH: f64 = 150.0;

/// One line: what is drawn of a row, and how.
struct Series<'a> {
    rows: &'a [SweepRow],
    look: Look,
}

/// The picture of the whole sweep.
#[must_use]
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
    let entries = entries(&series);
    // The legend is drawn once to know its height: the sheet must be as high as it needs.
    let took = legend(&mut Canvas::new(0.0, 0.0, "", ""), (LEFT, 0.0), WIDTH - 20.0, &entries);
    let top = 78.0 + took + 34.0;
    let lower = top + HIGH + 96.0;
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
    rates(&mut canvas, report, &series, |at, ys| place(at, top, HIGH, ys));
    cpus(&mut canvas, report, &series, |at, ys| place(at, lower, CPU_HIGH, ys));
    canvas.finish()
}

fn entries(series: &[Series<'_>]) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for it in series {
        let Some(first) = it.rows.first() else { continue };
        entries.push(Entry::line(format!("{}: received", name(first)), it.look));
        if it.rows.iter().any(|row| row.lossless_bps.is_some()) {
            entries.push(Entry::line("max. lossless", it.look.dashed("7 4")));
        }
        if it.rows.iter().any(|row| row.sending_bps.is_some()) && first.protocol == SweepProtocol::Udp {
            entries.push(Entry::plain("sent", it.look.dashed("2 4")));
        }
    }
    entries
}

type Place<'a> = &'a dyn Fn(usize, Scale) -> Panel;

fn axis(canvas: &mut Canvas, panel: &Panel, report: &SweepReport) {
    let mut sizes: Vec<f64> = report.plan.sizes.iter().map(|size| f64::from(*size)).collect();
    sizes.sort_by(f64::total_cmp);
    panel.axis_x(canvas, &sizes, "size of datagram or message, bytes", |size| format!("{size}"));
}

/// The points of one figure along the sizes.
fn points(rows: &[SweepRow], figure: impl Fn(&SweepRow) -> Option<f64>) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> =
        rows.iter().filter_map(|row| Some((f64::from(row.size_bytes), figure(row)?))).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

fn rates(canvas: &mut Canvas, report: &SweepReport, series: &[Series<'_>], place: impl Fn(usize, Scale) -> Panel) {
    type Figure = fn(&SweepRow) -> Option<f64>;
    /// A title, its three figures, and how a value is told.
    type Half = (&'static str, [Figure; 3], fn(f64) -> String);
    let bits: [Figure; 3] = [
        |row| row.receiving_bps.map(|it| it.median),
        |row| row.lossless_bps.map(|it| it.median),
        |row| row.sending_bps.map(|it| it.median).filter(|_| row.protocol == SweepProtocol::Udp),
    ];
    let packets: [Figure; 3] = [
        |row| row.receiving_pps.map(|it| it.median).filter(|_| row.protocol == SweepProtocol::Udp),
        |row| row.lossless_pps.map(|it| it.median),
        |row| row.sending_pps.map(|it| it.median).filter(|_| row.protocol == SweepProtocol::Udp),
    ];
    let place: Place<'_> = &place;
    let halves: [Half; 2] = [("Payload, bit/s", bits, bps), ("Datagrams a second", packets, pps)];
    for (at, (title, figures, say)) in halves.into_iter().enumerate() {
        let values = report.rows.iter().flat_map(|row| figures.iter().filter_map(move |figure| figure(row)));
        let panel = place(at, Scale::from_zero(values));
        panel.grid_y(canvas, title, tick);
        axis(canvas, &panel, report);
        for it in series {
            let name = it.rows.first().map(name).unwrap_or_default();
            let hint = |what: &'static str| {
                let name = name.clone();
                move |(size, value): (f64, f64)| format!("{name}, {size} B: {} {what}", say(value))
            };
            panel.plain(canvas, &points(it.rows, figures[2]), it.look.dashed("2 4"));
            panel.series(canvas, &points(it.rows, figures[1]), it.look.dashed("7 4"), hint("without loss"));
            panel.series(canvas, &points(it.rows, figures[0]), it.look, hint("received"));
        }
    }
}

fn cpus(canvas: &mut Canvas, report: &SweepReport, series: &[Series<'_>], place: impl Fn(usize, Scale) -> Panel) {
    type Side = fn(&SweepRow) -> Option<narrows_model::measure::HostCpu>;
    let sides: [(&str, Side); 2] = [
        ("CPU of the sender, % of one core", |row| row.sender),
        ("CPU of the receiver, % of one core", |row| row.receiver),
    ];
    let busy = |it: narrows_model::measure::HostCpu| (it.user + it.system + it.softirq) * 100.0;
    let all = report.rows.iter().flat_map(|row| [row.sender, row.receiver]).flatten().map(busy);
    // Both ends on one scale, and a whole core always on it.
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
