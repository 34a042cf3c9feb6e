//! What a fleet costs: tests, bytes and time of a day, before anything runs.

use crate::plan::{Fleet, Kind, MINUTES, Mesh, Test};
use crate::schedule::{BESIDE_MS, HOUR_MS, Schedule};
use narrows_model::run::fleet::{FleetCheck, FleetCost, SCHEMA};
use narrows_model::words::units::{amount, micros};
use std::collections::HashMap;

/// Probes of a path keep to this rate with their answers, bit/s.
pub const PROBE_BPS: u64 = 20_000;

/// The time between two probes of a path.
pub const PROBE_INTERVAL_US: u64 = narrows_mesh::PROBE_BITS * 1_000_000 / PROBE_BPS;

/// The packets of a probe that lasts so long.
pub const fn probe_packets(lasts_ms: u64) -> u64 {
    let count = lasts_ms * 1_000 / PROBE_INTERVAL_US;
    if count > 3 { count } else { 3 }
}

/// What is stored of a test: its figures and its share of the indexes.
pub const STORED_BYTES: u64 = 350;

/// The part of the day that is not quiet.
fn awake(test: &Test) -> f64 {
    1.0 - (0..MINUTES).filter(|minute| test.is_quiet(*minute)).count() as f64 / f64::from(MINUTES)
}

/// What each test of a fleet costs, in the order of the file; with all hosts that may join.
pub fn check(fleet: &Fleet) -> FleetCheck {
    let fleet = &fleet.with_all_joined();
    let schedule = Schedule::new(fleet);
    let of_mesh = |(at, mesh): (usize, &Mesh)| {
        let pairs = fleet.pairs(mesh);
        let rounds = |nth| [schedule.rounds(at, nth).len(), schedule.never(at, nth)].map(|it| it as u64);
        let cost = |(nth, test)| cost(mesh, test, &pairs, rounds(nth));
        mesh.tests.iter().enumerate().map(cost).collect::<Vec<_>>()
    };
    FleetCheck {
        schema: SCHEMA.to_owned(),
        name: fleet.name.clone(),
        hosts: fleet.hosts.len() as u64,
        keep_ms: fleet.keep_ms,
        tests: fleet.meshes.iter().enumerate().flat_map(of_mesh).collect(),
    }
}

fn cost(mesh: &Mesh, test: &Test, pairs: &[[usize; 2]], [rounds, never]: [u64; 2]) -> FleetCost {
    let is_load = test.kind == Kind::Load;
    let slots = awake(test) * 24.0 * HOUR_MS as f64 / test.every_ms as f64;
    let tests_a_day = (slots * (pairs.len() * if is_load { 2 } else { 1 }) as f64).round() as u64;
    let rate_bps = if is_load { test.expect_bps } else { PROBE_BPS };
    let bytes_a_day = tests_a_day.saturating_mul(rate_bps.saturating_mul(test.lasts_ms) / 8_000);
    let slot_ms = rounds * (test.lasts_ms + if is_load { BESIDE_MS } else { 0 });
    let mut of_host: HashMap<usize, u64> = HashMap::new();
    pairs.iter().flatten().filter(|_| is_load).for_each(|host| *of_host.entry(*host).or_default() += 2 * test.lasts_ms);
    let mut wrong = Vec::new();
    if slot_ms > test.every_ms {
        let [takes, every] = [slot_ms, test.every_ms].map(|ms| micros(ms * 1_000));
        wrong.push(format!("all pairs take {takes}, and it repeats every {every}: less often, or the design regular"));
    }
    if never > 0 {
        wrong.push(format!(
            "{never} of its {rounds} rounds are always in its quiet hours: those pairs are never tested"
        ));
    }
    if let Some(most) = test.bytes_a_day.filter(|most| bytes_a_day > *most) {
        wrong.push(format!("{} a day are more than its bytes-a-day of {}", amount(bytes_a_day), amount(most)));
    }
    FleetCost {
        mesh: mesh.name.clone(),
        kind: test.kind.word().to_owned(),
        every_ms: test.every_ms,
        lasts_ms: test.lasts_ms,
        pairs: pairs.len() as u64,
        rounds,
        slot_ms,
        busiest: of_host.into_values().max().unwrap_or(0) as f64 / test.every_ms as f64,
        tests_a_day,
        bytes_a_day,
        stored_bytes_a_day: tests_a_day * STORED_BYTES,
        wrong,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_time_are_known_before_anything_runs() {
        let hosts: String = (0..40).map(|nth| format!("hosts.h{nth} = {{}}\n")).collect();
        let text = format!(
            "name = 's'\n{hosts}[[mesh]]\nname = 'all'\n[[mesh.test]]\nkind = 'load'\nevery = '1h'\nlasts = '3s'\nexpect = '1G'\n\
             quiet = ['08:00-20:00']\nbytes-a-day = '1G'\n[[mesh.test]]\nkind = 'load'\nevery = '5m'\n[[mesh.test]]\nkind = 'probe'\nevery = '1m'\n"
        );
        let checked = check(&Fleet::read(&text).expect("a fleet"));
        let [hourly, often, probe] = &checked.tests[..] else { panic!("three tests") };
        // 39 colours, each in both directions; 12 of 24 hours; 375 MB each.
        assert_eq!((hourly.pairs, hourly.rounds, hourly.slot_ms), (780, 78, 78 * 6_000));
        assert_eq!((hourly.tests_a_day, hourly.bytes_a_day), (12 * 1_560, 12 * 1_560 * 375_000_000));
        assert_eq!(hourly.busiest, 78.0 * 3.0 / 3_600.0);
        assert!(
            hourly.wrong.len() == 1 && hourly.wrong[0].contains("more than its bytes-a-day of 1.00 GiB"),
            "{hourly:?}"
        );
        assert!(often.wrong[0].contains("all pairs take") && !checked.is_possible(), "{often:?}");
        assert_eq!((probe.tests_a_day, probe.bytes_a_day), (780 * 1_440, 780 * 1_440 * 7_500));
        assert!(probe.wrong.is_empty() && probe.busiest == 0.0);
    }

    #[test]
    fn hosts_that_may_join_are_counted_as_if_all_had() {
        let text = "name = 's'\n[[join]]\ngroup = 'pods'\nmost = 10\n[[mesh]]\nname = 'all'\nhosts = ['@pods']\n\
            [[mesh.test]]\nkind = 'probe'\nevery = '1m'\n";
        let checked = check(&Fleet::read(text).expect("a fleet"));
        assert_eq!((checked.hosts, checked.tests[0].pairs), (10, 45));
    }
}
