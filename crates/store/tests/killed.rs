//! A writer is killed in the middle: each run whose `put` returned is in the store, and the store is sound.
//!
//! `NARROWS_KILLS=20 cargo test -p narrows-store --test killed` kills it twenty times, instead of three.

#![allow(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used)] // a test that starts itself as another process

#[cfg(feature = "postgres")]
mod server;

use narrows_model::run::history::StoredRun;
use narrows_store::{Filter, KIND_OF_RUNS, Store};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const WRITER: &str = "NARROWS_STORE_WRITER";
/// Runs of one writer.
const RUNS: usize = 1_000;

fn entry(id: &str) -> StoredRun {
    serde_json::from_value(serde_json::json!({
        "id": id, "started_unix_us": 1, "who": "", "client": "c", "server": "s", "server_name": "", "family": "ipv4",
        "command": "diagnose", "plan": "p", "tags": ["t"], "figures": [{"name": "goodput", "value": 1.0, "unit": "bits_per_second"}],
        "verdict": "healthy", "made_by": "", "raw_bytes": 0, "stored_bytes": 0
    }))
    .unwrap()
}

/// The content of a run: of many sizes, and hardly compressible.
fn content(id: &str, n: usize) -> Vec<u8> {
    let mut state = n as u64 + 1;
    let digits = (0..n * 37 % 30_000).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'a' + (state >> 59) as u8)
    });
    serde_json::to_vec(&serde_json::json!({ "id": id, "text": digits.collect::<String>() })).unwrap()
}

/// Not a test of its own: the process that is killed.
#[test]
fn writer() {
    let Some(file) = std::env::var_os(WRITER) else { return };
    let mut store = Store::open(Path::new(&file)).unwrap();
    let round = std::process::id();
    for n in 0..RUNS {
        let id = format!("{round}-{n}");
        store.put(&entry(&id), KIND_OF_RUNS, &content(&id, n)).unwrap();
        println!("\nput {id}");
    }
}

fn write_and_kill(file: &PathBuf, after: usize) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "writer", "--nocapture", "--test-threads", "1"])
        .env(WRITER, file)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut put = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        put.extend(line.unwrap().strip_prefix("put ").map(str::to_owned));
        if put.len() == after {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    put
}

#[test]
fn no_finished_run_is_lost() {
    let directory = tempfile::tempdir().unwrap();
    none_is_lost(&directory.path().join("runs.db"));
}

#[cfg(feature = "postgres")]
#[test]
fn no_finished_run_is_lost_on_a_server() {
    if let Some(server) = server::Server::start() {
        none_is_lost(&server.database("runs"));
    }
}

fn none_is_lost(file: &PathBuf) {
    let rounds = std::env::var("NARROWS_KILLS").ok().and_then(|word| word.parse().ok()).unwrap_or(3usize);
    let mut finished = Vec::new();
    for round in 0..rounds {
        // In the first, in the middle and near the end.
        let after = 1 + (round * 379 + 60) % 900;
        let put = write_and_kill(file, after);
        assert!(put.len() >= after && put.len() < RUNS, "killed in the middle: {}", put.len());
        finished.extend(put);
        let store = Store::open(file).unwrap();
        for id in &finished {
            let n = id.rsplit_once('-').unwrap().1.parse().unwrap();
            let (_, json) = store.json(id).unwrap().unwrap_or_else(|| panic!("round {round}: {id} is lost"));
            assert_eq!(json, content(id, n), "{id}");
        }
        let parse = |_: &str, json: &[u8]| {
            serde_json::from_slice::<serde_json::Value>(json).map(drop).map_err(|it| it.to_string())
        };
        assert!(store.check(parse).unwrap().is_empty());
        let there = store.count(&Filter::default()).unwrap();
        let lost = finished.len() as u64;
        // The run that was being put when it was killed may be there, too, once a round.
        assert!(there >= lost && there <= lost + round as u64 + 1, "{there} of {lost}");
    }
    println!("{rounds} writers were killed; {} runs were put, none is lost", finished.len());
}
