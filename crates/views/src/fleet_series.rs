//! What the tests of one path found over time, with the change points of its figures.

use narrows_model::run::fleet::{FleetChange, FleetPoint, FleetSeries};
use narrows_stats::change_points::{Options, change_points};

/// Smaller changes are not shown.
const CHANGE_MIN: f64 = 0.05;

/// Adds the change points.
pub fn judged(series: FleetSeries) -> FleetSeries {
    let goodput = |it: &FleetPoint| it.goodput_bps;
    let rtt = |it: &FleetPoint| it.rtt_us.map(|[_, median, _]| median);
    let mut changes = of("goodput", &series.points, goodput);
    changes.extend(of("round trip", &series.points, rtt));
    changes.sort_by_key(|it| it.at_unix_ms);
    FleetSeries { changes, ..series }
}

fn of(figure: &str, points: &[FleetPoint], value: impl Fn(&FleetPoint) -> Option<f64>) -> Vec<FleetChange> {
    let known: Vec<(u64, f64)> = points.iter().filter_map(|it| Some((it.at_unix_ms, value(it)?))).collect();
    let (times, values): (Vec<u64>, Vec<f64>) = known.iter().map(|(ms, value)| (ms * 1_000, *value)).unzip();
    let found = change_points(&values, &times, Options { change_min: CHANGE_MIN, ..Options::default() });
    let change = |it: narrows_stats::change_points::ChangePoint| FleetChange {
        figure: figure.to_owned(),
        at_unix_ms: known.get(it.at).map_or(0, |it| it.0),
        before: it.before,
        after: it.after,
        change: it.change,
        interval: it.interval,
    };
    found.into_iter().map(change).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_that_drops_is_one_change_at_its_time() {
        let point = |nth: u64| FleetPoint {
            at_unix_ms: nth * 60_000,
            goodput_bps: Some(if nth < 30 { 940e6 } else { 400e6 } + (nth * 7 % 5) as f64 * 1e6),
            ..FleetPoint::default()
        };
        let points = (0..60).map(point).collect();
        let series = FleetSeries {
            schema: String::new(),
            from: String::new(),
            to: String::new(),
            points,
            changes: Vec::new(),
            settings: Vec::new(),
        };
        let changes = judged(series).changes;
        assert_eq!((changes.len(), changes[0].at_unix_ms, changes[0].figure.as_str()), (1, 30 * 60_000, "goodput"));
    }
}
