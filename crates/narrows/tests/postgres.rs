//! The store on PostgreSQL, by the program: it answers as SQLite does, and nothing is lost while the server is away.
//! `make postgres-check`.

#![allow(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used)] // a test that starts programs

#[path = "../../store/tests/server/mod.rs"]
mod server;

use narrows_sys::process;
use serde_json::{Value, json};
use server::Server;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// The program, with its home in this directory and this store; the default one if there is none.
fn command(home: &Path, store: Option<&Path>, words: &[&str]) -> Command {
    let mut command = process::bound_command(env!("CARGO_BIN_EXE_narrows"));
    command.args(words).env_clear().envs(store.map(|store| ("NARROWS_STORE", store)));
    command.env("HOME", home).env("XDG_STATE_HOME", home.join("state")).env("USER", "ann").current_dir(home);
    command
}

/// What it wrote to its two outputs.
fn said(home: &Path, store: Option<&Path>, words: &[&str]) -> [String; 2] {
    let done = command(home, store, words).stdin(Stdio::null()).output().unwrap();
    let said = [done.stdout, done.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(!said.concat().contains("secret") && !said.concat().contains("panicked"), "{words:?}: {said:?}");
    said
}

/// Results of other programs of several hosts, families and days; some failed.
fn reports(home: &Path) {
    for n in 0..200u32 {
        let report = json!({
            "start": {
                "connecting_to": {"host": format!("s{}", n % 7), "port": 5201},
                "system_info": format!("Linux c{} 6.1.0 x86_64", n % 3),
                "connected": [{"remote_host": if n % 2 == 0 { "192.0.2.7" } else { "2001:db8::7" }}],
                "timestamp": {"timesecs": 1_600_000_000 + n % 50 * 86_400},
                "test_start": {"protocol": "TCP", "num_streams": n % 4},
            },
            "end": {"sum_sent": {"retransmits": n}, "sum_received": {"bits_per_second": 1e9 + f64::from(n % 13) * 1e6 / 3.0}},
            "error": if n % 11 == 0 { json!("no route") } else { Value::Null },
        });
        let directory = home.join("results").join(["a", "B", "é_b"][n as usize % 3]);
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join(format!("{n}.json")), report.to_string()).unwrap();
    }
}

#[test]
fn a_server_answers_as_a_file_does() {
    let Some(server) = Server::start() else { return };
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    reports(home);
    let (store, file) = (server.database("runs"), home.join("other.db"));
    let both = |words: &[&str]| {
        let [here, there] = [&file, &store].map(|store| said(home, Some(store), words));
        assert_eq!(here, there, "{words:?}");
        here.concat()
    };
    assert_eq!(both(&["store", "import", "results", "--tag", "old"]), "imported 200 runs; 0 known already\n");
    assert_eq!(both(&["store", "import", "results"]), "imported 0 runs; 200 known already\n");
    let list = ["history", "--format", "json", "--limit", "1000"];
    let all: Value = serde_json::from_str(&both(&list)).unwrap();
    let ids: Vec<&str> = all["runs"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 200);
    for (nth, id) in ids.iter().step_by(5).enumerate() {
        both(&["history", "tag", id, &format!("tag:{}", nth % 3), "Zebra", "ähnlich"]);
    }
    both(&["history", "untag", ids[0], "Zebra"]);
    let words = [
        &["--host", "s3"][..],
        &["--host", "c1"],
        &["--host", "S3"],
        &["--host", "no"],
        &["--tag", "old"],
        &["--tag", "é_b"],
        &["--tag", "tag:1"],
        &["--verdict", "failed"],
        &["--verdict", "Failed"],
        &["--verdict", "fail"],
        &["--verdict", "%"],
        &["--command", "iperf3"],
        &["--command", "iperf"],
        &["--command", "iperf_"],
        &["--since", "1d"],
        &["--since", "2020-10-01"],
        &["--host", "s3", "--tag", "B", "--verdict", "complete", "--command", "iperf3"],
        &["--offset", "190"],
        &["--offset", "150", "--limit", "7"],
    ];
    for words in words {
        both(&[&list[..3], words].concat());
        both(&[&["history"], words].concat());
    }
    both(&["history", "show", ids[0]]);
    both(&["history", "trend", "--host", "s3", "--format", "json"]);
    both(&["history", "trend", "--figure", "retransmits", "--format", "csv"]);
    both(&["compare", "tag:B", "tag:é_b"]);
    both(&["compare", ids[3], ids[4]]);
    both(&["store", "export", "--host", "s2", "out"]);
    both(&["history", "delete", "-y", ids[7], ids[9]]);
    assert!(both(&["store", "prune", "-y", "--keep", "150"]).starts_with("deleted 48 runs; "));
    both(&list);
    assert_eq!(both(&["store", "undo"]), "brought back 48 runs\n");
    both(&list);
    both(&["store", "prune", "-y", "--keep", "150", "--for-good"]);
    both(&list);
    let [out, _] = said(home, Some(&store), &["store", "check"]);
    assert!(
        out.starts_with("postgres://postgres@127.0.0.1:") && out.ends_with("/runs: 150 runs, all readable\n"),
        "{out}"
    );
    let [out, _] = said(home, Some(&server.by_socket("runs")), &["store", "check"]);
    assert!(out.ends_with("/runs: 150 runs, all readable\n"), "{out}");
    assert!(!home.join("state/narrows/runs.db").exists());
}

