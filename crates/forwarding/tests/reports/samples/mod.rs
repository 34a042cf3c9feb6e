//! A hand-made forwarding benchmark: a router at 1 Gbit/s behind a switch, IPv4 and IPv6.

#![allow(dead_code, clippy::panic)] // each test binary uses its own part

#[path = "../../../../render/tests/reports/samples/frames.rs"]
mod frames;

use narrows_forwarding::data::ab::*;
use narrows_forwarding::data::ab_report::AbDerived;
use narrows_forwarding::data::plan::Row;
use narrows_forwarding::data::procedures::Results;
use narrows_forwarding::data::procedures::back_to_back::BurstsOfSize;
use narrows_forwarding::data::procedures::latency::LatencyOfSize;
use narrows_forwarding::data::procedures::throughput::EstimateView;
use narrows_forwarding::data::report::*;
use narrows_forwarding::data::*;
use narrows_forwarding::views::{AccountOfTrial, Derived, conclude};
use narrows_model::Family;
use narrows_model::host::hop::DropCount;
use narrows_model::host::snmp::*;
use narrows_model::load::frame_traffic::Traffic;
use narrows_model::load::frames::{FrameTrial, Transport, Walk};
use narrows_model::run::search::*;
use narrows_model::run::sweep::Spread;
use std::collections::BTreeMap;
use std::net::IpAddr;

pub(crate) const LINK: u64 = 1_000_000_000;
const SIZES: [u32; 7] = [64, 128, 256, 512, 1024, 1280, 1518];
/// What the router forwards at most, frames a second.
const MOST: [f64; 2] = [565_000.0, 498_000.0];

fn line(bytes: f64) -> f64 {
    LINK as f64 / (8.0 * (bytes + 20.0))
}

fn sizes(traffic: usize) -> Vec<u32> {
    let mut sizes = SIZES.to_vec();
    if traffic == 1 {
        sizes[0] = 82;
    }
    sizes
}

fn mix() -> Vec<u32> {
    [vec![64; 7], vec![570; 4], vec![1518]].concat()
}

fn plan() -> ForwardingPlan {
    let port = |device: &str, net: u8| TesterPort {
        device: device.into(),
        address: IpAddr::from([198, net, 0, 2]),
        gateway: IpAddr::from([198, net, 0, 1]),
        second: None,
        host: None,
        token_file: None,
    };
    let traffic = |at: usize, family| Traffic {
        family,
        transport: Transport::Udp,
        flows: 2000,
        networks: 1,
        walk: Walk::Random { seed: 7 },
        sizes: sizes(at),
        mix: if at == 0 { mix() } else { vec![] },
        bidirectional: false,
        modifier: None,
    };
    let access = SnmpAccess::V2c { community: Secret::new("s3cret-community") };
    let snmp = CounterSource::Snmp(SnmpAgent { agent: "192.0.2.9:161".into(), access });
    let hop = |name: &str, source, under_test| HopPlan {
        name: name.into(),
        source,
        input: format!("{name}-in"),
        output: format!("{name}-out"),
        under_test,
    };
    ForwardingPlan {
        name: "router with 100 nftables rules".into(),
        generator: port("t0", 18),
        receiver: port("t1", 19),
        link_bps: LINK,
        max_load_pps: None,
        traffic: vec![traffic(0, Family::Ipv4), traffic(1, Family::Ipv6)],
        hops: vec![hop("sw", snmp, false), hop("r", CounterSource::Namespace { name: "r".into() }, true)],
        tests: Tests {
            throughput: Some(ThroughputTest {
                goals: vec![Goal::rfc2544(), Goal::pdr()],
                confirm: 5,
                max_search_ms: 600_000,
            }),
            latency: Some(LatencyTest { duration_ms: 10_000, repetitions: 20 }),
            loss: Some(LossTest { step: 0.1, duration_ms: 2_000 }),
            back_to_back: Some(BackToBackTest { most_frames: 2_976_190, repetitions: 50 }),
            recovery: Some(RecoveryTest { overload_ms: 60_000, after_ms: 10_000, repetitions: 3 }),
            reset: None,
            frmol: Some(FrmolTest { duration_ms: 10_000, repetitions: 3 }),
        },
        conditions: TrialConditions { learning_frames: 10, residue_ms: 2_000, rest_ms: 5_000 },
        tables: None,
        lost_dut_wait_ms: 0,
    }
}

