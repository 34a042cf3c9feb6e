//! A fleet in words.

use crate::doc::Doc;
use crate::format::document;
use crate::style::Tone;
use crate::table::{Cell, Column, Row, Table};
use crate::words::plural;
use narrows_model::run::fleet::{FleetCheck, FleetCost};
use narrows_model::words::units::{amount, grouped, micros, percent};

document!(FleetCheck, "a check of a fleet", |it, _| check(it));

fn check(report: &FleetCheck) -> Doc {
    let sum = |of: fn(&FleetCost) -> u64| report.tests.iter().map(of).fold(0_u64, u64::saturating_add);
    let [tests, carried, stored] =
        [sum(|it| it.tests_a_day), sum(|it| it.bytes_a_day), sum(|it| it.stored_bytes_a_day)];
    let (word, tone) = if report.is_possible() { ("POSSIBLE", Tone::Good) } else { ("IMPOSSIBLE", Tone::Bad) };
    let says = format!(
        "{}: {}, {} tests a day; {} on the paths and {} in the store a day",
        report.name,
        plural(report.hosts, "host"),
        grouped(tests),
        amount(carried),
        amount(stored)
    );
    let columns = [
        Column::id("mesh"),
        Column::words("test"),
        Column::figures("every"),
        Column::figures("pairs"),
        Column::figures("rounds").spare(3),
        Column::figures("takes").spare(2),
        Column::figures("busiest host").spare(1),
        Column::figures("tests/day"),
        Column::figures("bytes/day"),
    ];
    let time = |ms: u64| micros(ms.saturating_mul(1_000));
    let row = |it: &FleetCost| {
        Row::new(vec![
            Cell::new(&it.mesh),
            Cell::new(format!("{}, {}", it.kind, time(it.lasts_ms))),
            Cell::new(time(it.every_ms)),
            Cell::new(grouped(it.pairs)),
            Cell::new(grouped(it.rounds)),
            Cell::new(time(it.slot_ms)).tone_if(it.slot_ms > it.every_ms, Tone::Bad),
            Cell::new(percent(it.busiest)),
            Cell::new(grouped(it.tests_a_day)),
            Cell::new(amount(it.bytes_a_day)),
        ])
    };
    let remark = "takes: all pairs, loads in both directions; busiest host: its time in loads";
    let mut table = Table::new("tests", remark, &columns);
    table.rows.extend(report.tests.iter().map(row));
    let wrong = report.tests.iter().flat_map(|it| it.wrong.iter().map(move |why| format!("{}: {why}", it.mesh)));
    Doc::new("Fleet").verdict(word, tone, &says).table(table).warnings(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Style;
    use crate::fits::{NARROWEST, fits};

    #[test]
    fn a_fleet_in_words() {
        let cost = FleetCost {
            mesh: "all".to_owned(),
            kind: "load".to_owned(),
            every_ms: 3_600_000,
            lasts_ms: 3_000,
            pairs: 780,
            rounds: 78,
            slot_ms: 468_000,
            busiest: 0.065,
            tests_a_day: 37_440,
            bytes_a_day: 14_040_000_000_000,
            stored_bytes_a_day: 14_976_000,
            wrong: Vec::new(),
        };
        let often = FleetCost {
            every_ms: 300_000,
            busiest: 0.78,
            wrong: vec![
                "all pairs take 468 s, and it repeats every 300 s: less often, or the design regular".to_owned(),
            ],
            ..cost.clone()
        };
        let schema = narrows_model::run::fleet::SCHEMA.to_owned();
        let report = FleetCheck { schema, name: "site".to_owned(), hosts: 40, tests: vec![cost, often] };
        let at = |width| check(&report).text(Style { width, ..Style::default() });
        fits("fleet", &at(NARROWEST));
        insta::assert_snapshot!("wide", at(100));
        insta::assert_snapshot!("narrow", at(NARROWEST));
    }
}
