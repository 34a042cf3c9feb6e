//! Combinations of options against real iperf3, in both roles: the results of both ends agree within 2 %, and bytes exactly where bytes
//! end the test. The gate runs a few of them; `NARROWS_IPERF3=all` (`make iperf3`) all, and 32 clients at once.

use crate::iperf3::{client, own_server, result, serve, with_iperf3};
use crate::world::World;
use serde_json::Value;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const WAYS: [&str; 3] = ["", "-R", "--bidir"];
/// For clients of iperf3.
const TCP: [&str; 13] = [
    "", "-P 3", "-O 1", "-M 1000", "-w 200K", "-C reno", "--fq-rate 200M", "-N", "-Z", "-l 8K", "--get-server-output",
    "-n 2M", "-k 40",
];
const UDP: [&str; 7] = ["", "-P 3", "-O 1", "--udp-counters-64bit", "-l 1000", "-w 200K", "--get-server-output"];
/// For narrows as the client.
const OWN_TCP: [&str; 10] = ["", "-P 3", "-O 1", "-M 1000", "-w 200k", "-C reno", "-N", "-Z", "-l 8k", "-n 2M"];
const OWN_UDP: [&str; 5] = ["", "-P 3", "-O 1", "--size 600", "-w 200k"];
/// Tests at the same time.
const AT_ONCE: usize = 6;

/// All combinations with these beginnings, or a few of them.
fn combinations(sets: &[(&str, &[&str])]) -> Vec<String> {
    let of = |(begin, options): &(&str, &[&str])| -> Vec<String> {
        let each = options.iter().flat_map(|option| WAYS.map(|way| format!("{begin} {option} {way}")));
        each.map(|words| words.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    let all = sets.iter().flat_map(of);
    if is_whole() { all.collect() } else { all.skip(1).step_by(10).collect() }
}

fn is_whole() -> bool {
    std::env::var("NARROWS_IPERF3").is_ok_and(|word| word == "all")
}

/// What two ends counted agrees.
fn agree(sent: u64, received: u64, exactly: bool) -> Result<(), String> {
    let apart = sent.abs_diff(received);
    let is_good = received > 0 && if exactly { apart == 0 } else { apart * 50 <= sent };
    if is_good { Ok(()) } else { Err(format!("{sent} bytes sent, {received} received")) }
}

/// Tries all, some at once, and prints a line each. A busy machine may disturb one: it is tried twice.
fn each(what: &str, all: &[String], at_once: usize, test: impl Fn(usize, &str) -> Result<String, String> + Sync) {
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for worker in 0..at_once {
            let (next, failed, test) = (&next, &failed, &test);
            scope.spawn(move || {
                while let Some(words) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match test(worker, words).or_else(|_| test(worker, words)) {
                        Ok(line) => println!("{what:6} {words:40} {line}"),
                        Err(why) => {
                            println!("{what:6} {words:40} FAILED: {why}");
                            failed.lock().expect("a list").push(format!("{words}: {why}"));
                        }
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("a list");
    println!("{what}: {} of {} combinations agree", all.len() - failed.len(), all.len());
    assert_eq!(failed, Vec::<String>::new());
}

/// The bytes of each direction in the result of iperf3.
fn of_client(result: &Value, words: &str) -> Result<String, String> {
    if result["error"] != Value::Null {
        return Err(result["error"].to_string());
    }
    let bytes = |key: &str| result["end"][key]["bytes"].as_u64().ok_or_else(|| format!("no {key}"));
    let counted = words.contains("-n ") || words.contains("-k ");
    let mut line = String::new();
    let suffixes: &[&str] = if words.contains("--bidir") { &["", "_bidir_reverse"] } else { &[""] };
    for suffix in suffixes {
        let (sent, received) = (bytes(&format!("sum_sent{suffix}"))?, bytes(&format!("sum_received{suffix}"))?);
        line += &format!("{sent} / {received}  ");
        let is_up = suffix.is_empty() && !words.contains("-R");
        // What comes down goes on until the client ends the test.
        if is_up || !counted {
            agree(sent, received, counted)?;
        }
    }
    Ok(line)
}

#[test]
fn clients_agree_with_the_server() {
    with_iperf3("the table of options for the server", |world| {
        let (_server, port) = serve(world);
        let all = combinations(&[("-t 2 -b 50M", &TCP), ("-u -t 2 -b 8M", &UDP)]);
        // Bytes or time end a test of iperf3, not both.
        let test = |_: usize, words: &str| {
            let counted = words.contains("-n ") || words.contains("-k ");
            let words = if counted { words.replace("-t 2 ", "") } else { words.to_owned() };
            of_client(&result(client(&port, &words)), &words)
        };
        each("server", &all, AT_ONCE, test);
    });
}

#[test]
fn thirty_two_clients_at_once() {
    with_iperf3("32 clients of iperf3 at once", |world| {
        let (_server, port) = serve(world);
        let count = if is_whole() { 32 } else { 8 };
        // From 3.16 on it counts a block once it has all of it: small ones, or the last of a slow test is missing.
        const WORDS: [&str; 4] =
            ["-t 2 -b 4M -l 8k", "-t 2 -b 4M -l 8k -R", "-u -t 2 -b 2M", "-t 2 -b 4M -l 8k --bidir -P 2"];
        let words = |n: usize| WORDS[n % WORDS.len()];
        let clients: Vec<_> = (0..count).map(|n| (words(n), client(&port, words(n)))).collect();
        for (words, child) in clients {
            let result = result(child);
            of_client(&result, words).unwrap_or_else(|why| panic!("{words}: {why}: {result}"));
        }
        println!("server: {count} clients at once");
    });
}

/// The bytes of each direction in narrows's report.
fn of_report(world: &World, words: &str) -> Result<String, String> {
    let said = world.run(&words.split_whitespace().collect::<Vec<_>>());
    let report: Value = serde_json::from_str(&said.out).map_err(|_| said.err.clone())?;
    if said.code != Some(0) {
        return Err(said.err);
    }
    let mut line = String::new();
    for flow in report["summary"]["flows"].as_array().ok_or("no flows")? {
        let (is_udp, is_up) = (words.contains(" udp "), flow["total"]["flow"] == "up" || flow["flow"] == "up");
        let bytes = |path: &str| flow.pointer(path).and_then(Value::as_u64).ok_or_else(|| format!("no {path}: {flow}"));
        let received = bytes(if is_udp { "/total/received/bytes" } else { "/total/bytes" })?;
        let sent = bytes("/total/sent/bytes")?;
        line += &format!("{sent} / {received}  ");
        let counted = words.contains("-n ");
        if is_up || !counted {
            agree(sent, received, counted)?;
        }
    }
    Ok(line)
}

#[test]
fn servers_agree_with_the_client() {
    with_iperf3("the table of options for the client", |world| {
        let at_once = if is_whole() { AT_ONCE } else { 3 };
        let servers: Vec<_> = (0..at_once).map(|n| own_server(&(5201 + n).to_string(), &[])).collect();
        let all = combinations(&[("tcp -b 50M -i 0.5", &OWN_TCP), ("udp -b 8M -t 3", &OWN_UDP)]);
        let test = |worker: usize, words: &str| {
            let (kind, rest) = words.split_once(' ').expect("a kind");
            let time = if rest.contains("-n ") || rest.contains("-t ") { "" } else { "-t 3" };
            let port = 5201 + worker;
            let words =
                format!("measure {kind} iperf3://127.0.0.1:{port} {rest} {time} --format json --no-save --no-collect");
            of_report(world, &words)
        };
        each("client", &all, servers.len(), test);
    });
}
