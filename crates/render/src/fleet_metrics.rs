//! A fleet as metrics (OpenMetrics 1.0): how its controller is, the figures of each host, and of pairs only those that are slow: a scraper
//! that got all pairs of a thousand hosts would be busy with nothing else.

use crate::metrics::{Exposition, Kind, Labels, Sample, flag, labels, seconds};
use narrows_model::run::fleet::{AgentState, FleetHost, FleetIncident, FleetStatus};
use narrows_model::run::mesh::{MeshName, MeshReport, MeshState};
use narrows_model::words::figures::float;

/// Pairs that are named one by one; where a whole site is slow, the worst.
const PAIRS_MAX: usize = 1_000;

/// A fleet as a scraper reads it.
pub fn metrics(status: &FleetStatus) -> String {
    exposition(status).text()
}

/// A fleet as a collector of OpenTelemetry takes it (OTLP, JSON). `since_unix_ms`: since when the controller counts.
pub fn otlp(status: &FleetStatus, since_unix_ms: u64) -> serde_json::Value {
    exposition(status).otlp(&[("narrows.fleet", &status.name)], since_unix_ms, status.at_unix_ms)
}

fn exposition(status: &FleetStatus) -> Exposition {
    let mut all = Exposition::default();
    controller(&mut all, status);
    incidents(&mut all, status);
    measured(&mut all, status);
    hosts(&mut all, &status.mesh);
    slow(&mut all, &status.mesh);
    all
}

fn controller(all: &mut Exposition, status: &FleetStatus) {
    all.build();
    let at = "When the controller said this, seconds since 1970.";
    all.one("narrows_fleet_status_timestamp_seconds", "seconds", at, seconds(status.at_unix_ms));
    let store = "Whether what is found can be stored: 1 yes, 0 no.";
    all.one("narrows_fleet_store_up", "", store, flag(status.trouble.is_none()));
    let paused = "Whether no test begins, as somebody asked for: 1 yes, 0 no.";
    all.one("narrows_fleet_paused", "", paused, flag(status.paused_until_unix_ms.is_some()));
    let states = [
        ("up", AgentState::Up),
        ("silent", AgentState::Silent),
        ("never", AgentState::Never),
        ("drained", AgentState::Drained),
    ];
    let agents = states.map(|(word, state)| {
        let count = status.hosts.iter().filter(|host| host.state == state).count();
        (labels(&[("state", word)]), float(count as u64))
    });
    all.family(Kind::Gauge, "narrows_fleet_agents", "", "Agents by their state.", agents);
    let tests = status.tests.iter().flat_map(|it| {
        let ends = [("done", it.done), ("failed", it.failed), ("missed", it.missed)];
        ends.map(|(end, count)| {
            (labels(&[("mesh", it.mesh.as_str()), ("test", it.test.as_str()), ("end", end)]), float(count))
        })
    });
    let help = "Tests that ended, by how, since the controller began.";
    all.family(Kind::Counter, "narrows_fleet_tests", "", help, tests);
}

/// Those that people are told of: rules of Prometheus are not to alert of what is muted, or not confirmed.
fn incidents(all: &mut Exposition, status: &FleetStatus) {
    let told: Vec<&FleetIncident> = status.incidents.iter().filter(|it| it.reported).collect();
    let each = |value: fn(u64) -> f64| -> Vec<Sample> {
        let sample = |(number, element, since): (String, &str, u64)| {
            (labels(&[("number", number.as_str()), ("element", element)]), value(since))
        };
        let parts = told.iter().map(|it| (it.number.to_string(), it.element.as_str(), it.since_unix_ms));
        parts.map(sample).collect()
    };
    let open = float(told.len() as u64);
    all.one("narrows_fleet_incidents_open", "", "Incidents that were reported and are not over.", open);
    all.family(Kind::Gauge, "narrows_incident", "", "An incident that is not over: 1.", each(|_| 1.0));
    let help = "When an incident that is not over began, seconds since 1970.";
    all.family(Kind::Gauge, "narrows_incident_start_time_seconds", "seconds", help, each(seconds));
}

