//! The effects of a campaign as a picture: each with its interval, as a share of the mean.

use super::words::{short_verdict, terms};
use crate::compare::words::share;
use crate::svg::Canvas;
use crate::svg::rows::{self, Estimate, Place, estimates};
use crate::words::clean;
use narrows_model::run::campaign::{CampaignEffect, CampaignReport};

const WIDTH: f64 = 1080.0;
const LEFT: f64 = 330.0;
const HEAD: f64 = 84.0;
/// Room for the verdict beside its row.
const RIGHT: f64 = 150.0;

pub fn picture(report: &CampaignReport) -> String {
    let parts = [("Main effects", super::shown(report, 1, false)), ("Interactions", super::shown(report, 2, false))];
    let parts: Vec<(&str, Vec<&CampaignEffect>)> = parts.into_iter().filter(|(_, rows)| !rows.is_empty()).collect();
    let high = |rows: usize| rows::AROUND + rows::ROW * rows as f64;
    let below = format!(
        "share of the mean, {} % intervals, grey: does nothing within {} %",
        report.level * 100.0,
        report.margin * 100.0
    );
    let whole = HEAD + parts.iter().map(|(_, rows)| high(rows.len())).sum::<f64>();
    let title = clean(&format!("{}: effects on {}", report.name, report.figure));
    let mut canvas = Canvas::titled(WIDTH, whole, &title, &below);
    let mut top = HEAD;
    let mean = report.mean.filter(|it| *it != 0.0).map_or(f64::NAN, f64::abs);
    for (name, effects) in parts {
        let row = |it: &&CampaignEffect| Estimate {
            name: clean(&terms(&it.terms)),
            value: it.effect.map(|it| it / mean),
            interval: it.interval.map(|it| it.map(|end| end / mean)),
            says: short_verdict(it).to_owned(),
        };
        let rows: Vec<Estimate> = effects.iter().map(row).collect();
        let place = Place { left: LEFT, top, wide: WIDTH - LEFT - RIGHT };
        top = estimates(&mut canvas, place, name, &rows, Some(report.margin), |it| {
            if it.abs() < 1e-12 { "0".to_owned() } else { share(it) }
        });
    }
    canvas.finish()
}