/// Every size of every traffic with its mean size, the line's rate and what the router forwards.
fn each() -> Vec<(usize, Option<u32>, f64, f64)> {
    let mut all = Vec::new();
    for (traffic, most) in MOST.iter().enumerate() {
        for size in sizes(traffic) {
            all.push((traffic, Some(size), f64::from(size), most.min(line(f64::from(size)))));
        }
    }
    all.insert(7, (0, None, mean(), (MOST[0] * 0.97).min(line(mean()))));
    all
}

fn search(bytes: f64, most: f64) -> SearchRecord {
    let line = line(bytes);
    let plan = SearchPlan {
        goals: vec![Goal::rfc2544(), Goal::pdr()],
        tester_max_pps: Some(1.45e6),
        ..SearchPlan::between(1_000.0, line)
    };
    let passes = most >= line * 0.9999;
    let result = |goal: &Goal| {
        let lower = if goal.loss_ratio > 0.0 { (most * 1.004).min(line) } else { most };
        let outcome = if passes || lower >= line { Outcome::MaxLoadPasses } else { Outcome::Found };
        GoalResult {
            goal: goal.name.clone(),
            outcome,
            lower_pps: Some(lower),
            upper_pps: (outcome == Outcome::Found).then_some(lower * 1.0049),
            conditional_throughput_pps: Some(lower * 0.9999),
        }
    };
    let results = plan.goals.iter().map(result).collect();
    let trials = (1..=if passes { 2 } else { 17 })
        .map(|n| LoadTrial {
            load_pps: most,
            duration_ms: 1_000,
            ended_at_ms: n * 3_000,
            seen: Observation {
                intended: 10,
                offered: 10,
                sent: 10,
                received: 10,
                effective_ms: 1_000,
                invalid: (n == 3).then(|| "the rate was not kept".to_owned()),
                ..Observation::default()
            },
        })
        .collect();
    SearchRecord { plan, trials, results, spent: Vec::new() }
}

fn books(all: u64, drops: &[(&str, u64)], before_receiver: u64) -> Accounting {
    let gone: u64 = drops.iter().map(|it| it.1).sum();
    let line = |hop: &str, input, output, drops: Vec<DropCount>, lost_before: Option<i64>, uncertainty| AccountLine {
        hop: hop.into(),
        input,
        output,
        drops,
        lost_before,
        not_forwarded: 0,
        unexplained: (hop != "generator" && hop != "receiver").then_some(0),
        uncertainty,
        trouble: None,
    };
    let drops: Vec<DropCount> = drops.iter().map(|it| DropCount { reason: it.0.into(), frames: it.1 }).collect();
    let found = drops.iter().map(|it| format!("r dropped {} ({})", it.frames, it.reason)).collect();
    Accounting {
        lines: vec![
            line("generator", None, Some(all), vec![], None, 0),
            line("sw", Some(all), Some(all), vec![], Some(0), 4),
            line("r", Some(all), Some(all - gone), drops, Some(0), 2),
            line("receiver", Some(all - gone - before_receiver), None, vec![], Some(before_receiver as i64), 0),
        ],
        lost: (gone + before_receiver) as i64,
        broadcast: None,
        found,
        disagreement: None,
    }
}

/// The switch divides by 1024.
fn cooked(all: u64) -> Accounting {
    let mut books = books(all, &[("nftables rule", all / 1000)], 0);
    let sw = &mut books.lines[1];
    sw.input = Some(all / 1024);
    sw.output = Some(all / 1024);
    sw.lost_before = Some((all - all / 1024) as i64);
    sw.trouble = Some("its counters are 1024 times too small".into());
    books.lines[2].lost_before = Some((all / 1024) as i64 - all as i64);
    books.disagreement = Some(format!("sw counted {} in, but the generator sent {all}: a 1024th", all / 1024));
    books
}

