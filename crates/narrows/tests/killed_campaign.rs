//! A campaign of five factors that is killed three times and started again, and whose server is killed, too: every step once, the hosts as before, and the effects those
//! of its runs. `NARROWS_CAMPAIGN=1` for a full design, its time against the dry run, and single measurements beside it (20 minutes).

use narrows_model::lab::Impairment;
use narrows_model::run::campaign::{CampaignEffect, CampaignReport, EffectVerdict};
use narrows_runner::demo::Stage;
use narrows_runner::emulated::LabSpec;
use narrows_stats::{mean, mean_interval};
use narrows_sys::{clock, ethtool, files, process, sysctl};
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Stdio};
use std::time::Duration;

/// Three factors that may matter, and two that do not.
fn plan(long: bool, seed: u32) -> String {
    let (design, repetitions, duration) = if long { ("full", 4, "2s") } else { ("fractional", 1, "1s") };
    format!(
        r#"
name = "acceptance"
hosts = ["server"]
design = "{design}"
repetitions = {repetitions}
seed = {seed}
[load]
duration = "{duration}"
[[factor]]
name = "rmem"
at = "server"
sysctl = "net.ipv4.tcp_rmem"
values = ["4096 131072 262144", "4096 131072 8388608"]
[[factor]]
name = "gro"
at = "server"
device = "path0"
offload = "gro"
values = ["on", "off"]
[[factor]]
name = "cc"
flag = "congestion-control"
values = ["cubic", "CONTROL"]
[[factor]]
name = "idle restart"
at = "client"
sysctl = "net.ipv4.tcp_slow_start_after_idle"
values = [1, 0]
[[factor]]
name = "metrics"
at = "server"
sysctl = "net.ipv4.tcp_no_metrics_save"
values = [0, 1]
"#
    )
}

const IDLE: [&str; 2] = ["idle restart", "metrics"];

fn start(stage: &Stage, words: &[&str]) -> Child {
    let plan = stage.scratch.join("plan.toml").display().to_string();
    let mut command = stage.client(&[&["campaign", &plan, "--margin", "10%"], words].concat()).expect("a client");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a process")
}

fn output(mut child: Child) -> (Option<i32>, String) {
    let mut text = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut text).expect("text");
    child.stderr.take().expect("a pipe").read_to_string(&mut text).expect("text");
    (child.wait().expect("its end").code(), text)
}

/// Kills the campaign with SIGKILL in the middle of its `nth` step from here.
fn kill_in(stage: &Stage, nth: usize) {
    let mut child = start(stage, &[]);
    let lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let steps = lines.map(|line| line.expect("text")).filter(|line| line.starts_with('['));
    assert!(steps.take(nth).count() == nth, "it ended before");
    clock::sleep(Duration::from_millis(400 + 300 * u64::try_from(nth % 3).expect("small")));
    process::signal(child.id(), 9).expect("it lives");
    child.wait().expect("its end");
}

/// The rest of the campaign; its server is killed in the middle, and started again once the client has seen it.
fn rest_without_its_server(stage: &mut Stage) -> (Option<i32>, String) {
    let mut child = start(stage, &[]);
    let mut seen = Vec::new();
    for line in BufReader::new(child.stderr.take().expect("a pipe")).lines().map(|line| line.expect("text")) {
        if line.starts_with('[')
            && stage.server_id().is_some()
            && !seen.iter().any(|it: &String| it.contains("attempt"))
        {
            clock::sleep(Duration::from_millis(700));
            stage.kill_server();
        } else if line.contains("attempt 1 of 5") && stage.server_id().is_none() {
            stage.start_server().expect("a server");
        }
        seen.push(line);
    }
    let mut text = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut text).expect("text");
    assert!(seen.iter().any(|it| it.contains("attempt 1 of 5")), "{seen:?}");
    (child.wait().expect("its end").code(), text + &seen.join("\n"))
}

