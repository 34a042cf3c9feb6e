//! Diagnoses of drawn paths, with what was injected: `fixtures/runs/drawn.jsonl.zst`, one JSON object a line. A change of a rule shows
//! which verdicts it changes, and no fact that is missing may make one of them wrong.
//!
//! The paths were those of two emulators, the lab's and one that shares nothing with it; they are of seeds that the rules were made on.

use narrows_diagnose::diagnose;
use narrows_model::run::TrialRecord;
use narrows_model::{
    Absent, Direction, LoadPlan, LoadRecord, Place, ProfileEndRecord, ProfilePlan, ProfileProbe, Run, Snapshot, Status,
    StepRecord, Trial, Verdict, words::units,
};
use narrows_wire::iperf3::{Params, far, own};
use serde::Deserialize;
use serde_json::Value;
use std::fmt::Write as _;

#[derive(Deserialize)]
pub(crate) struct Case {
    pub(crate) name: String,
    /// The causes that are right as a first one; none of a path that nothing binds.
    truth: Vec<(String, Place)>,
    pub(crate) run: Value,
}

fn cases() -> Vec<Case> {
    read("drawn.jsonl.zst")
}

/// The cases of a file beside the stored runs.
pub(crate) fn read(file: &str) -> Vec<Case> {
    let packed = narrows_sys::files::read(&crate::folder().join(file), 64 << 20).expect("packed runs");
    let text = zstd::decode_all(&*packed).expect("compressed lines");
    serde_json::Deserializer::from_slice(&text).into_iter().map(|case| case.expect("a case")).collect()
}

fn verdict(run: Value) -> Verdict {
    let run: Run = serde_json::from_value(run).expect("a run");
    diagnose(&run, 0).expect("a baseline").verdict
}

/// How a verdict does: `None` where it abstains.
fn is_right(truth: &[(String, Place)], verdict: &Verdict) -> Option<bool> {
    let first = verdict.causes.first();
    match verdict.status {
        Status::Unknown => None,
        Status::Healthy => Some(truth.is_empty()),
        Status::Limited | Status::Suspected => {
            Some(truth.iter().any(|(id, at)| first.is_some_and(|first| first.id == *id && first.at == *at)))
        }
    }
}

fn words(truth: &[(String, Place)]) -> String {
    let causes: Vec<String> = truth.iter().map(|(id, at)| format!("{id} at {at}")).collect();
    if causes.is_empty() { "nothing binds".to_owned() } else { causes.join(" or ") }
}

#[test]
fn the_verdicts_stay_as_they_are() {
    let mut text = String::new();
    for Case { name, truth, run } in cases() {
        let verdict = verdict(run);
        let grade = is_right(&truth, &verdict).map_or("open", |right| if right { "right" } else { "WRONG" });
        let _ = write!(
            text,
            "{grade:<6}{name:<18}{}: {:?} {}",
            words(&truth),
            verdict.status,
            units::bps(verdict.goodput_bps)
        );
        for cause in &verdict.causes {
            let _ = write!(text, " [{} at {}]", cause.id, cause.at);
        }
        let predicted = verdict.causes.first().and_then(|cause| cause.prediction.as_ref());
        let _ = writeln!(text, "{}", predicted.map_or_else(String::new, |to| format!(" -> {}", units::bps(to.bps))));
    }
    insta::assert_snapshot!("drawn", text);
}

/// Calls `change` on each object of a document.
fn each_object(value: &mut Value, change: &mut dyn FnMut(&mut serde_json::Map<String, Value>)) {
    match value {
        Value::Object(object) => {
            change(object);
            object.values_mut().for_each(|value| each_object(value, change));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| each_object(value, change)),
        _ => {}
    }
}

/// Facts whose keys begin so are not known.
fn without_facts(run: &mut Value, prefixes: &[&str]) {
    each_object(run, &mut |object| {
        if let Some(Value::Array(facts)) = object.get_mut("facts") {
            facts.retain(|fact| {
                !prefixes.iter().any(|prefix| fact["key"].as_str().is_some_and(|key| key.starts_with(prefix)))
            });
        }
    });
}

