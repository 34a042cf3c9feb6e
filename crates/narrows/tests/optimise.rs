//! `narrows optimise` in the lab: it finds what limits, and leaves both hosts as they were, or as it printed.
//!
//! The long test (three limits in a row, minutes) is `make optimise-check`.

use narrows_model::lab::Impairment;
use narrows_model::run::optimise::OptimiseReport;
use narrows_model::{Direction, Ending, MeasureReport, Place, Setting};
use narrows_render::{Document as _, Format, Style};
use narrows_runner::demo::Stage;
use narrows_runner::emulated::LabSpec;
use narrows_sys::{clock, files, process, sysctl};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const INTERRUPT: i32 = 2;

const KEYS: [(&str, &str); 6] = [
    ("server", "net.ipv4.tcp_rmem"),
    ("server", "net.ipv4.tcp_mtu_probing"),
    ("client", "net.ipv4.tcp_wmem"),
    ("client", "net.ipv4.tcp_congestion_control"),
    ("client", "net.ipv4.tcp_slow_start_after_idle"),
    ("client", "net.ipv4.tcp_mtu_probing"),
];

fn read(stage: &Stage, host: &str, key: &str) -> String {
    let read = || sysctl::read(key).map(|it| sysctl::normal(&it)).expect("a parameter");
    stage.lab.host(host).and_then(|host| host.run(read)).expect("a host")
}

fn settings(stage: &Stage) -> [String; 6] {
    KEYS.map(|(host, key)| read(stage, host, key))
}

/// 100 Mbit/s and 30 ms; the way up loses this part of the packets.
fn stage(loss: f64) -> Stage {
    let down = Impairment { rate_bps: 100_000_000, delay_us: 15_000, ..Impairment::default() };
    let up = Impairment { loss, ..down.clone() };
    let spec = LabSpec { name: "optimise".to_owned(), up, down, ..LabSpec::default() };
    let program = env!("CARGO_BIN_EXE_narrows").into();
    Stage::with_program(&spec, &["--allow-tune"], program).expect("a lab (root, or user namespaces with TUN)")
}

fn limit(stage: &Stage, fault: &str, at: Place, value: &str) {
    stage.lab.fault(fault, at, Some(value), Direction::Both).expect("a fault");
}

fn output(mut command: Command) -> (Option<i32>, String, String) {
    let output = command.output().expect("a process");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn optimise(stage: &Stage, words: &[&str]) -> OptimiseReport {
    let words = [&["optimise", "server", "--format", "json"], words].concat();
    let (code, out, err) = output(stage.client(&words).expect("a client"));
    eprintln!("{err}");
    assert_eq!(code, Some(0), "{out}{err}");
    let report: OptimiseReport = serde_json::from_str(&out).expect("a report");
    eprintln!("{}", report.write(Format::Text, Style::default()).expect("text").unwrap_or_default());
    assert_eq!(report.ending, Ending::Complete);
    report
}

/// All settings of the report are in force at their hosts.
fn assert_in_force(stage: &Stage, report: &OptimiseReport) {
    for it in &report.settings {
        if let Setting::Sysctl { key, value } = &it.set {
            assert_eq!(&read(stage, it.at.word(), key), value, "{key}");
        }
    }
}

#[test]
fn a_short_time_leaves_the_hosts_as_before_or_as_printed() {
    let stage = stage(0.0);
    limit(&stage, "tcp-receive-window", Place::Server, "64k");
    let before = settings(&stage);
    let report = optimise(&stage, &["-t", "1s", "--time", "30s", "--keep"]);
    assert_eq!(report.kept, !report.settings.is_empty());
    assert_in_force(&stage, &report);
    for host in ["client", "server"] {
        let words = ["tune", "undo", "all"];
        let mut command = stage.lab.host(host).expect("a host").command(env!("CARGO_BIN_EXE_narrows"));
        command.args(words).env("XDG_STATE_HOME", stage.scratch.join(host));
        let (code, out, err) = output(command);
        assert_eq!(code, Some(0), "{out}{err}");
    }
    assert_eq!(settings(&stage), before);
    // The tag names all its runs.
    let (_, history, err) =
        output(stage.on_client(&["history", "--tag", &report.tag, "--format", "json"]).expect("a client"));
    assert_eq!(history.matches(&report.tag).count() as u64, report.runs, "{history}{err}");
}

#[test]
fn a_sweep_over_settings_of_both_hosts_leaves_them_as_before() {
    let stage = stage(0.0);
    let before = settings(&stage);
    let [csv, svg] = ["sweep.csv", "sweep.svg"].map(|name| stage.scratch.join(name));
    let flags = ["--csv", &csv.display().to_string(), "--svg", &svg.display().to_string()].map(str::to_owned);
    let words = ["sweep", "server", "--over", "server:tcp_rmem=64k,4M", "--over", "client:tcp_wmem=64k,4M"];
    let rest = ["--repeat", "2", "-t", "500ms", "--seed", "5"];
    let all: Vec<&str> = words.into_iter().chain(rest).chain(flags.iter().map(String::as_str)).collect();
    let (code, out, err) = output(stage.client(&all).expect("a client"));
    eprintln!("{out}{err}");
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.starts_with("Influence of server:tcp_rmem and client:tcp_wmem on goodput up"), "{out}");
    assert_eq!(settings(&stage), before);
    let csv = files::read_text(&csv).expect("a file");
    assert_eq!(csv.lines().count(), 1 + 8, "{csv}");
    assert!(files::read_text(&svg).expect("a file").ends_with("</svg>\n"));
    // The same command with the seed measures nothing again.
    let (code, again, err) = output(stage.client(&all).expect("a client"));
    assert_eq!((code, again), (Some(0), out), "{err}");
}