/// What is made: a record, and what is derived of it by hand in place of what the rules derive.
struct Made {
    record: ForwardingRecord,
    accounts: Vec<AccountOfTrial>,
    by_hand: BTreeMap<Row, Results>,
}

impl Made {
    fn trial(&mut self, test: Test, at: (usize, Option<u32>), repetition: u32, trial: FrameTrial, books: Accounting) {
        let index = self.record.trials.len();
        self.record.trials.push(ForwardingTrial {
            test,
            traffic: at.0,
            size: at.1,
            repetition,
            at_ms: index as u64 * 20_000,
            directions: vec![trial],
            hops: vec![],
            modifier: None,
            devices: vec![],
            incomplete: None,
        });
        self.accounts.push(AccountOfTrial { trial: index, direction: 0, account: books });
    }
}

/// The record with what follows from it, some of it by hand.
pub(crate) fn sample() -> Derived {
    let record = ForwardingRecord::of(plan());
    let mut made = Made { record, accounts: Vec::new(), by_hand: BTreeMap::new() };
    for (at, (traffic, size, bytes, most)) in each().into_iter().enumerate() {
        one(&mut made, at, (traffic, size), bytes, most);
    }
    let all = 1_488_095 * 10;
    let trial = frames::trial(1_488_095, 64, 10, all / 1000);
    made.trial(Test::Frmol, (0, Some(64)), 3, trial, cooked(all));
    let invalid = disagreements(&made.record, &made.accounts);
    let mut derived = conclude(made.record, made.accounts, invalid);
    for (row, by_hand) in made.by_hand {
        let results = derived.results.entry(row).or_default();
        results.latency = by_hand.latency;
        results.loss = by_hand.loss;
        results.back_to_back = by_hand.back_to_back;
        results.throughput.estimate = row.size.is_none().then(|| EstimateView {
            rate: narrows_model::load::frames_report::FrameRate::new(334_400.0, mean(), Some(LINK)),
            method: "from the throughput of 64 B, as if a frame's size did not matter".into(),
        });
    }
    derived.run = Some(ForwardingRun {
        id: "20070919-201444-0000002a".into(),
        made_by: "narrows 0.1.0".into(),
        started_unix_us: 1_190_232_884_000_000,
        elapsed_s: 3_480.0,
    });
    derived.not_measured = vec![NotMeasured {
        what: "back-to-back, sizes from 256 B on".into(),
        why: "their throughput is the line rate, so that no burst fills a buffer (RFC 9004, section 5)".into(),
    }];
    derived
}

/// Results anew, by a record and accounts that were changed; results by hand stay.
pub(crate) fn again(derived: Derived) -> Derived {
    let invalid = disagreements(&derived.record, &derived.accounts);
    let mut new = conclude(derived.record, derived.accounts, invalid);
    for (row, results) in &mut new.results {
        let before = derived.results.get(row).cloned().unwrap_or_default();
        (results.latency, results.loss, results.back_to_back) = (before.latency, before.loss, before.back_to_back);
        results.throughput.estimate = before.throughput.estimate;
    }
    Derived { run: derived.run, not_measured: derived.not_measured, remarks: derived.remarks, ..new }
}

/// Why trials are invalid, by their accounts.
fn disagreements(record: &ForwardingRecord, accounts: &[AccountOfTrial]) -> Vec<Option<String>> {
    let of = |trial: usize| {
        let device = record.trials[trial].devices.iter().find_map(|device| device.links.first());
        let device = device.map(|what| format!("a link of the device changed in mid-trial: r: {what}"));
        let own = accounts.iter().filter(|it| it.trial == trial);
        device.or_else(|| own.filter_map(|it| it.account.disagreement.clone()).next())
    };
    (0..record.trials.len()).map(of).collect()
}

fn mean() -> f64 {
    mix().iter().map(|size| f64::from(*size)).sum::<f64>() / 12.0
}