/// Fields of samples are not known.
fn without_fields(run: &mut Value, fields: &[&str]) {
    each_object(run, &mut |object| {
        for field in fields {
            if let Some(value) = object.get_mut(*field) {
                *value = Value::Null;
            }
        }
    });
}

/// Trials of these kinds were not made, but for the baseline.
fn without_trials(run: &mut Value, kinds: &[&str]) {
    let Some(Value::Array(trials)) = run.get_mut("trials") else { return };
    trials.retain(|record| {
        record["purpose"].get("baseline").is_some()
            || !kinds.iter().any(|kind| record["trial"]["plan"].get(kind).is_some())
    });
}

/// The clock of one end is so far ahead of the other one.
fn clocks_apart(run: &mut Value, ns: i64) {
    each_object(run, &mut |object| {
        for (field, by) in [("up_ns", ns), ("down_ns", -ns), ("min_delay_ns", ns), ("delay_ns", ns)] {
            if let Some(value) = object.get_mut(field).filter(|value| value.is_i64()) {
                *value = (value.as_i64().unwrap_or(0) + by).into();
            }
        }
    });
}

type Ablation = fn(&mut Value);

/// Fields of TCP_INFO that Linux 4.19 and later kernels brought, …
const SINCE_4_19: &[&str] = &[
    "bytes_sent", "bytes_retrans", "dsack_dups", "reord_seen", "rcv_ooopack", "snd_wnd_bytes", "rcv_wnd_bytes",
    "total_rto", "total_rto_recoveries", "total_rto_time_ms", "received_ce", "rehash",
];
/// … and those of 4.9 to 4.18.
const SINCE_4_9: &[&str] =
    &["busy_time_us", "rwnd_limited_us", "sndbuf_limited_us", "delivered", "delivered_ce", "delivery_rate_bytes_s"];

const ABLATIONS: &[(&str, Ablation)] = &[
    ("without the right to watch drops", |run| without_facts(run, &["drop."])),
    ("without /proc/net/netstat and snmp", |run| without_facts(run, &["netstat.", "snmp"])),
    ("without sysctls", |run| without_facts(run, &["tcp.", "core."])),
    ("without the counters of devices", |run| without_facts(run, &["nic.counter.", "qdisc."])),
    ("with the TCP_INFO of Linux 4.18", |run| without_fields(run, SINCE_4_19)),
    ("with the TCP_INFO of Linux 4.8", |run| {
        without_fields(run, SINCE_4_19);
        without_fields(run, SINCE_4_9);
    }),
    ("without socket memory", |run| without_fields(run, &["memory"])),
    ("without the times of CPUs", |run| without_fields(run, &["thread_cpu_us"])),
    ("without UDP", |run| without_trials(run, &["udp", "profile"])),
    ("without a profile", |run| without_trials(run, &["profile"])),
    ("without experiments", |run| without_trials(run, &["udp", "profile", "tcp"])),
    ("with clocks an hour apart", |run| clocks_apart(run, 3_600_000_000_000)),
];

/// What is left of a profile: of steps up totals, and the queue at the end of each.
fn profile_with_iperf3(plan: &ProfilePlan, record: &mut ProfileEndRecord) {
    record.probes.retain(|it| it.bytes == 0);
    record.probes.truncate(10);
    for probe in &mut record.probes {
        let rtt_ns = i64::try_from(probe.rtt_ns).unwrap_or(0);
        *probe = ProfileProbe { bytes: 0, up_ns: rtt_ns, down_ns: rtt_ns, ..*probe };
    }
    if plan.direction != Direction::Up {
        return;
    }
    let idle_ns = record.probes.iter().map(|it| it.rtt_ns).min().unwrap_or(0);
    let received = || record.steps.iter().filter_map(|it| it.received.as_ref());
    let least = received().map(|it| it.min_delay_ns).min().unwrap_or(0);
    for StepRecord { sent, received, .. } in &mut record.steps {
        let Some(known) = received.take().filter(|it| it.datagrams > 0) else { continue };
        let last = known.parts.iter().rev().find(|part| part.received > 0).map_or(known.delays_ns[2], |it| it.delay_ns);
        let answered_ns = idle_ns + u64::try_from(last - least).unwrap_or(0);
        *received = Some(far::step(*sent, known.datagrams, answered_ns, idle_ns));
    }
    let idle = i64::try_from(idle_ns).unwrap_or(0);
    record.probes.push(ProfileProbe { bytes: record.datagram_bytes, rtt_ns: idle_ns, up_ns: idle, down_ns: idle });
}