#[test]
fn three_limits_in_a_row() {
    if std::env::var_os("NARROWS_OPTIMISE").is_none() {
        println!("NOT CHECKED: three limits in a row, since it takes minutes: make optimise-check");
        return;
    }
    let stage = stage(0.0003);
    let words = ["measure", "tcp", "server", "-t", "8s", "-O", "2s", "-C", "bbr", "--format", "json"];
    let reference = |stage: &Stage| {
        let (code, out, err) = output(stage.client(&words).expect("a client"));
        assert_eq!(code, Some(0), "{out}{err}");
        let report: MeasureReport = serde_json::from_str(&out).expect("a report");
        report.summary.flows.first().expect("a flow").total.goodput_bps
    };
    let most = reference(&stage);
    limit(&stage, "congestion-control", Place::Client, "reno");
    limit(&stage, "tcp-send-buffer", Place::Client, "128k");
    limit(&stage, "tcp-receive-window", Place::Server, "64k");
    let before = settings(&stage);
    let report = optimise(&stage, &["-t", "3s", "--time", "10m"]);
    assert_eq!(settings(&stage), before);
    let gain = report.gain.expect("a gain");
    let reached = gain.after_bps.iter().sum::<f64>() / gain.after_bps.len() as f64;
    println!(
        "without limits {:.1} Mbit/s; reached {:.1} Mbit/s: {:.1} %",
        most / 1e6,
        reached / 1e6,
        100.0 * reached / most
    );
    assert!(reached >= 0.95 * most, "{reached} of {most}");
    let report = optimise(&stage, &["-t", "3s", "--time", "10m", "--keep"]);
    assert!(report.kept);
    assert_in_force(&stage, &report);
}

/// An optimisation whose first fix is in force at the client.
fn under_way(stage: &Stage) -> Option<Child> {
    let limited = read(stage, "client", "net.ipv4.tcp_wmem");
    // Where the machine is disturbed, its verdict is *unknown*: then it tries again.
    for _ in 0..4 {
        let words = ["optimise", "server", "-t", "1s", "--time", "2m", "--format", "json", "--quiet"];
        let mut command = stage.client(&words).expect("a client");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a process");
        while child.try_wait().expect("a child").is_none() {
            if read(stage, "client", "net.ipv4.tcp_wmem") != limited {
                return Some(child);
            }
            clock::sleep(Duration::from_millis(20));
        }
    }
    None
}

#[test]
fn interrupted_or_killed_it_leaves_the_hosts_as_before() {
    let stage = stage(0.0);
    limit(&stage, "tcp-send-buffer", Place::Client, "64k");
    let before = settings(&stage);
    let child = under_way(&stage).expect("a fix is applied");
    process::signal(child.id(), INTERRUPT).expect("a signal");
    let output = child.wait_with_output().expect("its end");
    assert_eq!(output.status.code(), Some(130));
    let report: OptimiseReport = serde_json::from_slice(&output.stdout).expect("what was found");
    assert_eq!((report.ending, report.kept), (Ending::Interrupted, false));
    assert_eq!(settings(&stage), before);

    let mut child = under_way(&stage).expect("a fix is applied");
    child.kill().expect("to end it");
    child.wait().expect("its end");
    assert_ne!(settings(&stage), before);
    let (code, out, err) = self::output(stage.on_client(&["tune", "undo", "all"]).expect("a client"));
    assert_eq!(code, Some(0), "{out}{err}");
    assert_eq!(settings(&stage), before);
}