/// Of when the figures of hosts are.
fn measured(all: &mut Exposition, status: &FleetStatus) {
    let at = |of: fn(&FleetHost) -> Option<u64>| -> Vec<Sample> {
        let named = |it: &FleetHost| labels(&[("host", it.name.as_str()), ("group", it.group.as_str())]);
        status.hosts.iter().filter_map(|it| Some((named(it), seconds(of(it)?)))).collect()
    };
    let help = "When the last load of a host ended that carried something, seconds since 1970.";
    let (load, probe) = ("narrows_host_last_load_timestamp_seconds", "narrows_host_last_probe_timestamp_seconds");
    all.family(Kind::Gauge, load, "seconds", help, at(|it| it.loaded_unix_ms));
    let help = "When the last probe of a host ended that was answered, seconds since 1970.";
    all.family(Kind::Gauge, probe, "seconds", help, at(|it| it.probed_unix_ms));
}

/// What the last tests of a host found; of two figures, the first is of what it sent and the second of what it received.
#[derive(Default)]
struct OfHost {
    goodput_bps: [Vec<f64>; 2],
    rtt_us: Vec<f64>,
    sent: [u64; 2],
    lost: [u64; 2],
}

const WAYS: [&str; 2] = ["sent", "received"];

fn of_hosts(mesh: &MeshReport) -> Vec<OfHost> {
    let mut of: Vec<OfHost> = mesh.members.iter().map(|_| OfHost::default()).collect();
    for load in &mesh.loads {
        let MeshState::Measured { goodput_bps, .. } = load.state else { continue };
        for (way, host) in [load.from, load.to].into_iter().enumerate() {
            if let Some(it) = of.get_mut(host) {
                it.goodput_bps[way].push(goodput_bps);
            }
        }
    }
    for path in &mesh.paths {
        let [from, to] = [path.from, path.to];
        for host in [from, to] {
            if let (Some(it), Some([_, median, _])) = (of.get_mut(host), path.rtt_us) {
                it.rtt_us.push(median);
            }
        }
        let [sent, up, down] = path.packets.unwrap_or_default();
        // What was lost on the way there did not set out on the way back.
        for (hosts, sent, lost) in [([from, to], sent, up), ([to, from], sent.saturating_sub(up), down)] {
            for (way, host) in hosts.into_iter().enumerate() {
                if let Some(it) = of.get_mut(host) {
                    it.sent[way] = it.sent[way].saturating_add(sent);
                    it.lost[way] = it.lost[way].saturating_add(lost);
                }
            }
        }
    }
    of
}

fn hosts(all: &mut Exposition, mesh: &MeshReport) {
    let of = of_hosts(mesh);
    let members = || mesh.members.iter().zip(&of);
    let by_way = |figure: fn(&OfHost, usize) -> Option<f64>| -> Vec<Sample> {
        let each = |(host, it): (&MeshName, &OfHost)| {
            let sample = |(way, word): (usize, &str)| Some((named(host, &[("direction", word)]), figure(it, way)?));
            WAYS.into_iter().enumerate().filter_map(sample).collect::<Vec<Sample>>()
        };
        members().flat_map(each).collect()
    };
    let goodput = by_way(|it, way| median(&it.goodput_bps[way]).map(|bps| bps / 8.0));
    let help = "Median of the last loads of a host with the others.";
    all.family(Kind::Gauge, "narrows_host_goodput_bytes_per_second", "bytes_per_second", help, goodput);
    let rtt = members().filter_map(|(host, it)| Some((named(host, &[]), median(&it.rtt_us)? / 1e6)));
    let help = "Median of the last probes between a host and the others.";
    all.family(Kind::Gauge, "narrows_host_round_trip_seconds", "seconds", help, rtt);
    let loss = by_way(|it, way| (it.sent[way] > 0).then(|| float(it.lost[way]) / float(it.sent[way])));
    let help = "Part of the packets of the last probes that was lost, of all paths of a host.";
    all.family(Kind::Gauge, "narrows_host_probe_loss_ratio", "ratio", help, loss);
}