fn one(made: &mut Made, at: usize, key: (usize, Option<u32>), bytes: f64, most: f64) {
    let (traffic, size) = key;
    let wire = size.unwrap_or(64);
    made.record.tester.push(TesterMaximum {
        traffic,
        size,
        pps: line(bytes).min(1.45e6),
        method: "over a veth pair, live-frames to xdp-native".into(),
    });
    made.record.searches.push(SearchOfSize { traffic, size, record: search(bytes, most), not_confirmed_pps: None });
    for repetition in 0..5 {
        // The smallest IPv6 frames are not always forwarded.
        let lost = if key == (1, Some(82)) && repetition == 2 { 14 } else { 0 };
        let pps = most as u64 - u64::from(repetition % 3) * 3;
        let drops: &[(&str, u64)] = if lost > 0 { &[("rx_missed r-in", 14)] } else { &[] };
        made.trial(Test::Confirmation, key, repetition, frames::trial(pps, wire, 10, lost), books(pps * 10, drops, 0));
    }
    let latency = |p50: u64| LatencyOfSize {
        traffic,
        size,
        load_pps: most,
        repetitions: 20,
        stamps: 118_000,
        min_ns: p50 * 7 / 10,
        mean_ns: p50 as f64 * 1.11,
        p50_ns: p50,
        p99_ns: p50 * 19 / 10,
        p99_9_ns: p50 * (4 + at as u64 % 3),
        max_ns: p50 * 31,
        pdv_ns: p50 * (4 + at as u64 % 3) - p50 * 7 / 10,
        means_ns: Some(Spread { n: 20, median: p50 as f64, min: p50 as f64 * 0.99, max: p50 as f64 * 1.02 }),
    };
    let results = made.by_hand.entry(Row { traffic, size }).or_default();
    results.latency.figures = Some(latency(8_400 + bytes as u64 * 9 + traffic as u64 * 1_700));
    let full = line(bytes);
    let points = (0..10)
        .map(|n| {
            let load = full * (1.0 - 0.1 * f64::from(n));
            let unsent_ratio = if at == 0 && n == 0 { 0.021 } else { 0.0 };
            let lost = (1.0 - most * 0.96f64.powi(9 - n) / (load * 0.96f64.powi(9 - n))).max(0.0);
            LossPoint {
                load_pps: load,
                load_percent: 100.0 * load / full,
                loss_ratio: lost.max(unsent_ratio),
                unsent_ratio,
            }
        })
        .collect::<Vec<_>>();
    let first = points.windows(2).position(|two| two.iter().all(|it| it.loss_ratio == 0.0)).map_or(10, |at| at + 2);
    results.loss.curve = points[..first].to_vec();
    if most < full {
        let frames = 512.0 / (1.0 - most / full);
        let implied_ns = frames / full * 1e9;
        results.back_to_back.bursts = Some(BurstsOfSize {
            traffic,
            size,
            mean_frames: frames,
            frames: Spread {
                n: 50,
                median: frames.round(),
                min: (frames * 0.94).round(),
                max: (frames * 1.05).round(),
            },
            offered_pps: full,
            implied_ns,
            corrected_ns: Some(implied_ns * (1.0 - most / full)),
            at_least: false,
        });
    }
    if size == Some(64) {
        for n in 0..3 {
            made.record.outages.push(OutageOfSize {
                test: Test::Recovery,
                traffic,
                size,
                outage_ns: Some(1_200_000 + n * 90_000),
                between_ns: None,
                since_ns: None,
                remarks: Vec::new(),
            });
            let trial = frames::trial(1_488_095, wire, 10, 9_200_000 + n * 11_000);
            let lost = 9_200_000 + n * 11_000;
            let drops: &[(&str, u64)] = &[
                ("rx_missed r-in", lost - 40_000 - n * 300),
                ("qdisc r-out", 30_000),
                ("nftables rule", 10_000 + n * 300),
            ];
            made.trial(Test::Frmol, key, u32::try_from(n).expect("small"), trial, books(14_880_950, drops, 0));
        }
    }
}

