//! A fleet as metrics (OpenMetrics 1.0): how its controller is, the figures of each host, and of pairs only those that are bad: a scraper
//! that got all pairs of a thousand hosts would be busy with nothing else.

use crate::metrics::{Exposition, Kind, Labels, Sample, flag, labels, seconds};
use narrows_model::run::fleet::{AgentState, FleetBad, FleetHost, FleetIncident, FleetStatus};
use narrows_model::run::mesh::{MeshName, MeshReport, MeshState};
use narrows_model::words::figures::float;
use std::collections::BTreeSet;

/// Pairs that are named one by one for each figure; where a whole site is bad, the worst.
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
    let slow = slow(&mut all, &status.mesh);
    bad(&mut all, status, &slow);
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

fn pair(mesh: &MeshReport, [from, to]: [usize; 2]) -> Option<Labels> {
    let name = |at: usize| mesh.members.get(at).map(|it| it.name.as_str());
    Some(labels(&[("from", name(from)?), ("to", name(to)?)]))
}

/// Those that are named.
fn slow(all: &mut Exposition, mesh: &MeshReport) -> BTreeSet<Labels> {
    let loads = mesh.loads.iter().zip(&mesh.expected_bps).zip(&mesh.slow).filter(|(_, is_slow)| **is_slow);
    let mut pairs: Vec<(Labels, f64, f64)> = loads
        .filter_map(|((load, expected), _)| {
            let MeshState::Measured { goodput_bps, .. } = load.state else { return None };
            Some((pair(mesh, [load.from, load.to])?, goodput_bps / 8.0, (*expected)? / 8.0))
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
    pairs.into_iter().map(|(pair, ..)| pair).collect()
}

/// Pairs that lose packets or are late, and when each bad pair that is named was tested.
fn bad(all: &mut Exposition, status: &FleetStatus, slow: &BTreeSet<Labels>) {
    let pairs: Vec<(Labels, &FleetBad)> =
        status.bad.iter().filter_map(|it| Some((pair(&status.mesh, [it.from, it.to])?, it))).collect();
    let worst = |of: fn(&FleetBad) -> Option<f64>| -> Vec<Sample> {
        let mut known: Vec<Sample> = pairs.iter().filter_map(|(pair, it)| Some((pair.clone(), of(it)?))).collect();
        known.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        known.truncate(PAIRS_MAX);
        known
    };
    let (lossy, late) = (worst(|it| it.loss), worst(|it| it.late_us.map(|us| us / 1e6)));
    let probed: BTreeSet<&Labels> = lossy.iter().chain(&late).map(|(pair, _)| pair).collect();
    let dated = pairs.iter().flat_map(|(pair, it)| {
        let loaded = ("load", it.loaded_unix_ms.filter(|_| slow.contains(pair)));
        let dates = [loaded, ("probe", it.probed_unix_ms.filter(|_| probed.contains(pair)))];
        dates.into_iter().filter_map(move |(kind, at)| {
            let mut pair = pair.clone();
            pair.push(("kind", kind.to_owned()));
            Some((pair, seconds(at?)))
        })
    });
    let dated: Vec<Sample> = dated.collect();
    let help = "Part of the packets of its last probe that a pair lost, where that is bad.";
    all.family(Kind::Gauge, "narrows_pair_probe_loss_ratio", "ratio", help, lossy);
    let help = "Median of the last probe of a pair that takes longer than before.";
    all.family(Kind::Gauge, "narrows_pair_round_trip_seconds", "seconds", help, late);
    let help =
        "When the last load of a slow pair, or the last probe of a lossy or late one, ended, seconds since 1970.";
    all.family(Kind::Gauge, "narrows_pair_last_test_timestamp_seconds", "seconds", help, dated);
}

fn median(figures: &[f64]) -> Option<f64> {
    let mut sorted: Vec<f64> = figures.iter().copied().filter(|it| it.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    Some(f64::midpoint(sorted[last / 2], sorted[last.div_ceil(2)]))
}

#[cfg(test)]
mod tests;
