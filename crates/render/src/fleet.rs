//! A fleet in words.

use crate::doc::Doc;
use crate::format::document;
use crate::style::Tone;
use crate::table::{Cell, Column, Row, Table};
use crate::words::plural;
use narrows_model::run::fleet::{
    AgentState, FleetCheck, FleetCost, FleetHost, FleetIncident, FleetMute, FleetStatus, FleetTests,
};
use narrows_model::words::date;
use narrows_model::words::units::{amount, grouped, micros, percent};

document!(FleetCheck, "a check of a fleet", |it, _| check(it));
document!(FleetStatus, "a fleet", |it, _| status(it));

fn check(report: &FleetCheck) -> Doc {
    let sum = |of: fn(&FleetCost) -> u64| report.tests.iter().map(of).fold(0_u64, u64::saturating_add);
    let [tests, carried, stored] =
        [sum(|it| it.tests_a_day), sum(|it| it.bytes_a_day), sum(|it| it.stored_bytes_a_day)];
    let (word, tone) = if report.is_possible() { ("POSSIBLE", Tone::Good) } else { ("IMPOSSIBLE", Tone::Bad) };
    let says = format!(
        "{}: {}, {} tests a day; {} on the paths and {} in the store a day, {} in the {} that they are kept",
        report.name,
        plural(report.hosts, "host"),
        grouped(tests),
        amount(carried),
        amount(stored),
        amount(stored.saturating_mul(report.keep_ms / 3_600_000) / 24),
        time(report.keep_ms)
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

/// How a fleet is, in a word.
pub(crate) fn word(report: &FleetStatus) -> (&'static str, Tone) {
    match (report.incidents.is_empty(), report.is_well()) {
        (false, _) => ("BAD", Tone::Bad),
        (true, false) => ("INCOMPLETE", Tone::Mark),
        (true, true) => ("WELL", Tone::Good),
    }
}

/// … and in a sentence.
pub(crate) fn sentence(report: &FleetStatus) -> String {
    let count = |state| report.hosts.iter().filter(|host| host.state == state).count() as u64;
    let [up, silent, never, drained] =
        [AgentState::Up, AgentState::Silent, AgentState::Never, AgentState::Drained].map(count);
    let mut says = format!(
        "{}: {}",
        report.name,
        match report.incidents.len() as u64 {
            0 => "no incident is open".to_owned(),
            open => format!("{} open", plural(open, "incident")),
        }
    );
    says += &format!("; {up} of {} answer", plural(report.hosts.len() as u64, "agent"));
    for (number, how) in [(silent, "silent"), (never, "never seen"), (drained, "drained")] {
        if number > 0 {
            says += &format!(", {number} {how}");
        }
    }
    if !report.has_results() {
        says += "; no test has a result yet";
    }
    says
}

fn status(report: &FleetStatus) -> Doc {
    let ((word, tone), says) = (word(report), sentence(report));
    let paused = report
        .paused_until_unix_ms
        .map(|until| format!("paused: no test begins for {}", time(until.saturating_sub(report.at_unix_ms))));
    let trouble = report.trouble.as_ref().map(|why| format!("the controller's store fails: {why}"));
    let gone: Vec<&FleetHost> =
        report.hosts.iter().filter(|host| matches!(host.state, AgentState::Silent | AgentState::Never)).collect();
    Doc::new("Fleet")
        .verdict(word, tone, &says)
        .then(|doc| if report.incidents.is_empty() { doc } else { doc.table(incidents(report)) })
        .table(ends(&report.tests))
        .then(|doc| if gone.is_empty() { doc } else { doc.table(missing(&gone, report.at_unix_ms)) })
        .then(|doc| if report.mesh.loads.is_empty() { doc } else { doc.part(crate::mesh::doc(&report.mesh)) })
        .warnings(report.hosts.iter().filter_map(off))
        .warnings(report.muted.iter().map(muted))
        .warnings(paused.into_iter().chain(trouble).chain(report.alerts_trouble.clone()))
}

/// Of what nothing is reported.
pub(crate) fn muted(it: &FleetMute) -> String {
    let until = date::utc(it.until_unix_ms / 1_000);
    format!("muted until {until}: {}; `narrows fleet mute '{}' 0s` ends that", it.element, it.element)
}

/// A clock that is off.
fn off(host: &FleetHost) -> Option<String> {
    let behind_ms = host.clock_behind_ms.filter(|it| it.unsigned_abs() > 2_000)?;
    let way = if behind_ms > 0 { "behind" } else { "ahead of" };
    Some(format!("the clock of {} is {} {way} the controller's", host.name, time(behind_ms.unsigned_abs())))
}

fn time(ms: u64) -> String {
    micros(ms.saturating_mul(1_000))
}

fn incidents(report: &FleetStatus) -> Table {
    let columns = [
        Column::figures("no."),
        Column::figures("for"),
        Column::id("element"),
        Column::words("says"),
        Column::words("in hand").spare(1),
    ];
    let mut table = Table::new("incidents", "bad in two rounds or more", &columns);
    let row = |it: &FleetIncident| {
        Row::new(vec![
            Cell::new(it.number.to_string()),
            Cell::new(time(report.at_unix_ms.saturating_sub(it.since_unix_ms))),
            Cell::new(&it.element),
            Cell::new(it.diagnosis.as_ref().map_or_else(|| it.says.clone(), |of| format!("{}; {of}", it.says))),
            Cell::new(it.acknowledged.as_deref().unwrap_or("nobody")),
        ])
    };
    table.rows.extend(report.incidents.iter().map(row));
    table
}

fn ends(tests: &[FleetTests]) -> Table {
    let columns = [
        Column::id("mesh"),
        Column::words("test"),
        Column::figures("done"),
        Column::figures("failed"),
        Column::figures("missed"),
    ];
    let mut table = Table::new("tests", "since the controller began", &columns);
    let row = |it: &FleetTests| {
        Row::new(vec![
            Cell::new(&it.mesh),
            Cell::new(&it.test),
            Cell::new(grouped(it.done)),
            Cell::new(grouped(it.failed)).tone_if(it.failed > 0, Tone::Mark),
            Cell::new(grouped(it.missed)).tone_if(it.missed > 0, Tone::Mark),
        ])
    };
    table.rows.extend(tests.iter().map(row));
    table
}

fn missing(hosts: &[&FleetHost], at_ms: u64) -> Table {
    let columns =
        [Column::id("host"), Column::words("group"), Column::figures("silent for"), Column::words("came from")];
    let mut table = Table::new("agents that do not answer", "", &columns);
    let row = |it: &&FleetHost| {
        let since = it.heard_unix_ms.map_or_else(|| "never seen".to_owned(), |at| time(at_ms.saturating_sub(at)));
        Row::new(vec![
            Cell::new(&it.name),
            Cell::new(&it.group),
            Cell::new(since),
            Cell::new(it.address.as_deref().unwrap_or("")),
        ])
    };
    table.rows.extend(hosts.iter().map(row));
    table
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
        let report = FleetCheck {
            schema,
            name: "site".to_owned(),
            hosts: 40,
            keep_ms: 30 * 86_400_000,
            tests: vec![cost, often],
        };
        let at = |width| check(&report).text(Style { width, ..Style::default() });
        fits("fleet", &at(NARROWEST));
        insta::assert_snapshot!("wide", at(100));
        insta::assert_snapshot!("narrow", at(NARROWEST));
    }
}
