//! A fleet in words.

use crate::doc::Doc;
use crate::format::document;
use crate::style::Tone;
use crate::table::{Cell, Column, Row, Table};
use crate::words::plural;
use narrows_model::run::fleet::{
    AgentState, FleetCheck, FleetCost, FleetHost, FleetIncident, FleetMute, FleetStatus, FleetTests,
};
use narrows_model::run::mesh::MeshReport;
use narrows_model::words::date;
use narrows_model::words::show::nominal;
use narrows_model::words::units::{amount, bps, grouped, micros, percent};

document!(FleetCheck, "a check of a fleet", |it, _| check(it));
document!(FleetStatus, "a fleet", |it, _| status(it));

fn check(report: &FleetCheck) -> Doc {
    let sum = |of: fn(&FleetCost) -> u64| report.tests.iter().map(of).fold(0_u64, u64::saturating_add);
    let [tests, carried, stored] =
        [sum(|it| it.tests_a_day), sum(|it| it.bytes_a_day), sum(|it| it.stored_bytes_a_day)];
    let (word, tone) = if report.is_possible() { ("POSSIBLE", Tone::Good) } else { ("IMPOSSIBLE", Tone::Bad) };
    let says = format!(
        "{}: {}, {} tests a day; {} on the paths{} and {} in the store a day, {} in the {} that they are kept",
        report.name,
        plural(report.hosts, "host"),
        grouped(tests),
        amount(carried),
        rates(report),
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

/// The rates by which the bytes of loads are counted.
fn rates(report: &FleetCheck) -> String {
    let all: Vec<f64> = report.tests.iter().filter_map(FleetCost::load_bps).collect();
    let (low, high) = all.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), it| (low.min(*it), high.max(*it)));
    let [least, most] = [low, high].map(|it| nominal(&bps(it)));
    match all.is_empty() {
        true => String::new(),
        false if least == most => format!(" (loads at {most} each, as `expect` says)"),
        false => format!(" (loads at {least} to {most} each, as `expect` says)"),
    }
}

/// How a fleet is, in a word.
pub(crate) fn word(report: &FleetStatus) -> (&'static str, Tone) {
    match (report.incidents.is_empty(), report.is_well(), suspected(&report.mesh)) {
        (false, ..) => ("BAD", Tone::Bad),
        (true, false, _) => ("INCOMPLETE", Tone::Mark),
        (true, true, Some(_)) => ("WELL so far", Tone::Mark),
        (true, true, None) => ("WELL", Tone::Good),
    }
}