/// All that the campaign changes, on both hosts.
fn settings(stage: &Stage) -> Vec<String> {
    let mut all = Vec::new();
    for (name, keys) in [
        ("client", &["net.ipv4.tcp_slow_start_after_idle"][..]),
        ("server", &["net.ipv4.tcp_rmem", "net.ipv4.tcp_no_metrics_save"]),
    ] {
        let host = stage.lab.host(name).expect("a host");
        let device = host.device();
        let read = || {
            let features = ethtool::Device::open(device).and_then(|it| it.features()).expect("features");
            let gro = features.iter().filter(|it| it.name == "rx-gro").map(|it| format!("{}", it.active));
            keys.iter().map(|key| sysctl::read(key).expect("a parameter")).chain(gro).collect::<Vec<_>>()
        };
        all.extend(host.run(read).expect("a host"));
    }
    all
}

fn report(stage: &Stage) -> CampaignReport {
    let (code, json) = output(start(stage, &["--quiet", "--format", "json"]));
    assert_eq!(code, Some(0), "{json}");
    serde_json::from_str(&json).expect("a report")
}

/// Every step is there once, and each main effect is the difference of the means of its runs: the design is balanced.
fn check(report: &CampaignReport, planned: usize) {
    let steps: Vec<u64> = report.runs.iter().map(|it| it.step).collect();
    assert_eq!(steps, (1..=planned as u64).collect::<Vec<_>>());
    assert!(report.runs.iter().all(|it| it.failed.is_none()), "{:?}", report.warnings);
    for (at, factor) in report.factors.iter().enumerate() {
        let of = |level: &String| {
            let runs = report.runs.iter().filter(|it| it.levels[at] == *level);
            mean(&runs.filter_map(|it| it.value).collect::<Vec<_>>()).expect("runs")
        };
        let effect = report.effects[at].effect.expect("an effect");
        assert!((of(&factor.levels[1]) - of(&factor.levels[0]) - effect).abs() < 1.0, "{factor:?}: {effect}");
    }
}

fn stage() -> Stage {
    let way = Impairment { rate_bps: 100_000_000, delay_us: 17_500, ..Impairment::default() };
    let up = Impairment { loss: 5e-3, single_packets: true, ..way.clone() };
    let spec = LabSpec { name: "campaign".to_owned(), up, down: way, ..LabSpec::default() };
    let program = env!("CARGO_BIN_EXE_narrows").into();
    Stage::with_program(&spec, &["--allow-tune"], program).expect("a lab (root, or user namespaces with TUN)")
}

fn write_plan(stage: &Stage, long: bool, seed: u32) {
    let device = stage.lab.host("server").expect("a host").device();
    // One that loss does not slow down, where the kernel has it.
    let known = sysctl::read("net.ipv4.tcp_available_congestion_control").expect("a parameter");
    let control = if known.contains("bbr") { "bbr" } else { "reno" };
    let text = plan(long, seed).replace("path0", device).replace("CONTROL", control);
    files::write_whole(&stage.scratch.join("plan.toml"), text.as_bytes(), 0o600).expect("a plan");
}

#[test]
fn a_killed_campaign_goes_on_and_leaves_the_hosts_as_before() {
    let long = std::env::var_os("NARROWS_CAMPAIGN").is_some();
    let (mut stage, planned) = (stage(), if long { 128 } else { 16 });
    let before = settings(&stage);
    let whole = long.then(|| uninterrupted(&stage));
    write_plan(&stage, long, 1);
    for nth in if long { [20, 31, 42] } else { [3, 4, 2] } {
        kill_in(&stage, nth);
    }
    let (code, text) = rest_without_its_server(&mut stage);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains(&format!("acceptance: {planned} of {planned} runs")), "{text}");
    assert_eq!(settings(&stage), before, "{text}");
    println!("killed three times:\n{text}");
    let (code, again) = output(start(&stage, &["--quiet"]));
    assert!(code == Some(0) && text.starts_with(&again), "{again}");
    let killed = report(&stage);
    check(&killed, planned);
    if let Some(whole) = whole {
        same(&whole, &killed);
        single_measurements(&stage, &killed);
        assert_eq!(settings(&stage), before);
    }
}

