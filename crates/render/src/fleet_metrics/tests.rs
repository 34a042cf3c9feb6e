//! What scrapers and collectors get, and what the packages have for Prometheus and Grafana.

use super::*;
use crate::metrics::tests::read;
use narrows_model::run::fleet::{FleetTests, STATUS_SCHEMA};
use narrows_model::run::mesh::{MeshLoad, MeshPath, MeshPlan, SCHEMA};
use serde_json::Value;
use std::collections::BTreeMap;

const ODD: &str = "b\\\"\n} 7 # {";
const DASHBOARD: &str = include_str!("../../../../packaging/grafana-fleet.json");
const RULES: &str = include_str!("../../../../packaging/prometheus-fleet.rules.yml");

fn mesh() -> MeshReport {
    let member =
        |name: &str| MeshName { name: name.to_owned(), group: "rack".to_owned(), address: String::new(), absent: None };
    let load = |from, to, goodput_bps| MeshLoad {
        from,
        to,
        opened_by_receiver: false,
        state: MeshState::Measured { goodput_bps, retransmits: None, busy: [None; 2] },
        beside_others_bps: None,
    };
    let failed = MeshLoad { state: MeshState::Failed("no".to_owned()), ..load(1, 0, 0.0) };
    let path = |from, to, us, packets| MeshPath { from, to, rtt_us: us, packets, ..MeshPath::default() };
    MeshReport {
        schema: SCHEMA.to_owned(),
        plan: MeshPlan {
            duration_ms: 3_000,
            streams: 1,
            probe_ms: 3_000,
            diagnose: false,
            try_fixes: false,
            budget_ms: None,
            budget_bytes: None,
        },
        members: ["a", ODD, "c", "a"].map(member).to_vec(),
        paths: vec![
            path(0, 1, Some([1e3, 2e3, 9e3]), Some([100, 10, 9])),
            path(0, 2, Some([1e3, 4e3, 9e3]), None),
            path(9, 0, None, Some([100, 0, 50])),
        ],
        loads: vec![load(0, 1, 8e8), load(0, 2, 4e8), load(2, 0, f64::NAN), failed, load(0, 9, 8e9)],
        expected_bps: vec![Some(1.6e9), None, Some(8e8), None, Some(8e9)],
        slow: vec![true, true, false, true, true],
        losing: Vec::new(),
        suspects: Vec::new(),
        starved: Vec::new(),
        shared: Vec::new(),
        differences: Vec::new(),
        diagnoses: Vec::new(),
        ended_early: None,
        headline: String::new(),
        interrupted: false,
    }
}

fn status() -> FleetStatus {
    let host = |state| FleetHost {
        name: "h".to_owned(),
        group: String::new(),
        state,
        address: None,
        version: None,
        heard_unix_ms: None,
        clock_behind_ms: None,
        clock_error_us: None,
        loaded_unix_ms: Some(1_700_000_050_000),
        probed_unix_ms: Some(1_700_000_055_000),
    };
    let incident = |number, element: &str| FleetIncident {
        number,
        element: element.to_owned(),
        says: "slow".to_owned(),
        since_unix_ms: 1_700_000_000_500,
        acknowledged: None,
        diagnosis: None,
        reported: number < 9,
    };
    let tests = FleetTests { mesh: ODD.to_owned(), test: "load".to_owned(), done: 3, failed: 2, missed: 1 };
    FleetStatus {
        schema: STATUS_SCHEMA.to_owned(),
        name: "site".to_owned(),
        at_unix_ms: 1_700_000_060_000,
        paused_until_unix_ms: None,
        incidents: vec![incident(7, "host a"), incident(8, ODD), incident(9, "muted")],
        hosts: [AgentState::Up, AgentState::Up, AgentState::Silent].map(host).to_vec(),
        tests: vec![tests.clone(), tests],
        mesh: mesh(),
        bad: vec![
            FleetBad { to: 1, loaded_unix_ms: Some(1_700_000_010_000), ..FleetBad::default() },
            FleetBad { to: 2, loss: Some(0.25), probed_unix_ms: Some(1_700_000_020_000), ..FleetBad::default() },
            FleetBad { from: 2, to: 1, late_us: Some(2e3), ..FleetBad::default() },
        ],
        trouble: Some("disk full".to_owned()),
        alerts_trouble: None,
        muted: Vec::new(),
    }
}

