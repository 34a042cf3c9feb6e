//! A small campaign in every format.

use super::*;
use crate::fits::{NARROWEST, fits};
use crate::style::Style;
use narrows_model::Unit;
use narrows_model::run::campaign::{CampaignFactor, Design, Step};
use narrows_model::run::history::Headline;
use narrows_views::campaign::{Observed, Planned, cells, report};

fn small() -> CampaignReport {
    let factor = |name: &str, levels: [&str; 2]| CampaignFactor {
        name: name.to_owned(),
        levels: levels.map(str::to_owned).to_vec(),
    };
    let cells = cells(Design::Full, &[2, 2]);
    let steps: Vec<Step> =
        (0..16).map(|at| Step { number: at + 1, block: at / 4 + 1, host: 0, cell: cells[at % 4].clone() }).collect();
    let planned = Planned {
        name: "receive window".to_owned(),
        tag: "campaign:0a1b2c3d4e5f".to_owned(),
        hosts: vec!["server".to_owned()],
        factors: vec![
            factor("rmem", ["4096 131072 262144", "4096 131072 16777216"]),
            factor("idle\x1b[1m", ["off", "on"]),
        ],
        design: Design::Full,
        blocks: 4,
        steps: steps.clone(),
        better: None,
    };
    let run = |step: &Step| {
        let at = f64::from(u32::try_from(step.number).unwrap());
        let value = if step.cell[0] == 1 { 900e6 } else { 37e6 } + (at * 7.0 % 5.0) * 1e6;
        let figure = Headline::new("goodput up", value, Unit::BitsPerSecond);
        let figure = if step.number == 6 { Err("server closed the connection".to_owned()) } else { Ok(figure) };
        let started_unix_us = 1_190_232_884_000_000;
        (step.number, Observed { id: format!("20070919-201444-{:08x}", step.number), started_unix_us, figure })
    };
    report(&planned, &steps.iter().take(15).map(run).collect(), 0.01)
}

#[test]
fn it_fits_the_narrowest_terminal() {
    fits("campaign", &doc(&small(), false).text(Style { width: NARROWEST, ..Style::default() }));
}

#[test]
fn in_every_format() {
    insta::assert_snapshot!("text", doc(&small(), false).text(Style { width: 110, ..Style::default() }));
    let narrow = doc(&small(), false).text(Style { width: 80, ..Style::default() });
    assert!(narrow.lines().all(|line| crate::words::columns(line) <= 80), "{narrow}");
    insta::assert_snapshot!("markdown", doc(&small(), true).markdown());
    insta::assert_snapshot!("csv", csv(&small()).lines().take(7).collect::<Vec<_>>().join("\n"));
    let svg = svg::picture(&small());
    assert!(
        svg.contains("rmem: …262144 → …16777216") && svg.contains("does nothing") && svg.ends_with("</svg>\n"),
        "{svg}"
    );
    let nothing = CampaignReport { mean: None, effects: vec![], best: None, cells: vec![], runs: vec![], ..small() };
    assert!(doc(&nothing, false).text(Style::default()).contains("0 of 16 runs, nothing was measured"));
}