/// Two configurations of the router, three runs with each, the last of which was interrupted.
pub(crate) fn pair() -> (AbRecord, AbDerived) {
    let whole = sample().record;
    let mut plan = whole.plan.clone();
    plan.traffic.truncate(1);
    plan.traffic[0].sizes = vec![64, 512];
    plan.traffic[0].mix.clear();
    let run = |side, at_ms, ended: Option<&str>| {
        let mut record = whole.clone();
        record.ended = ended.map(str::to_owned);
        AbRunRecord { side, at_ms, record }
    };
    let fault = SwitchStep::Fault { id: "forward-rules".into(), value: "10000".into() };
    let secret = SwitchStep::Command { words: vec!["ssh".into(), "root@router".into(), "a-secret".into()] };
    let measured = vec![
        run(Side::A, 0, None),
        run(Side::B, 30_500, None),
        run(Side::B, 61_000, None),
        run(Side::A, 91_500, None),
        run(Side::A, 122_000, None),
        run(Side::B, 152_500, Some("interrupted")),
    ];
    let found = |side, at_ms, small: f64, large: f64| AbRun {
        side,
        at_ms,
        throughputs: vec![
            ThroughputOfSize { traffic: 0, size: Some(64), pps: small, at_least: false },
            ThroughputOfSize { traffic: 0, size: Some(512), pps: large, at_least: side == Side::A },
        ],
    };
    let runs = vec![
        found(Side::A, 0, 1_001_000.0, 234_000.0),
        found(Side::B, 30_500, 250_100.0, 230_100.0),
        found(Side::B, 61_000, 249_800.0, 229_900.0),
        found(Side::A, 91_500, 999_000.0, 234_000.0),
        found(Side::A, 122_000, 1_000_500.0, 234_000.0),
        AbRun { side: Side::B, at_ms: 152_500, throughputs: Vec::new() },
    ];
    let rows = compared_by_hand(&runs);
    let configuration = |name: &str, steps| DeviceConfiguration { name: name.into(), steps, undo: Vec::new() };
    let ab = ForwardingAb {
        plan,
        a: configuration("forwarding alone", Vec::new()),
        b: configuration("10,000 rules", vec![fault, secret]),
        runs: 3,
        settle_ms: 500,
    };
    let record = AbRecord { ab, measured, ended: Some("interrupted".into()), remarks: Vec::new() };
    (record, AbDerived { runs, rows })
}

/// The comparison as others derive it, by hand: means 1,000,167 and 249,950; 234,000 and 230,000.
fn compared_by_hand(runs: &[AbRun]) -> Vec<AbRow> {
    let of = |side: Side, at: usize| -> Vec<f64> {
        runs.iter().filter(|run| run.side == side).filter_map(|run| Some(run.throughputs.get(at)?.pps)).collect()
    };
    let difference = |pps: f64, half_pps: f64, mean: f64, df: f64| Difference {
        pps,
        half_pps,
        ratio: pps / mean,
        half_ratio: half_pps / mean,
        df,
    };
    let row = |at: usize, size, pooled, s, welch, says: &str, remarks: Vec<String>| AbRow {
        traffic: 0,
        size: Some(size),
        a_pps: of(Side::A, at),
        b_pps: of(Side::B, at),
        pooled: Some(pooled),
        pooled_s: Some(s),
        welch: Some(welch),
        says: says.into(),
        remarks,
    };
    let bound = "3 of 3 throughputs of A are limited by the tester or the line".to_owned();
    vec![
        row(
            0,
            64,
            difference(-750_217.0, 2_520.0, 1_000_167.0, 3.0),
            867.0,
            difference(-750_217.0, 2_480.0, 1_000_167.0, 2.2),
            "B is 75.01 % ± 0.25 % slower than A",
            Vec::new(),
        ),
        row(
            1,
            512,
            difference(-4_000.0, 237.0, 234_000.0, 3.0),
            82.0,
            difference(-4_000.0, 1_271.0, 234_000.0, 1.0),
            "B is slower than A, by 1.17 % at least",
            vec![bound],
        ),
    ]
}
