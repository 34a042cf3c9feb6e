//! A `diagnose --try` that is killed in the middle leaves no change behind: the server sets its own back when it loses the
//! client, and the client's journal knows the way back for what was changed here.

use narrows_model::lab::Impairment;
use narrows_model::{Direction, Place};
use narrows_runner::demo::Stage;
use narrows_runner::emulated::LabSpec;
use narrows_sys::{clock, files, process, sysctl};
use std::process::{Child, Stdio};
use std::time::Duration;

const BUFFER: &str = "65536";
const KILL: i32 = 9;
/// A try takes about so long.
const SPAN_S: f64 = 15.0;

fn stage(fault: &str, at: Place) -> Stage {
    let way = Impairment { rate_bps: 200_000_000, delay_us: 10_000, ..Impairment::default() };
    let spec = LabSpec { name: "killed".to_owned(), up: way.clone(), down: way, ..LabSpec::default() };
    let program = env!("CARGO_BIN_EXE_narrows").into();
    let stage =
        Stage::with_program(&spec, &["--allow-tune"], program).expect("a lab (root, or user namespaces with TUN)");
    stage.lab.fault(fault, at, Some("64k"), Direction::Both).expect("a fault");
    stage
}

fn climb(stage: &Stage) -> Child {
    let words = ["diagnose", "server", "--try", "--duration", "1s", "--omit", "300ms", "--quiet"];
    let mut command = stage.client(&words).expect("a client");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a process")
}

fn max_of(stage: &Stage, host: &str, key: &str) -> String {
    let words =
        stage.lab.host(host).and_then(|host| host.run(|| sysctl::read(key).expect("a parameter"))).expect("a host");
    words.split_whitespace().last().unwrap_or_default().to_owned()
}

/// Whether the maximum becomes what the fault made it, within twenty seconds.
fn comes_back(stage: &Stage, host: &str, key: &str) -> bool {
    (0..400).any(|_| {
        let now = max_of(stage, host, key) == BUFFER;
        if !now {
            clock::sleep(Duration::from_millis(50));
        }
        now
    })
}

/// A client that has applied its fix. Where the machine is disturbed, its verdict is *unknown*: then it tries again.
fn applied(stage: &Stage, host: &str, key: &str) -> Option<Child> {
    for _ in 0..4 {
        let mut client = climb(stage);
        loop {
            if max_of(stage, host, key) != BUFFER {
                return Some(client);
            }
            if client.try_wait().expect("a child").is_some() {
                break;
            }
            clock::sleep(Duration::from_millis(20));
        }
    }
    None
}

fn journal(stage: &Stage, host: &str) -> usize {
    let directory = stage.scratch.join(host).join("narrows/changes");
    narrows_sys::files::list(&directory).map_or(0, |names| names.iter().filter(|name| name.ends_with(".json")).count())
}

#[test]
fn the_server_sets_its_changes_back_when_the_client_is_killed() {
    let stage = stage("tcp-receive-window", Place::Server);
    let mut client = applied(&stage, "server", "net.ipv4.tcp_rmem").expect("the fix is applied");
    client.kill().expect("to end it");
    client.wait().expect("its end");
    assert!(comes_back(&stage, "server", "net.ipv4.tcp_rmem"), "the server kept a change of a dead client");
    assert_eq!(journal(&stage, "server"), 0);
}

#[test]
fn a_killed_client_leaves_its_own_way_back() {
    let stage = stage("tcp-send-buffer", Place::Client);
    let mut client = applied(&stage, "client", "net.ipv4.tcp_wmem").expect("the fix is applied");
    client.kill().expect("to end it");
    client.wait().expect("its end");
    assert_ne!(max_of(&stage, "client", "net.ipv4.tcp_wmem"), BUFFER);
    let undone = stage.on_client(&["tune", "undo", "all"]).expect("a client").output().expect("a process");
    assert!(undone.status.success(), "{}", String::from_utf8_lossy(&undone.stderr));
    assert_eq!(max_of(&stage, "client", "net.ipv4.tcp_wmem"), BUFFER, "{}", String::from_utf8_lossy(&undone.stdout));
    assert_eq!(journal(&stage, "client"), 0);
}

/// The processes that a process started.
fn children(of: u32) -> Vec<u32> {
    let list = files::read_text(format!("/proc/{of}/task/{of}/children").as_ref()).unwrap_or_default();
    list.split_whitespace().filter_map(|id| id.parse().ok()).collect()
}

/// Client, server, and each process that the server started, killed at points all over a try: `NARROWS_KILLS=200` for as many.
#[test]
fn killed_at_any_point_the_hosts_are_as_before() {
    let kills: u32 = std::env::var("NARROWS_KILLS").ok().and_then(|count| count.parse().ok()).unwrap_or(3);
    let mut stage = stage("tcp-receive-window", Place::Server);
    stage.lab.fault("tcp-send-buffer", Place::Client, Some("64k"), Direction::Both).expect("a fault");
    let ends = [("server", "net.ipv4.tcp_rmem"), ("client", "net.ipv4.tcp_wmem")];
    let mut changed = 0;
    for nth in 0..kills {
        let mut client = climb(&stage);
        // Multiples of the golden ratio fill a span evenly, however many they are.
        clock::sleep(Duration::from_secs_f64(SPAN_S * (f64::from(nth) * 0.618_034).fract()));
        changed += u32::from(ends.iter().any(|(host, key)| max_of(&stage, host, key) != BUFFER));
        let server = stage.server_id().expect("a server");
        let helpers = children(server);
        let helper = (nth % 3 == 2 && !helpers.is_empty()).then(|| helpers[nth as usize / 3 % helpers.len()]);
        match (nth % 3, helper) {
            (0, _) => client.kill().expect("to end it"),
            (_, Some(helper)) => process::signal(helper, KILL).expect("to end it"),
            _ => stage.kill_server(),
        }
        client.wait().expect("its end");
        if nth % 3 != 0 {
            stage.kill_server();
            stage.start_server().expect("a server");
        }
        let undone = stage.on_client(&["tune", "undo", "all"]).expect("a client").output().expect("a process");
        assert!(undone.status.success(), "kill {nth}: {}", String::from_utf8_lossy(&undone.stderr));
        for (host, key) in ends {
            assert!(comes_back(&stage, host, key), "kill {nth} left a change of {key} at the {host}");
            assert_eq!(journal(&stage, host), 0, "kill {nth} at the {host}");
        }
    }
    assert!(kills < 20 || changed > 0, "no try had a change in force when it was killed");
}