/// What the last results blame.
fn suspected(mesh: &MeshReport) -> Option<String> {
    let slow: Vec<&str> = mesh.suspects.iter().map(|it| it.element.as_str()).collect();
    let losing: Vec<&str> = mesh.losing.iter().map(|it| it.element.as_str()).collect();
    let of = |what: &str, all: &[&str]| {
        let (first, more) = all.split_first()?;
        let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        Some(format!("{what}: {first}{more}"))
    };
    let found: Vec<String> =
        [of("looks slow", &slow), of("seems to lose packets", &losing)].into_iter().flatten().collect();
    (!found.is_empty()).then(|| found.join("; "))
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
    let looks = suspected(&report.mesh).filter(|_| report.incidents.is_empty());
    if let Some(looks) = looks {
        says += &format!("; {looks} (tested again; an incident once that confirms it)");
    }
    let failing = [
        (report.trouble.is_some(), "the controller's store fails"),
        (report.alerts_trouble.is_some(), "alerts do not arrive"),
    ];
    for (_, why) in failing.into_iter().filter(|(fails, _)| *fails) {
        says += &format!("; {why}");
    }
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

/// `3 s`, `1 min`, `7 min 48 s`, `30 days`: in its two largest units.
pub(crate) fn time(ms: u64) -> String {
    let and = |whole: String, rest: u64, unit: &str| if rest == 0 { whole } else { format!("{whole} {rest} {unit}") };
    match ms {
        0 => "0 s".to_owned(),
        1..60_000 => nominal(&micros(ms * 1_000)),
        60_000..3_600_000 => and(format!("{} min", ms / 60_000), ms % 60_000 / 1_000, "s"),
        3_600_000..86_400_000 => and(format!("{} h", ms / 3_600_000), ms % 3_600_000 / 60_000, "min"),
        _ => and(plural(ms / 86_400_000, "day"), ms % 86_400_000 / 3_600_000, "h"),
    }
}

/// A test by its word of [`FleetTests`], with times as a reader writes them.
fn shown(test: &str) -> String {
    let words: Vec<&str> = test.split(' ').collect();
    let [kind, "of", lasts, "ms", "each", every, "ms"] = words[..] else { return test.to_owned() };
    match (lasts.parse::<u64>(), every.parse::<u64>()) {
        (Ok(lasts), Ok(every)) => format!("{kind} of {} every {}", time(lasts), time(every)),
        _ => test.to_owned(),
    }
}

/// What an incident says is long, and stands in lines of its own in every text.
fn incidents(report: &FleetStatus) -> Table {
    let columns = [
        Column::id("element"),
        Column::figures("no."),
        Column::figures("for"),
        Column::id("in hand"),
        Column::words("says").below(),
        Column::words("diagnosis").below().spare(1),
    ];
    let mut table = Table::new("incidents", "confirmed: no single bad test opens one", &columns);
    let row = |it: &FleetIncident| {
        let muted = report.muted_until_unix_ms(&it.element);
        Row::new(vec![
            Cell::new(&it.element),
            Cell::new(it.number.to_string()),
            Cell::new(time(report.at_unix_ms.saturating_sub(it.since_unix_ms))),
            Cell::new(it.acknowledged.as_deref().unwrap_or("nobody")),
            Cell::new(&it.says).tone(Tone::Bad),
            Cell::new(it.diagnosis.as_deref().unwrap_or("")),
        ])
        .note(muted.map(|until| format!("muted until {}", date::utc(until / 1_000))))
    };
    table.rows.extend(report.incidents.iter().map(row));
    table.trimmed()
}

fn ends(tests: &[FleetTests]) -> Table {
    let columns = [
        Column::id("mesh"),
        Column::id("test"),
        Column::figures("done"),
        Column::figures("failed"),
        Column::figures("missed"),
    ];
    let mut table = Table::new("tests", "since the controller began", &columns);
    let row = |it: &FleetTests| {
        Row::new(vec![
            Cell::new(&it.mesh),
            Cell::new(shown(&it.test)),
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
    use narrows_model::run::mesh::{MeshPlan, MeshSuspect};

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

    /// A fleet with nothing bad.
    fn fleet() -> FleetStatus {
        let host = |name: &str, group: &str| FleetHost {
            name: name.to_owned(),
            group: group.to_owned(),
            state: AgentState::Up,
            address: None,
            version: None,
            heard_unix_ms: None,
            clock_behind_ms: None,
            clock_error_us: None,
            loaded_unix_ms: None,
            probed_unix_ms: None,
        };
        let tests = FleetTests {
            mesh: "goodput".to_owned(),
            test: "load of 3000 ms each 3600000 ms".to_owned(),
            done: 7,
            failed: 0,
            missed: 0,
        };
        let plan = MeshPlan {
            duration_ms: 3_000,
            streams: 1,
            probe_ms: 3_000,
            diagnose: false,
            try_fixes: false,
            budget_ms: None,
            budget_bytes: None,
        };
        let mesh = MeshReport {
            schema: narrows_model::run::mesh::SCHEMA.to_owned(),
            plan,
            members: Vec::new(),
            paths: Vec::new(),
            loads: Vec::new(),
            expected_bps: Vec::new(),
            slow: Vec::new(),
            losing: Vec::new(),
            suspects: Vec::new(),
            starved: Vec::new(),
            shared: Vec::new(),
            differences: Vec::new(),
            diagnoses: Vec::new(),
            ended_early: None,
            headline: String::new(),
            interrupted: false,
        };
        FleetStatus {
            schema: narrows_model::run::fleet::STATUS_SCHEMA.to_owned(),
            name: "site".to_owned(),
            at_unix_ms: 242_000,
            paused_until_unix_ms: None,
            incidents: Vec::new(),
            hosts: vec![host("a1", "west"), host("b1", "east")],
            tests: vec![tests],
            mesh,
            bad: Vec::new(),
            trouble: None,
            alerts_trouble: None,
            muted: Vec::new(),
        }
    }

    fn incident(element: &str) -> FleetIncident {
        FleetIncident {
            number: 2,
            element: element.to_owned(),
            says: "carries 26 % of what it did before (260 Mbit/s)".to_owned(),
            since_unix_ms: 200_000,
            acknowledged: None,
            diagnosis: Some("the send buffer is too small".to_owned()),
            reported: false,
        }
    }

    fn mute(element: &str, until_unix_ms: u64) -> FleetMute {
        FleetMute { element: element.to_owned(), until_unix_ms }
    }

    #[test]
    fn an_incident_is_whole_at_any_width_and_says_that_it_is_muted() {
        let mut it = fleet();
        it.incidents = vec![incident("host b1 (sending)")];
        it.muted = vec![mute("host b1", 300_000)];
        let narrow = status(&it).text(Style { width: NARROWEST, ..Style::default() });
        fits("fleet", &narrow);
        let row = "  element            no.   for  in hand
  host b1 (sending)    2  42 s  nobody
        carries 26 % of what it did
        before (260 Mbit/s)
        the send buffer is too small
    ! muted until 1970-01-01T00:05:00Z
";
        assert!(narrow.contains(row), "{narrow}");
        let tests = "  goodput\n    test: load of 3 s every 1 h\n    done: 7\n";
        assert!(narrow.contains(tests), "{narrow}");
        // In a pipe tables have no limit.
        it.incidents[0].says = "carries too little ".repeat(20);
        let piped = status(&it).text(Style { wide: true, ..Style::default() });
        assert!(piped.lines().all(|line| line.chars().count() <= 100), "{piped}");
    }

    #[test]
    fn a_mute_of_a_host_a_group_or_a_beginning_is_of_what_it_names() {
        let mut it = fleet();
        it.muted = vec![mute("host a1", 1), mute("group east", 2), mute("router 192.*", 3), mute("all agents", 4)];
        let until = |element: &str| it.muted_until_unix_ms(element);
        let muted =
            ["agent a1", "only the path b1 to a1", "the agents of group east", "router 192.0.2.1", "all agents"];
        assert_eq!(muted.map(until), [Some(1), Some(2), Some(2), Some(3), Some(4)]);
        assert_eq!(["agent a10", "router 198.51.100.1", "all paths"].map(until), [None; 3]);
    }

    #[test]
    fn the_headline_says_what_looks_bad_and_what_fails() {
        let mut it = fleet();
        assert_eq!(word(&it).0, "WELL");
        assert_eq!(sentence(&it), "site: no incident is open; 2 of 2 agents answer");
        it.mesh.suspects.push(MeshSuspect {
            element: "only the path b1 to a1".to_owned(),
            or: Vec::new(),
            carries: 0.26,
            interval: [0.25, 0.27],
            loads: 1,
            repeated: 1,
            worst: [1, 0],
        });
        assert!(it.is_well() && word(&it).0 == "WELL so far");
        let looks = "looks slow: only the path b1 to a1 (tested again; an incident once that confirms it)";
        assert_eq!(sentence(&it), format!("site: no incident is open; {looks}; 2 of 2 agents answer"));
        it.mesh.suspects.clear();
        it.alerts_trouble = Some("alerts do not arrive: webhook x: 404".to_owned());
        assert_eq!(word(&it).0, "INCOMPLETE");
        assert_eq!(sentence(&it), "site: no incident is open; alerts do not arrive; 2 of 2 agents answer");
        it.trouble = Some("disk full".to_owned());
        assert!(sentence(&it).contains("open; the controller's store fails; alerts do not arrive; 2 of"));
        it.incidents = vec![incident("host b1")];
        assert!(word(&it).0 == "BAD" && sentence(&it).starts_with("site: 1 incident open; the controller's store"));
    }

    #[test]
    fn times_are_in_their_two_largest_units() {
        let all = [0, 500, 3_000, 2_500, 60_000, 90_000, 468_000, 3_600_000, 86_400_000, 30 * 86_400_000, 90_000_000];
        let words = all.map(time);
        let expected = [
            "0 s", "500 ms", "3 s", "2.5 s", "1 min", "1 min 30 s", "7 min 48 s", "1 h", "1 day", "30 days",
            "1 day 1 h",
        ];
        assert_eq!(words, expected);
        assert_eq!(shown("probe of 3000 ms each 60000 ms"), "probe of 3 s every 1 min");
        assert_eq!(shown("another test"), "another test");
    }
}
