//! Text, Markdown and CSV of a small comparison.

use super::*;
use crate::style::Style;
use narrows_model::Unit;
use narrows_model::host::side_by_side::{Cell as HostCell, Group};
use narrows_model::run::compare::{CompareInventory, CompareRun};
use narrows_model::run::diff::DiffParameter;
use narrows_views::compare::{Options, Side, Values, compare};

pub(super) fn report() -> CompareReport {
    let numbers = |name: &str, values: &[f64]| Side { name: name.into(), values: Values::Numbers(values.to_vec()) };
    let many: Vec<f64> = (0..12).map(|k| 900e6 + f64::from(k * k % 7) * 3e6).collect();
    let sides = [
        numbers("before.txt", &[941e6, 940e6, 942e6, 939.5e6, 941.5e6, 940.5e6]),
        numbers("after\x1b[31m.txt", &many),
        numbers("again.txt", &[941e6, 940.2e6, 942.1e6, 939.9e6, 941.2e6, 940.4e6]),
        numbers("few.txt", &[900e6, 960e6]),
    ];
    let options = Options { level: 0.95, margin: 0.01, paired: false, figures: vec![] };
    let mut report = compare(&sides, &options).unwrap();
    report.figures[0].name = "goodput up".into();
    report.figures[0].unit = Unit::BitsPerSecond;
    report.sides[1].runs =
        vec![CompareRun { id: "20070919-201444-0000002a".into(), started_unix_us: 1_190_232_884_000_000 }];
    let cell = |text: &str| HostCell { text: text.into(), value: None, why_missing: None };
    report.inventory = vec![
        CompareInventory {
            side: "B".into(),
            parameters: vec![DiffParameter {
                at: narrows_model::Place::Server,
                group: Group::Host,
                key: "host.kernel".into(),
                label: "kernel".into(),
                cells: [cell("6.1.0-27"), cell("6.1.0-28")],
            }],
            missing: None,
        },
        CompareInventory { side: "C".into(), parameters: vec![], missing: Some("run x is damaged".into()) },
    ];
    report
}

#[test]
fn a_large_change_is_a_factor() {
    let said: Vec<String> = [(8.999, 1.0), (9.5, 1.0), (460.14, 1.0), (46_014.0, 1.0), (460.14, -1.0), (-0.998, 1.0)]
        .iter()
        .map(|(of, base)| words::change(*of, *base))
        .collect();
    assert_eq!(said, ["+899.9 %", "10.5 times", "461 times", "46,015 times", "+46014.0 %", "-99.8 %"]);
}

#[test]
fn in_every_format() {
    insta::assert_snapshot!("text", doc(&report()).text(Style { width: 100, ..Style::default() }));
    let narrow = doc(&report()).text(Style { width: 80, ..Style::default() });
    assert!(narrow.lines().all(|line| crate::words::columns(line) <= 80), "{narrow}");
    insta::assert_snapshot!("markdown", doc(&report()).markdown());
    let lines = csv::table(&report());
    assert_eq!(lines.lines().count(), 27);
    assert!(
        lines.contains(
            "B,after?[31m.txt,goodput up,bits_per_second,1,20070919-201444-0000002a,2007-09-19T20:14:44Z,900000000\n"
        ),
        "{lines}"
    );
}
