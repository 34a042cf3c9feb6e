//! Latency distributions as a picture: the latency that a share of all transactions did not exceed, on an axis that spreads
//! the tail; one line for the idle path and one for the loaded path.

use crate::figures::{float, grouped, nanos};
use crate::svg::{Canvas, Entry, Font, Look, Panel, Scale, legend};
use crate::words::{clean, round_time, rounded};
use narrows_model::Distribution;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 84.0;
const HIGH: f64 = 360.0;
/// Shares with a tick: one transaction in this many exceeds it.
const TICKS: [(f64, &str); 8] = [
    (1.0, "0 %"),
    (2.0, "50 %"),
    (10.0, "90 %"),
    (100.0, "99 %"),
    (1e3, "99.9 %"),
    (1e4, "99.99 %"),
    (1e5, "99.999 %"),
    (1e6, "99.9999 %"),
];

/// One line of the picture: its name (`idle`, `loaded`) and its latencies in ns.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// Its name in the legend.
    pub name: &'a str,
    /// Latencies, ns.
    pub latency_ns: &'a Distribution,
}

/// The picture of some distributions.
pub fn picture(title: &str, subtitle: &str, lines: &[Line<'_>]) -> String {
    let (title, subtitle) = (clean(title), clean(subtitle));
    let mut canvas = Canvas::titled(WIDTH, 130.0 + HIGH + 66.0, &title, &subtitle);
    let known: Vec<(usize, &Line<'_>)> =
        lines.iter().enumerate().filter(|(_, line)| line.latency_ns.count > 0).collect();
    let entry = |(n, line): &(usize, &Line<'_>)| {
        let it = line.latency_ns;
        let words = [it.p50, it.p99, it.p99_9].map(nanos);
        let text = format!(
            "{}: p50 {}, p99 {}, p99.9 {} ({} transactions)",
            clean(line.name),
            words[0],
            words[1],
            words[2],
            grouped(it.count)
        );
        Entry::line(text, Look::nth(*n))
    };
    let entries: Vec<Entry> = known.iter().map(entry).collect();
    legend(&mut canvas, (LEFT, 84.0), WIDTH - 20.0, &entries);
    let values = known.iter().flat_map(|(_, line)| [float(line.latency_ns.min.max(1)), float(line.latency_ns.max)]);
    let Some(ys) = Scale::factors(values) else {
        canvas.text((LEFT, 150.0), "Nothing was measured.", Font::LABEL);
        return canvas.finish();
    };
    let largest = known.iter().map(|(_, line)| line.latency_ns.count).max().unwrap_or(1);
    let rarest = float(largest).clamp(10.0, 1e7);
    let top = 130.0 + float(entries.len().saturating_sub(1) as u64) * 20.0;
    let panel = Panel {
        left: LEFT,
        top,
        wide: WIDTH - LEFT - 40.0,
        high: HIGH - (top - 130.0),
        xs: Scale::Logarithmic(1.0, rarest),
        ys,
    };
    panel.grid_y(&mut canvas, "Latency (even factors)", |value| round_time(rounded(value)));
    let ticks: Vec<f64> = TICKS.iter().map(|(value, _)| *value).filter(|value| *value <= rarest).collect();
    let name =
        |value: f64| TICKS.iter().find(|(of, _)| *of == value).map_or(String::new(), |(_, name)| (*name).to_owned());
    panel.axis_x(&mut canvas, &ticks, "share of transactions that were as fast or faster", name);
    for (n, line) in known {
        let look = Look::nth(n);
        panel.plain(&mut canvas, &curve(line.latency_ns, rarest), look);
        let it = line.latency_ns;
        let marks = [(2.0, it.p50), (10.0, it.p90), (100.0, it.p99), (1e3, it.p99_9), (1e4, it.p99_99)];
        let marks = marks.into_iter().filter(|(of, _)| *of <= rarest);
        for (of, value) in marks {
            let hint = format!("{}: {} {}", clean(line.name), name(of), nanos(value));
            canvas.marker(look.marker, (panel.x(of), panel.y(float(value))), 4.0, look.color, &hint);
        }
    }
    canvas.finish()
}

/// Each bucket at the share that ends in it: one transaction in x was slower.
fn curve(of: &Distribution, rarest: f64) -> Vec<(f64, f64)> {
    let total = of.buckets.iter().fold(0u64, |sum, [_, count]| sum.saturating_add(*count));
    let mut points = vec![(1.0, float(of.min.max(1)))];
    let mut sum = 0u64;
    for [bound, count] in &of.buckets {
        let before = float(total) / float(total.saturating_sub(sum).max(1));
        sum = sum.saturating_add(*count);
        let after = float(total) / float(total.saturating_sub(sum).max(1));
        let value = float((*bound).min(of.max).max(1));
        points.push((before.min(rarest), value));
        points.push((after.min(rarest), value));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_that_ends_in_a_bucket_is_at_its_bound() {
        let of =
            Distribution { count: 100, min: 5, max: 40, buckets: vec![[10, 90], [40, 10]], ..Distribution::default() };
        assert_eq!(curve(&of, 1e6), [(1.0, 5.0), (1.0, 10.0), (10.0, 10.0), (10.0, 40.0), (100.0, 40.0)]);
        assert_eq!(round_time(5_000), "5 us");
        assert_eq!(round_time(200), "200 ns");
    }
}
