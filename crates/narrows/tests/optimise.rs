//! Three limits in a row: `narrows optimise` finds them, reaches what the path carries, and leaves both hosts as they were.

use narrows_model::lab::Impairment;
use narrows_model::run::optimise::OptimiseReport;
use narrows_model::{Direction, Place};
use narrows_runner::demo::Stage;
use narrows_runner::emulated::LabSpec;
use narrows_sys::sysctl;
use std::process::Command;

const KEYS: [(&str, &str); 5] = [
    ("server", "net.ipv4.tcp_rmem"),
    ("client", "net.ipv4.tcp_wmem"),
    ("client", "net.ipv4.tcp_congestion_control"),
    ("server", "net.ipv4.tcp_mtu_probing"),
    ("client", "net.ipv4.tcp_slow_start_after_idle"),
];

fn settings(stage: &Stage) -> [String; 5] {
    KEYS.map(|(host, key)| {
        stage.lab.host(host).and_then(|host| host.run(|| sysctl::read(key).expect("a parameter"))).expect("a host")
    })
}

/// 100 Mbit/s and 30 ms that lose one packet in 2000 on the way up.
fn stage() -> Stage {
    let down = Impairment { rate_bps: 100_000_000, delay_us: 15_000, ..Impairment::default() };
    let up = Impairment { loss: 0.0005, ..down.clone() };
    let spec = LabSpec { name: "optimise".to_owned(), up, down, ..LabSpec::default() };
    let program = env!("CARGO_BIN_EXE_narrows").into();
    Stage::with_program(&spec, &["--allow-tune"], program).expect("a lab (root, or user namespaces with TUN)")
}

fn limit(stage: &Stage) {
    for (fault, at, value) in [
        ("congestion-control", Place::Client, "reno"),
        ("tcp-send-buffer", Place::Client, "128k"),
        ("tcp-receive-window", Place::Server, "64k"),
    ] {
        stage.lab.fault(fault, at, Some(value), Direction::Both).expect("a fault");
    }
}

fn output(mut command: Command) -> (Option<i32>, String, String) {
    let output = command.output().expect("a process");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn three_limits_in_a_row() {
    let stage = stage();
    limit(&stage);
    let before = settings(&stage);
    let words = ["optimise", "server", "-t", "2s", "--time", "5m", "--format", "json"];
    let (code, out, err) = output(stage.client(&words).expect("a client"));
    eprintln!("{err}");
    assert_eq!(code, Some(0), "{out}{err}");
    let report: OptimiseReport = serde_json::from_str(&out).expect("a report");
    eprintln!("{}", narrows_render::optimise::text(&report));
    assert_eq!(settings(&stage), before, "{out}");
}