#[test]
fn what_a_server_cannot_take_is_kept_and_sent_later() {
    let Some(mut server) = Server::start() else { return };
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let store = server.database("runs");
    let mut serve = command(home, None, &["serve", "--port", "0"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(serve.stderr.take().unwrap()).lines().map(Result::unwrap);
    let port =
        lines.find_map(|line| line.strip_prefix("narrows serves on port ")?.split(' ').next().map(str::to_owned));
    let (port, token) = (port.unwrap(), home.join("state/narrows/token").to_str().unwrap().to_owned());
    let measure = |tag| {
        let words = [
            "measure", "tcp", "127.0.0.1", "--port", &port, "--token-file", &token, "--duration", "500ms", "--tag", tag,
        ];
        said(home, Some(&store), &words)[1].clone()
    };
    let count = |store: Option<&Path>| {
        let [out, err] = said(home, store, &["history", "--format", "json"]);
        let page: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{err}"));
        page["total"].as_u64().unwrap()
    };
    assert!(!measure("first").contains("kept in"));
    assert_eq!(count(Some(&store)), 1);
    server.stop();
    for tag in ["second", "third"] {
        let line = measure(tag);
        assert_eq!(line.matches("kept in").count(), 1, "{line}");
        assert!(line.contains("saved as ") && line.contains("state/narrows/runs.db until the next command"), "{line}");
    }
    let [_, error] = said(home, Some(&store), &["history"]);
    assert!(error.starts_with("narrows: cannot open the store postgres://postgres@127.0.0.1:"), "{error}");
    assert_eq!(count(None), 2);
    server.go_on();
    let [out, _] = said(home, Some(&store), &["store", "send"]);
    assert!(out.starts_with("sent 2 runs to postgres://postgres@127.0.0.1:"), "{out}");
    assert_eq!((count(Some(&store)), count(None)), (3, 0));
    let [out, _] = said(home, Some(&store), &["history", "--tag", "third", "--format", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["total"], 1);

    // The server goes in the middle of a measurement, whose plan is there already or not.
    let words =
        ["measure", "tcp", "127.0.0.1", "--port", &port, "--token-file", &token, "--duration", "3s", "--tag", "fourth"];
    let mut running = command(home, Some(&store), &words);
    let running = running.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(1));
    server.stop();
    let line = String::from_utf8(running.wait_with_output().unwrap().stderr).unwrap();
    assert!(line.contains("kept in") && !line.contains("secret"), "{line}");
    server.go_on();
    // Whatever reaches the store sends first.
    assert!(!measure("fifth").contains("kept in"));
    assert_eq!((count(Some(&store)), count(None)), (5, 0));
    let [out, _] = said(home, Some(&store), &["store", "check"]);
    assert!(out.ends_with("5 runs, all readable\n"), "{out}");
    serve.kill().unwrap();
    serve.wait().unwrap();
}