fn named(host: &MeshName, more: &[(&'static str, &str)]) -> Labels {
    let mut all = vec![("host", host.name.as_str()), ("group", host.group.as_str())];
    all.extend_from_slice(more);
    labels(&all)
}

fn slow(all: &mut Exposition, mesh: &MeshReport) {
    let name = |at: usize| mesh.members.get(at).map(|it| it.name.as_str());
    let loads = mesh.loads.iter().zip(&mesh.expected_bps).zip(&mesh.slow).filter(|(_, is_slow)| **is_slow);
    let mut pairs: Vec<(Labels, f64, f64)> = loads
        .filter_map(|((load, expected), _)| {
            let MeshState::Measured { goodput_bps, .. } = load.state else { return None };
            let pair = labels(&[("from", name(load.from)?), ("to", name(load.to)?)]);
            Some((pair, goodput_bps / 8.0, (*expected)? / 8.0))
        })
        .collect();
    pairs.sort_by(|(_, a, of_a), (_, b, of_b)| (a / of_a).total_cmp(&(b / of_b)));
    let help = "Pairs whose last load carried less than it should.";
    all.one("narrows_fleet_slow_pairs", "", help, float(pairs.len() as u64));
    pairs.truncate(PAIRS_MAX);
    let goodput = pairs.iter().map(|(pair, goodput, _)| (pair.clone(), *goodput));
    let help = "What the last load of a slow pair carried.";
    all.family(Kind::Gauge, "narrows_pair_goodput_bytes_per_second", "bytes_per_second", help, goodput);
    let expected = pairs.iter().map(|(pair, _, expected)| (pair.clone(), *expected));
    let help = "What the last load of a slow pair should have carried.";
    all.family(Kind::Gauge, "narrows_pair_goodput_expected_bytes_per_second", "bytes_per_second", help, expected);
}

fn median(figures: &[f64]) -> Option<f64> {
    let mut sorted: Vec<f64> = figures.iter().copied().filter(|it| it.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    Some(f64::midpoint(sorted[last / 2], sorted[last.div_ceil(2)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::tests::read;
    use narrows_model::run::fleet::{FleetTests, STATUS_SCHEMA};
    use narrows_model::run::mesh::{MeshLoad, MeshPath, MeshPlan, SCHEMA};
    use std::collections::BTreeSet;

    const ODD: &str = "b\\\"\n} 7 # {";

    fn mesh() -> MeshReport {
        let member = |name: &str| MeshName {
            name: name.to_owned(),
            group: "rack".to_owned(),
            address: String::new(),
            absent: None,
        };
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
        ] {
            assert_eq!(found.get(series), Some(&value), "{series} in {found:#?}");
        }
        let of = |name: &str| found.keys().filter(|it| it.starts_with(name)).count();
        assert_eq!((of("narrows_fleet_tests_total"), of("narrows_pair_"), of("narrows_incident{")), (3, 2, 2));
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
        let found = read(&metrics(&many));
        assert_eq!(found["narrows_fleet_slow_pairs"], 2_000.0);
        assert!(found.contains_key("narrows_pair_goodput_bytes_per_second{from=\"h0\",to=\"h1\"}"));
        assert_eq!(found.keys().filter(|it| it.starts_with("narrows_pair_")).count(), 2 * PAIRS_MAX);
    }

    #[test]
    fn dashboard_and_rules_ask_for_what_there_is() {
        let text = metrics(&status());
        let names: BTreeSet<&str> = text.lines().filter_map(|line| line.split(['{', ' ']).next()).collect();
        for file in [
            include_str!("../../../packaging/grafana-fleet.json"),
            include_str!("../../../packaging/prometheus-fleet.rules.yml"),
        ] {
            let asked = file.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let asked: Vec<&str> = asked.filter(|word| word.starts_with("narrows_")).collect();
            assert!(!asked.is_empty());
            for word in asked {
                assert!(names.contains(word), "{word}");
            }
        }
    }
}
