//! A campaign that is killed in the middle and started again: every step once, and the hosts as before.

use narrows_model::lab::Impairment;
use narrows_runner::demo::Stage;
use narrows_runner::emulated::LabSpec;
use narrows_sys::{clock, files, sysctl};
use std::io::Read as _;
use std::process::{Child, Stdio};
use std::time::Duration;

const PLAN: &str = r#"
name = "killed"
hosts = ["server"]
repetitions = 2
[load]
duration = "1s"
[[factor]]
name = "rmem"
at = "server"
sysctl = "net.ipv4.tcp_rmem"
values = ["4096 65536 65536", "4096 131072 8388608"]
[[factor]]
name = "wmem"
at = "client"
sysctl = "net.ipv4.tcp_wmem"
values = ["4096 16384 4194304", "4096 16384 8388608"]
"#;

fn start(stage: &Stage, words: &[&str]) -> Child {
    let plan = stage.scratch.join("plan.toml").display().to_string();
    let mut command = stage.client(&[&["campaign", &plan], words].concat()).expect("a client");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a process")
}

fn output(mut child: Child) -> (Option<i32>, String) {
    let mut text = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut text).expect("text");
    child.stderr.take().expect("a pipe").read_to_string(&mut text).expect("text");
    (child.wait().expect("its end").code(), text)
}

fn settings(stage: &Stage) -> [String; 2] {
    [("server", "net.ipv4.tcp_rmem"), ("client", "net.ipv4.tcp_wmem")].map(|(host, key)| {
        stage.lab.host(host).and_then(|host| host.run(|| sysctl::read(key).expect("a parameter"))).expect("a host")
    })
}

#[test]
fn a_killed_campaign_goes_on_and_leaves_the_hosts_as_before() {
    let way = Impairment { rate_bps: 200_000_000, delay_us: 10_000, ..Impairment::default() };
    let spec = LabSpec { name: "campaign".to_owned(), up: way.clone(), down: way, ..LabSpec::default() };
    let program = env!("CARGO_BIN_EXE_narrows").into();
    let stage =
        Stage::with_program(&spec, &["--allow-tune"], program).expect("a lab (root, or user namespaces with TUN)");
    files::write_whole(&stage.scratch.join("plan.toml"), PLAN.as_bytes(), 0o600).expect("a plan");
    let before = settings(&stage);
    let mut first = start(&stage, &[]);
    clock::sleep(Duration::from_secs(5));
    first.kill().expect("to end it");
    let (_, text) = output(first);
    assert!(text.contains("[1/8]"), "{text}");

    let (code, text) = output(start(&stage, &[]));
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("killed: 8 of 8 runs") && text.contains("Main effects"), "{text}");
    assert_eq!(settings(&stage), before, "{text}");
    let (code, again) = output(start(&stage, &["--quiet"]));
    assert_eq!(code, Some(0), "{again}");
    assert!(text.starts_with(&again), "{again}");
    let history = stage.on_client(&["history", "--format", "json"]).expect("a client").output().expect("a process");
    let json = String::from_utf8_lossy(&history.stdout).into_owned();
    assert_eq!(json.matches("\"step:").count(), 8, "{json}");
    for step in 1..=8 {
        assert_eq!(json.matches(&format!("\"step:{step}\"")).count(), 1, "{json}");
    }
}
