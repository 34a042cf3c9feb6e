//! `--format iperf3` has every key that a recorded `iperf3 -J` (3.12) has, with the same type.

use crate::report_json::kind;
use crate::samples;

use narrows_model::*;
use narrows_render::measure::UdpMeasurement;
use narrows_render::{Document as _, Format, Style};
use narrows_views::measure::{tcp, udp};
use samples::runs::run;
use samples::udp::{Trouble, run_view, trial};
use serde_json::Value;

/// Walks both; what is missing or of another type in `ours`. All members of a list are compared with the recorded ones at their place.
fn differences(path: &str, theirs: &Value, ours: &Value, found: &mut Vec<String>) {
    if kind(theirs) != kind(ours) {
        return found.push(format!("{path}: {} instead of {}", kind(ours), kind(theirs)));
    }
    match (theirs, ours) {
        (Value::Object(theirs), Value::Object(ours)) => {
            for (key, value) in theirs {
                match ours.get(key) {
                    Some(own) => differences(&format!("{path}.{key}"), value, own, found),
                    None => found.push(format!("{path}.{key} is missing")),
                }
            }
        }
        (Value::Array(theirs), Value::Array(ours)) => {
            for (nth, (theirs, ours)) in theirs.iter().zip(ours).enumerate() {
                differences(&format!("{path}[{nth}]"), theirs, ours, found);
            }
            if ours.len() < theirs.len().min(1) {
                found.push(format!("{path} is empty"));
            }
        }
        _ => {}
    }
}

fn check(recorded: &str, text: Option<String>) -> Value {
    let theirs: Value = serde_json::from_str(recorded).expect("a recorded result");
    let ours: Value = serde_json::from_str(&text.expect("the format exists")).expect("JSON");
    let mut found = Vec::new();
    differences("", &theirs, &ours, &mut found);
    assert_eq!(found, Vec::<String>::new());
    ours
}

#[test]
fn tcp_has_the_keys_of_iperf3() {
    let recorded = [
        (Direction::Up, 1, include_str!("../../../../fixtures/iperf3/tcp-up.json")),
        (Direction::Down, 1, include_str!("../../../../fixtures/iperf3/tcp-down.json")),
        (Direction::Both, 2, include_str!("../../../../fixtures/iperf3/tcp-both.json")),
    ];
    for (direction, streams, recorded) in recorded {
        let plan = TcpPlan { direction, streams, limit: Limit::DurationMs(4_000), ..TcpPlan::default() };
        let report = tcp::build(&run(plan, 4, 117_625_000)).expect("it holds a trial");
        let ours = check(recorded, report.write(Format::Iperf3, Style::default()).expect("JSON"));
        assert_eq!(ours["end"]["sum_received"]["bytes"], report.summary.flows[0].total.bytes);
        assert_eq!(ours["intervals"].as_array().map(Vec::len), Some(4));
    }
}

#[test]
fn udp_has_the_keys_of_iperf3() {
    let recorded = [
        (Direction::Up, include_str!("../../../../fixtures/iperf3/udp-up.json")),
        (Direction::Down, include_str!("../../../../fixtures/iperf3/udp-down.json")),
        (Direction::Both, include_str!("../../../../fixtures/iperf3/udp-both.json")),
    ];
    for (direction, recorded) in recorded {
        let rate = UdpRate::Bps(1_000_000_000);
        let plan = UdpPlan { direction, rate_up: rate, rate_down: rate, duration_ms: 4_000, ..UdpPlan::default() };
        let trouble = Trouble { lost_s: 310, unsent_s: 0, reordered_s: 1 };
        let report = udp::from_trial(trial(plan, 4, 100_000, trouble).of().expect("UDP"), run_view());
        let measurement = UdpMeasurement { report: report.clone(), ledgers: vec![] };
        let ours = check(recorded, measurement.write(Format::Iperf3, Style::default()).expect("JSON"));
        let lost = report.summary.flows[0].total.received.as_ref().map(|it| it.lost);
        assert_eq!(ours["end"]["sum"]["lost_packets"].as_u64(), lost);
        let received = |key: &str| ours["end"]["sum_received"][key].as_f64().expect("a number");
        let bits = received("bits_per_second") * received("seconds");
        assert!((bits / (received("bytes") * 8.0) - 1.0).abs() < 1e-6, "{direction:?}");
    }
}

#[test]
fn the_time_is_written_as_iperf3_writes_it() {
    let report = tcp::build(&run(TcpPlan::default(), 10, 1_000)).expect("it holds a trial");
    let text = report.write(Format::Iperf3, Style::default()).expect("JSON").expect("the format exists");
    let ours: Value = serde_json::from_str(&text).expect("JSON");
    let time = ours["start"]["timestamp"]["time"].as_str().expect("text");
    assert!(time.ends_with(" GMT") && time.as_bytes()[3] == b',' && time.len() == 29, "{time}");
}
