//! One factor, and two.

use super::*;
use crate::style::Style;
use narrows_model::Unit;
use narrows_model::run::campaign::{CampaignFactor, Design, Step};
use narrows_model::run::history::Headline;
use narrows_views::campaign::{Observed, Planned, cells, report};
use std::collections::BTreeMap;

fn influence(factors: &[(&str, &[&str])], value: impl Fn(&Step) -> f64) -> CampaignReport {
    let levels: Vec<usize> = factors.iter().map(|it| it.1.len()).collect();
    let cells = cells(Design::Full, &levels);
    let count = cells.len();
    let steps: Vec<Step> = (0..3 * count)
        .map(|at| Step { number: at + 1, block: at / count + 1, host: 0, cell: cells[at % count].clone() })
        .collect();
    let factors = factors.iter().map(|(name, levels)| CampaignFactor {
        name: (*name).to_owned(),
        levels: levels.iter().map(|it| (*it).to_owned()).collect(),
    });
    let planned = Planned {
        name: "sweep".to_owned(),
        tag: "campaign:0a1b2c3d4e5f".to_owned(),
        hosts: vec!["server".to_owned()],
        factors: factors.collect(),
        design: Design::Full,
        blocks: 3,
        steps: steps.clone(),
        better: None,
    };
    let observed: BTreeMap<usize, Observed> = steps
        .iter()
        .map(|step| {
            let figure = Ok(Headline::new("goodput up", value(step), Unit::BitsPerSecond));
            (step.number, Observed { id: format!("run-{}", step.number), started_unix_us: 0, figure })
        })
        .collect();
    report(&planned, &observed, 0.01)
}

fn one() -> CampaignReport {
    let rates = [1.14e9, 3.84e9, 9.47e9, 9.91e9];
    influence(&[("window", &["32k", "128k", "512k", "1M"])], |step| {
        rates[step.cell[0]] * (1.0 + 0.02 * f64::from(u32::try_from(step.block).unwrap()))
    })
}

fn two() -> CampaignReport {
    influence(&[("window", &["32k", "1M"]), ("client:gro@eth0", &["on", "off"])], |step| {
        let cell = [[1e9, 1e9], [9e9, 5e9]][step.cell[0]][step.cell[1]];
        cell + 1e7 * f64::from(u32::try_from(step.block).unwrap())
    })
}

#[test]
fn a_table_with_bars() {
    let style = Style { color: false, full: false, wide: false, width: 100 };
    insta::assert_snapshot!("one", doc(&one()).text(style));
    insta::assert_snapshot!("two", doc(&two()).text(style));
    let none = CampaignReport { cells: vec![], runs: vec![], mean: None, ..one() };
    assert!(doc(&none).text(style).starts_with("Influence of window"));
}

#[test]
fn a_picture_with_a_line_for_each_value_of_the_second_factor() {
    let (one, two) = (picture(&one()), picture(&two()));
    assert_eq!((one.matches("<polyline").count(), two.matches("<polyline").count()), (1, 2));
    assert!(two.contains("client:gro@eth0=off") && two.contains(">1M<"), "{two}");
}

#[test]
fn the_combinations_are_compared_by_their_runs() {
    let mut report = two();
    let all = comparison(&report, 4).unwrap();
    assert_eq!(all, "narrows compare run-1,run-5,run-9 run-2,run-6,run-10 run-3,run-7,run-11 run-4,run-8,run-12");
    assert_eq!(comparison(&report, 3), None);
    report.runs.iter_mut().filter(|run| run.levels[0] == "32k" || run.step == 3).for_each(|run| run.value = None);
    assert_eq!(comparison(&report, 4).unwrap(), "narrows compare run-7,run-11 run-4,run-8,run-12");
    report.runs.iter_mut().for_each(|run| run.value = None);
    assert_eq!(comparison(&report, 4), None);
}