/// As it is measured with a server of iperf3: nothing of its host, what it counts of streams, and no load that it does not have.
fn with_iperf3_there(run: &mut Run) {
    let why = "the far end does not show its host".to_owned();
    let nothing = Snapshot {
        absent: vec![Absent { collector: "iperf3".to_owned(), what: "*".to_owned(), why }],
        ..Snapshot::default()
    };
    run.server = nothing;
    run.idle_rtt_us.clear();
    run.path = None;
    let is_profile = |trial: &Trial| matches!(trial.plan, LoadPlan::Profile(_));
    run.trials.retain(|it| is_profile(&it.trial) || Params::of(&Params::fitted(&it.trial.plan)).is_ok());
    for TrialRecord { trial, .. } in &mut run.trials {
        if let (LoadPlan::Profile(plan), LoadRecord::Profile(record)) = (&trial.plan, &mut trial.client) {
            profile_with_iperf3(plan, record);
            trial.server = ProfileEndRecord::empty(Place::Server).into();
            continue;
        }
        let results = own::results(&trial.server, trial.plan.omitted_ms() * 1000, None);
        trial.server = far::record(&trial.plan, &mut trial.client, Some(&results));
    }
}

#[test]
fn one_end_alone_names_nothing_that_is_wrong() {
    let (mut text, mut wrong) = (String::new(), Vec::new());
    let (mut right, mut open, mut not_made) = ([0; 2], [0; 2], 0);
    for Case { name, truth, run } in cases() {
        let mut run: Run = serde_json::from_value(run).expect("a run");
        if is_right(&truth, &diagnose(&run, 0).expect("a baseline").verdict) == Some(false) {
            continue;
        }
        with_iperf3_there(&mut run);
        // Such a server imitates no application.
        let Some(round) = diagnose(&run, 0) else {
            not_made += 1;
            continue;
        };
        let verdict = round.verdict;
        // What only the far end knows can be told by nobody here.
        let is_there = usize::from(!truth.is_empty() && truth.iter().all(|(_, at)| *at == Place::Server));
        match is_right(&truth, &verdict) {
            Some(true) => right[is_there] += 1,
            None => open[is_there] += 1,
            Some(false) => wrong.push(format!("{name}: {} -> {}", words(&truth), verdict.headline)),
        }
        let _ = writeln!(text, "{name:<18}{}: {:?} {}", words(&truth), verdict.status, verdict.headline);
    }
    let _ = writeln!(text, "at this end or between: {} right, {} open", right[0], open[0]);
    let _ = writeln!(text, "at the far end: {} right, {} open", right[1], open[1]);
    let _ = writeln!(text, "not made: {not_made}");
    assert!(wrong.is_empty(), "{} verdicts:\n{}\n{text}", wrong.len(), wrong.join("\n"));
    insta::assert_snapshot!("one-end", text);
}

#[test]
fn a_fact_that_is_missing_makes_no_verdict_wrong() {
    let mut wrong = Vec::new();
    for Case { name, truth, run } in cases() {
        let full = verdict(run.clone());
        if is_right(&truth, &full) == Some(false) {
            continue;
        }
        for (how, ablate) in ABLATIONS {
            let mut run = run.clone();
            ablate(&mut run);
            let less = verdict(run);
            if is_right(&truth, &less) == Some(false) {
                wrong.push(format!("{name} {how}: {} -> {}", words(&truth), less.headline));
            }
        }
    }
    assert!(wrong.is_empty(), "{} verdicts:\n{}", wrong.len(), wrong.join("\n"));
}