/// The same campaign in another order, not killed; its time against the one that the dry run says.
fn uninterrupted(stage: &Stage) -> CampaignReport {
    write_plan(stage, true, 2);
    let (_, dry) = output(start(stage, &["--dry-run"]));
    let says = dry.lines().find_map(|it| it.split_once(" done, ")?.1.split_once(" s left")?.0.parse::<f64>().ok());
    let began = clock::now();
    let (code, text) = output(start(stage, &[]));
    let (took, says) = (began.elapsed().as_secs_f64(), says.expect("a time"));
    assert_eq!(code, Some(0), "{text}");
    println!("not killed:\n{text}");
    println!("the dry run says {says:.0} s; it took {took:.1} s ({:+.1} %)", (took / says - 1.0) * 100.0);
    let report = report(stage);
    check(&report, 128);
    report
}

/// The effects of both campaigns agree within their intervals, and what does nothing is called so.
fn same(a: &CampaignReport, b: &CampaignReport) {
    for (a, b) in a.effects.iter().zip(&b.effects) {
        let half = |it: &CampaignEffect| it.interval.map(|[low, high]| (high - low) / 2.0).expect("an interval");
        let (x, y, width) = (a.effect.expect("one"), b.effect.expect("one"), half(a) + half(b));
        let names: Vec<&str> = a.terms.iter().map(|it| it.factor.as_str()).collect();
        println!("{}: {x:.0} and {y:.0}, intervals {width:.0} together", names.join(" × "));
        assert!((x - y).abs() <= 1.5 * width, "{a:?} {b:?}");
    }
    for report in [a, b] {
        assert_eq!(report.effects[0].verdict, EffectVerdict::Raises, "{:?}", report.effects[0]);
        for name in IDLE {
            let verdict = report.effects.iter().find(|it| it.terms[0].factor == name).map(|it| it.verdict);
            println!("{name}: {verdict:?}");
            assert!(report.idle.iter().any(|it| it == name), "{name}: {verdict:?}");
        }
    }
}

/// Single measurements of the baseline and of each factor that may matter, beside the campaign's.
fn single_measurements(stage: &Stage, report: &CampaignReport) {
    let server = stage.lab.host("server").expect("a host");
    let baseline: Vec<String> = report.factors.iter().map(|it| it.levels[0].clone()).collect();
    for at in [None, Some(0), Some(1), Some(2)] {
        let mut levels = baseline.clone();
        at.iter().for_each(|at| levels[*at].clone_from(&report.factors[*at].levels[1]));
        let device = server.device();
        let set = |rmem: &str, gro: bool| {
            sysctl::write("net.ipv4.tcp_rmem", rmem).expect("a parameter");
            ethtool::Device::open(device).and_then(|it| it.set_feature("gro", gro)).expect("a feature");
        };
        let before = server.run(|| sysctl::read("net.ipv4.tcp_rmem").expect("a parameter")).expect("a host");
        server.run(|| set(&levels[0], levels[1] == "on")).expect("a host");
        let one = |_| {
            let words = ["measure", "tcp", "server", "-t", "2s", "--omit", "500ms", "--no-save", "--format", "json"];
            let words = [&words[..], &["--congestion-control", &levels[2]]].concat();
            let json = stage.client(&words).expect("a client").output().expect("a process").stdout;
            let json: serde_json::Value = serde_json::from_slice(&json).expect("a report");
            json["summary"]["flows"][0]["total"]["goodput_bps"].as_f64().expect("a goodput")
        };
        let singles: Vec<f64> = (0..6).map(one).collect();
        server.run(|| set(&before, true)).expect("a host");
        let single = mean_interval(&singles, 0.95).expect("six");
        let of = |only: &dyn Fn(&Vec<String>) -> bool| {
            let runs = report.runs.iter().filter(|it| only(&it.levels)).filter_map(|it| it.value);
            mean_interval(&runs.collect::<Vec<_>>(), 0.95).expect("several")
        };
        // Idle factors at any level: 16 runs.
        let campaign = of(&|it| it[..3] == levels[..3]);
        println!(
            "{:?}: single {:.2e} ({:.2e} to {:.2e}), campaign {:.2e} ({:.2e} to {:.2e})",
            &levels[..3],
            single.value,
            single.interval[0],
            single.interval[1],
            campaign.value,
            campaign.interval[0],
            campaign.interval[1],
        );
        let width = (single.interval[1] - single.value) + (campaign.interval[1] - campaign.value);
        assert!((single.value - campaign.value).abs() <= 1.5 * width, "{singles:?} {campaign:?}");
    }
}
