//! Figures over time as a picture: a plot for each series, with the levels between the change points.

use super::{signed, value};
use crate::svg::{Canvas, Entry, Look, Panel, Scale, legend};
use crate::words::clean;
use narrows_model::run::history::{TrendReport, TrendSeries};
use narrows_model::words::date;

const WIDTH: f64 = 1080.0;
const LEFT: f64 = 90.0;
const HIGH: f64 = 220.0;
const APART: f64 = 110.0;
const DAY_US: f64 = 86_400e6;
/// Below it ticks need seconds to differ.
const MINUTES_US: f64 = 900e6;
/// Series that are drawn; the longest come first.
const SERIES_MAX: usize = 6;
/// Runs above which a series has no marker for each.
const MARKERS_MAX: usize = 300;

/// The picture of the longest series.
pub fn picture(report: &TrendReport) -> String {
    let drawn: Vec<&TrendSeries> = report.series.iter().filter(|it| it.points.len() >= 2).take(SERIES_MAX).collect();
    let left_out = report.series.len() - drawn.len();
    let subtitle = match left_out {
        0 => "dashed: the level between change points".to_owned(),
        more => format!("dashed: the level between change points · {more} shorter series not drawn"),
    };
    let high = 150.0 + (HIGH + APART) * drawn.len().max(1) as f64;
    let title = match &drawn[..] {
        [only] => format!("{} over time", clean(&only.of.figure)),
        _ => "Figures over time".to_owned(),
    };
    let mut canvas = Canvas::titled(WIDTH, high, &title, &subtitle);
    let (line, level) = (Look::nth(0), Look::nth(1).dashed("7 4"));
    let entries = [Entry::plain("runs", line), Entry::plain("level", level)];
    let mut top = 84.0 + legend(&mut canvas, (LEFT, 84.0), WIDTH - 20.0, &entries) + 40.0;
    for series in drawn {
        plot(&mut canvas, series, top, line, level);
        top += HIGH + APART;
    }
    canvas.finish()
}

fn plot(canvas: &mut Canvas, series: &TrendSeries, top: f64, line: Look, level: Look) {
    let at = |unix_us: u64| unix_us as f64;
    let points: Vec<(f64, f64)> = series.points.iter().map(|it| (at(it.started_unix_us), it.value)).collect();
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return };
    let xs = Scale::Linear(first.0, last.0);
    let ys = Scale::from_zero(points.iter().map(|it| it.1));
    let panel = Panel { left: LEFT, top, wide: WIDTH - LEFT - 40.0, high: HIGH, xs, ys };
    let of = &series.of;
    let plan = [" · plan ", &of.plan].concat();
    let title = clean(&format!("{}: {} and {}, {} {}{plan}", of.figure, of.client, of.server, of.command, of.family));
    panel.grid_y(canvas, &title, |it| value(series.unit, it));
    let ticks: Vec<f64> = (0..=6).map(|n| first.0 + (last.0 - first.0) * f64::from(n) / 6.0).collect();
    let minute = |it: f64| date::minute(it.max(0.0) as u64);
    let (from, to) = (minute(first.0), minute(last.0));
    // Of runs of one day the time of the day tells them apart.
    let within_a_day = last.0 - first.0 < DAY_US;
    let within_minutes = last.0 - first.0 < MINUTES_US;
    let day = |it: f64| match (within_minutes, within_a_day) {
        (true, _) => date::utc(it.max(0.0) as u64 / 1_000_000)[11..19].to_owned(),
        (_, true) => minute(it)[11..16].to_owned(),
        _ => minute(it)[..10].to_owned(),
    };
    let title = if within_a_day { format!("time of the day (UTC), {from} to {to}") } else { "day (UTC)".to_owned() };
    panel.axis_x(canvas, &ticks, &title, day);
    if points.len() <= MARKERS_MAX {
        panel.series(canvas, &points, line, |(x, y)| format!("{}: {}", day(x), value(series.unit, y)));
    } else {
        panel.plain(canvas, &points, line);
    }
    let mut from = (first.0, series.changes.first().map(|it| it.before));
    for change in &series.changes {
        let to = at(change.between_unix_us[1]);
        panel.plain(canvas, &[(from.0, change.before), (to, change.before), (to, change.after)], level);
        let words = format!("{} on {}", signed(change.change), day(to));
        canvas.text(
            (panel.x(to) + 6.0, panel.y(change.after.max(change.before)) - 6.0),
            &words,
            crate::svg::Font::LABEL,
        );
        from = (to, Some(change.after));
    }
    if let (x, Some(y)) = from {
        panel.plain(canvas, &[(x, y), (last.0, y)], level);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::tests;

    #[test]
    fn a_picture_has_each_series_and_its_changes() {
        let svg = picture(&tests::trend());
        assert!(svg.contains("-36.8 % on 2007-09-23") && svg.contains("1 shorter series not drawn"), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 24);
        assert!(svg.contains("day (UTC)") && svg.contains(">goodput up over time<"), "{svg}");
        let mut soon = tests::trend();
        soon.series.truncate(1);
        for (nth, point) in (0..).zip(&mut soon.series[0].points) {
            point.started_unix_us = 1_190_000_000_000_000 + nth * 60_000_000;
        }
        soon.series[0].changes.clear();
        let svg = picture(&soon);
        assert!(svg.contains("time of the day (UTC), 2007-09-17 03:33") && svg.contains(">03:33<"), "{svg}");
        for (nth, point) in (0..).zip(&mut soon.series[0].points) {
            point.started_unix_us = 1_190_000_000_000_000 + nth * 2_000_000;
        }
        assert!(picture(&soon).contains(">03:33:20<") && picture(&soon).contains("plan 0123456789ab"));
        assert!(picture(&TrendReport { schema: String::new(), series: vec![] }).ends_with("</svg>\n"));
    }
}
