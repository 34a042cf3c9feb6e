//! The influence as a picture: the figure over the values of the first factor, a line for each value of the second one.

use super::{high, subtitle, title};
use crate::compare::words::figure;
use crate::svg::{Canvas, Entry, Look, Panel, Scale, legend};
use crate::words::clean;
use narrows_model::run::campaign::{CampaignCell, CampaignReport};

const WIDTH: f64 = 1080.0;
const LEFT: f64 = 110.0;
const HIGH: f64 = 340.0;

pub fn picture(report: &CampaignReport) -> String {
    let Some(first) = report.factors.first() else { return String::new() };
    let lines: Vec<Option<&String>> = match report.factors.get(1) {
        Some(second) => second.levels.iter().map(Some).collect(),
        None => vec![None],
    };
    let named = |nth: usize, level: &Option<&String>| {
        level.map(|it| Entry::line(clean(&format!("{}={it}", report.factors[1].name)), Look::nth(nth)))
    };
    let entries: Vec<Entry> = lines.iter().enumerate().filter_map(|(nth, it)| named(nth, it)).collect();
    let took = legend(&mut Canvas::new(0.0, 0.0, "", ""), (LEFT, 0.0), WIDTH - 20.0, &entries);
    let top = 84.0 + took + 40.0;
    let mut canvas = Canvas::titled(WIDTH, top + HIGH + 70.0, &clean(&title(report)), &clean(&subtitle(report)));
    legend(&mut canvas, (LEFT, 84.0), WIDTH - 20.0, &entries);
    let place = |at: usize| at as f64;
    let xs = Scale::Linear(-0.5, place(first.levels.len()) - 0.5);
    let ys = Scale::from_zero(report.cells.iter().filter_map(high));
    let panel = Panel { left: LEFT, top, wide: WIDTH - LEFT - 40.0, high: HIGH, xs, ys };
    panel.grid_y(&mut canvas, &clean(&report.figure), |it| figure(report.unit, it));
    let ticks: Vec<f64> = (0..first.levels.len()).map(place).collect();
    let name = |at: f64| first.levels.get(at.max(0.0) as usize).map_or_else(String::new, |it| clean(it));
    panel.axis_x(&mut canvas, &ticks, &clean(&first.name), name);
    for (nth, line) in lines.iter().enumerate() {
        let look = Look::nth(nth);
        let own = |it: &&CampaignCell| line.is_none() || it.levels.get(1) == *line;
        let mut points = Vec::new();
        for cell in report.cells.iter().filter(own) {
            let Some(at) = first.levels.iter().position(|it| Some(it) == cell.levels.first()) else { continue };
            // Beside each other, so that no interval hides another.
            let x = place(at) + (place(nth) - (place(lines.len()) - 1.0) / 2.0) * 0.04;
            points.extend(cell.mean.map(|mean| (x, mean)));
            if let Some([low, high]) = cell.interval {
                let (x, low, high) = (panel.x(x), panel.y(low.max(0.0)), panel.y(high));
                canvas.line([x, low, x, high], look.stroke(1.4));
                for y in [low, high] {
                    canvas.line([x - 5.0, y, x + 5.0, y], look.stroke(1.4));
                }
            }
        }
        panel.series(&mut canvas, &points, look, |(x, y)| format!("{}: {}", name(x.round()), figure(report.unit, y)));
    }
    canvas.finish()
}