#[test]
fn a_strict_reader_finds_all_figures() {
    let found = read(&metrics(&status()));
    let odd = "b\\\\\\\"\\n} 7 # {";
    let build = format!("narrows_build_info{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
    let missed = format!("narrows_fleet_tests_total{{mesh=\"{odd}\",test=\"load\",end=\"missed\"}}");
    let incident = format!("narrows_incident{{number=\"8\",element=\"{odd}\"}}");
    let goodput = format!("narrows_pair_goodput_bytes_per_second{{from=\"a\",to=\"{odd}\"}}");
    let expected = format!("narrows_pair_goodput_expected_bytes_per_second{{from=\"a\",to=\"{odd}\"}}");
    let late = format!("narrows_pair_round_trip_seconds{{from=\"c\",to=\"{odd}\"}}");
    let loaded = format!("narrows_pair_last_test_timestamp_seconds{{from=\"a\",to=\"{odd}\",kind=\"load\"}}");
    for (series, value) in [
        (build.as_str(), 1.0),
        ("narrows_fleet_status_timestamp_seconds", 1_700_000_060.0),
        ("narrows_fleet_store_up", 0.0),
        ("narrows_fleet_paused", 0.0),
        ("narrows_fleet_agents{state=\"up\"}", 2.0),
        ("narrows_fleet_agents{state=\"never\"}", 0.0),
        (missed.as_str(), 1.0),
        ("narrows_fleet_incidents_open", 2.0),
        (incident.as_str(), 1.0),
        ("narrows_incident_start_time_seconds{number=\"7\",element=\"host a\"}", 1_700_000_000.5),
        ("narrows_host_last_load_timestamp_seconds{host=\"h\",group=\"\"}", 1_700_000_050.0),
        ("narrows_host_last_probe_timestamp_seconds{host=\"h\",group=\"\"}", 1_700_000_055.0),
        // 800 and 400 Mbit/s, and 8 Gbit/s to a host that is not there.
        ("narrows_host_goodput_bytes_per_second{host=\"a\",group=\"rack\",direction=\"sent\"}", 1e8),
        ("narrows_host_goodput_bytes_per_second{host=\"c\",group=\"rack\",direction=\"received\"}", 5e7),
        ("narrows_host_round_trip_seconds{host=\"a\",group=\"rack\"}", 0.003),
        // 10 of 100 on the way there, 9 of the other 90 on the way back; and 50 of 100 to a.
        ("narrows_host_probe_loss_ratio{host=\"a\",group=\"rack\",direction=\"sent\"}", 60.0 / 200.0),
        ("narrows_host_probe_loss_ratio{host=\"a\",group=\"rack\",direction=\"received\"}", 9.0 / 190.0),
        ("narrows_fleet_slow_pairs", 1.0),
        (goodput.as_str(), 1e8),
        (expected.as_str(), 2e8),
        ("narrows_pair_probe_loss_ratio{from=\"a\",to=\"c\"}", 0.25),
        (late.as_str(), 0.002),
        (loaded.as_str(), 1_700_000_010.0),
        ("narrows_pair_last_test_timestamp_seconds{from=\"a\",to=\"c\",kind=\"probe\"}", 1_700_000_020.0),
    ] {
        assert_eq!(found.get(series), Some(&value), "{series} in {found:#?}");
    }
    let of = |name: &str| found.keys().filter(|it| it.starts_with(name)).count();
    assert_eq!((of("narrows_fleet_tests_total"), of("narrows_pair_"), of("narrows_incident{")), (3, 6, 2));
}

#[test]
fn a_pair_that_is_well_again_has_no_series() {
    let mut well = status();
    (well.mesh.slow, well.bad) = (vec![false; 5], Vec::new());
    let found = read(&metrics(&well));
    assert_eq!(found["narrows_fleet_slow_pairs"], 0.0);
    assert!(!found.keys().any(|it| it.starts_with("narrows_pair_")), "{found:#?}");
}

#[test]
fn a_collector_gets_the_same_figures() {
    let (status, text) = (status(), metrics(&status()));
    let sent = otlp(&status, 1_600_000_000_000);
    let metrics = sent["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().expect("metrics");
    let points =
        |it: &serde_json::Value| ["gauge", "sum"].map(|kind| it[kind]["dataPoints"].as_array().map_or(0, Vec::len));
    let count: usize = metrics.iter().flat_map(points).sum();
    assert_eq!(count, read(&text).len());
    let tests = metrics.iter().find(|it| it["name"] == "narrows_fleet_tests").expect("the tests");
    let first = &tests["sum"]["dataPoints"][0];
    assert_eq!((&first["asDouble"], &first["startTimeUnixNano"]), (&3.0.into(), &"1600000000000000000".into()));
    assert_eq!(first["attributes"][0], serde_json::json!({ "key": "mesh", "value": { "stringValue": ODD } }));
    let resource = sent["resourceMetrics"][0]["resource"]["attributes"].to_string();
    assert!(resource.contains("narrows.fleet") && resource.contains("site"), "{resource}");
}

#[test]
fn an_empty_fleet_is_an_exposition_too() {
    let mut empty = status();
    (empty.incidents, empty.hosts, empty.tests, empty.trouble) = (Vec::new(), Vec::new(), Vec::new(), None);
    (empty.mesh.members, empty.mesh.loads, empty.mesh.paths) = (Vec::new(), Vec::new(), Vec::new());
    empty.paused_until_unix_ms = Some(1);
    let found = read(&metrics(&empty));
    assert_eq!((found["narrows_fleet_store_up"], found["narrows_fleet_paused"]), (1.0, 1.0));
    assert!(!found.keys().any(|it| it.starts_with("narrows_host_") || it.starts_with("narrows_pair_")));
}

#[test]
fn only_the_worst_of_many_slow_pairs_are_named() {
    let mut many = status();
    let worst = many.mesh.loads[0].clone();
    let host = many.mesh.members[0].clone();
    let others: Vec<MeshLoad> = (0..1_999).map(|to| MeshLoad { from: 1_999, to, ..worst.clone() }).collect();
    many.mesh.members = (0..2_000).map(|nth| MeshName { name: format!("h{nth}"), ..host.clone() }).collect();
    many.mesh.loads = others.into_iter().chain([worst]).collect();
    many.mesh.expected_bps = (0..1_999).map(|_| Some(1e9)).chain([Some(9e9)]).collect();
    many.mesh.slow = vec![true; 2_000];
    let lossy = |to| FleetBad { to, loss: Some(to as f64 / 2e3), probed_unix_ms: Some(1), ..FleetBad::default() };
    many.bad = (1..2_000).map(lossy).collect();
    let found = read(&metrics(&many));
    assert_eq!(found["narrows_fleet_slow_pairs"], 2_000.0);
    assert!(found.contains_key("narrows_pair_goodput_bytes_per_second{from=\"h0\",to=\"h1\"}"));
    assert!(found.contains_key("narrows_pair_probe_loss_ratio{from=\"h0\",to=\"h1999\"}"));
    assert_eq!(found.keys().filter(|it| it.starts_with("narrows_pair_goodput")).count(), 2 * PAIRS_MAX);
    assert_eq!(found.keys().filter(|it| it.starts_with("narrows_pair_")).count(), 4 * PAIRS_MAX);
}

#[test]
fn dashboard_and_rules_ask_for_what_there_is() {
    let text = metrics(&status());
    let names: BTreeSet<&str> = text.lines().filter_map(|line| line.split(['{', ' ']).next()).collect();
    for file in [DASHBOARD, RULES] {
        let asked = file.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let asked: Vec<&str> = asked.filter(|word| word.starts_with("narrows_")).collect();
        assert!(!asked.is_empty());
        for word in asked {
            assert!(names.contains(word), "{word}");
        }
    }
}

#[test]
fn the_dashboard_has_what_grafana_needs() {
    let board: Value = serde_json::from_str(DASHBOARD).expect("JSON");
    let text = |it: &Value, key: &str| it[key].as_str().filter(|it| !it.is_empty()).map(str::to_owned);
    assert!(board["schemaVersion"].as_u64().is_some_and(|it| it >= 36) && text(&board, "title").is_some());
    let is_variable =
        |it: &Value| it["datasource"]["uid"] == "${datasource}" && text(&it["datasource"], "type").is_some();
    let variables = board["templating"]["list"].as_array().expect("variables");
    assert!(variables.iter().any(|it| it["name"] == "datasource" && it["type"] == "datasource"), "{variables:?}");
    let names: BTreeSet<String> = variables.iter().filter_map(|it| text(it, "name")).collect();
    assert!(names.len() == variables.len());
    assert!(
        variables
            .iter()
            .all(|it| it["type"] == "datasource" || is_variable(it) && text(&it["query"], "query").is_some())
    );
    let panels = board["panels"].as_array().expect("panels");
    let ids: BTreeSet<u64> = panels.iter().filter_map(|it| it["id"].as_u64()).collect();
    assert!(!panels.is_empty() && ids.len() == panels.len(), "{ids:?}");
    let mut taken: BTreeSet<[u64; 2]> = BTreeSet::new();
    for panel in panels {
        let title = text(panel, "title").expect("a title");
        assert!(text(panel, "type").is_some() && is_variable(panel), "{title}");
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|key| panel["gridPos"][key].as_u64().expect("a place"));
        assert!(w > 0 && h > 0 && x + w <= 24, "{title}");
        let free = (y..y + h).all(|y| (x..x + w).all(|x| taken.insert([x, y])));
        assert!(free, "{title} is over another panel");
        let targets = panel["targets"].as_array().expect("targets");
        let ids: BTreeSet<String> = targets.iter().filter_map(|it| text(it, "refId")).collect();
        assert!(!targets.is_empty() && ids.len() == targets.len(), "{title}: {ids:?}");
        for target in targets {
            let expr = text(target, "expr").expect("an expression");
            assert!(is_variable(target) && is_balanced(&expr), "{title}: {expr}");
            let asked = expr.split('$').skip(1).map(|it| it.split(|c: char| !c.is_ascii_alphanumeric()).next());
            assert!(asked.flatten().all(|it| names.contains(it)), "{title}: {expr}");
        }
    }
}

/// Whether brackets are closed in their order, and quotes.
fn is_balanced(expr: &str) -> bool {
    let (mut open, mut is_text) = (Vec::new(), false);
    for c in expr.chars() {
        match c {
            '"' => is_text = !is_text,
            _ if is_text => {}
            '(' => open.push(')'),
            '[' => open.push(']'),
            '{' => open.push('}'),
            ')' | ']' | '}' if open.pop() != Some(c) => return false,
            _ => {}
        }
    }
    open.is_empty() && !is_text
}

/// A text of one line as YAML has it: in double quotes, or without any and nothing that means something else.
fn is_scalar(text: &str) -> bool {
    match text.strip_prefix('"') {
        Some(rest) => rest.strip_suffix('"').is_some_and(|text| !text.contains(['"', '\\'])),
        None => {
            let begins = |c: char| "-?:,[]{}#&*!|>'\"%@` ".contains(c);
            !text.is_empty()
                && !text.starts_with(begins)
                && !text.ends_with([':', ' '])
                && !text.contains(": ")
                && !text.contains(" #")
        }
    }
}

/// Of YAML there are only the few forms that the file has.
#[test]
fn the_rules_are_what_prometheus_reads() {
    assert!(!RULES.contains('\t'));
    let mut lines = RULES.lines().filter(|it| !it.trim().is_empty() && !it.trim_start().starts_with('#'));
    for head in ["groups:", "  - name: narrows-fleet", "    rules:"] {
        assert_eq!(lines.next(), Some(head));
    }
    let mut rules: Vec<BTreeMap<&str, String>> = Vec::new();
    let mut within = "";
    for line in lines {
        if let Some(name) = line.strip_prefix("      - alert: ") {
            assert!(name.chars().all(char::is_alphanumeric), "{line}");
            rules.push(BTreeMap::from([("alert", name.to_owned())]));
            within = "";
            continue;
        }
        let rule = rules.last_mut().expect("a rule");
        let (text, depth) = (line.trim_start(), line.len() - line.trim_start().len());
        if within == "expr" && depth >= 10 {
            rule.entry("expr").or_default().push_str(&format!(" {text}"));
            continue;
        }
        let (key, value) = text.split_once(':').expect("a key");
        let value = value.trim_start();
        let is_form = match (depth, key) {
            (8, "expr") => value == "|" || is_scalar(value),
            (8, "for") => value.strip_suffix(['s', 'm', 'h']).is_some_and(|it| it.parse::<u32>().is_ok()),
            (8, "labels") => ["critical", "warning", "info"].iter().any(|it| value == format!("{{ severity: {it} }}")),
            (8, "annotations") => value.is_empty(),
            (10, "summary" | "description") if within == "annotations" => is_scalar(value),
            _ => false,
        };
        assert!(is_form, "{line}");
        within = if depth == 8 { key } else { within };
        let value = if value == "|" { String::new() } else { value.to_owned() };
        assert!(rule.insert(key, value).is_none(), "twice: {line}");
    }
    let names: BTreeSet<&String> = rules.iter().map(|it| &it["alert"]).collect();
    assert!(!rules.is_empty() && names.len() == rules.len(), "{names:?}");
    for rule in &rules {
        assert!(is_balanced(&rule["expr"]) && rule["expr"].contains("narrows_"), "{rule:?}");
        assert!(["labels", "annotations", "summary", "description"].iter().all(|it| rule.contains_key(it)), "{rule:?}");
        let text = format!("{} {}", rule["summary"], rule["description"]);
        assert_eq!(text.matches("{{ ").count(), text.matches(" }}").count(), "{text}");
    }
}
