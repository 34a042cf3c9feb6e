//! All that strangers can do to a server and its services (iperf3, STAMP, responsiveness), at once, while it measures: idle connections,
//! garbage, TLS without a token, HTTP/2 with a window of zero, single bytes, inventories in a loop. `NARROWS_STORM_S=60`
//! (`make server-check`) for so long, and for the comparison with a calm server. `NARROWS_SOAK_S=7200` (`make soak`): a milder storm beside
//! honest clients of every service, some of which are killed, for so long; each figure of the server is judged by its trend.

#![allow(clippy::disallowed_methods)] // a test that sends datagrams and runs programs

use narrows_model::lab::Impairment;
use narrows_runner::demo::Stage;
use narrows_runner::emulated::LabSpec;
use narrows_runner::remote::any_key;
use narrows_sys::{clock, files, net, process};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const PORT: u16 = 5220;
/// What the server may take for itself in a storm. Twenty storms of 4 s took 39 to 64 MB, depending on how many connections of each kind
/// came to be at once.
const MEMORY_KB: u64 = 100_000;
/// Connections that one source may have before it has shown a token.
const OF_ONE_SOURCE: u64 = 256;

const IPERF3: u16 = 5201;
const RESPONSIVENESS: u16 = 4043;
const STAMP: u16 = 862;
/// What the server of a storm serves besides.
const SERVICES: [&str; 6] = ["--parallel", "4", "--iperf3", "--stamp", "--stamp-any", "--responsiveness"];

/// A connection to the server from inside its host.
fn raw(port: u16) -> Option<TcpStream> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let stream = net::connect(address, Duration::from_secs(1), |_| Ok::<_, narrows_sys::Error>(())).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
    stream.set_write_timeout(Some(Duration::from_secs(1))).ok()?;
    Some(stream)
}

fn tls(port: u16, config: &Arc<ClientConfig>) -> Option<StreamOwned<ClientConnection, TcpStream>> {
    let mut tcp = raw(port)?;
    let mut connection = ClientConnection::new(config.clone(), ServerName::try_from("narrows").ok()?).ok()?;
    connection.complete_io(&mut tcp).ok()?;
    Some(StreamOwned::new(connection, tcp))
}

fn config(protocol: &[u8]) -> Arc<ClientConfig> {
    let mut config = any_key(&[protocol]).expect("TLS");
    config.resumption = rustls::client::Resumption::disabled();
    Arc::new(config)
}

/// A request to open a session, by HTTP/2 with a window of zero: the answer can never be sent (RFC 9113, sections 4.1, 6.5.2; RFC 7541,
/// section 6.2.2: literals without an index).
fn windowless() -> Vec<u8> {
    let frame = |kind: u8, flags: u8, stream: u8, body: &[u8]| {
        let length = u8::try_from(body.len()).expect("short");
        [&[0, 0, length, kind, flags, 0, 0, 0, stream], body].concat()
    };
    let literal = |name: &str, value: &str| {
        let word = |text: &str| [&[u8::try_from(text.len()).expect("short")], text.as_bytes()].concat();
        [vec![0], word(name), word(value)].concat()
    };
    let head = [(":method", "POST"), (":scheme", "https"), (":authority", "x"), (":path", "/v1/sessions")];
    let head = head.map(|(name, value)| literal(name, value)).concat();
    let settings = frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]);
    [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), settings, frame(1, 4, 1, &head), frame(0, 1, 1, b"\n")].concat()
}

/// What is done to the server, how often, and how often it was done.
struct Attack {
    name: &'static str,
    per_second: f64,
    done: AtomicU64,
    /// Connections that it keeps open.
    keeps: usize,
    go: Box<dyn Fn() -> Option<Held> + Sync + Send>,
}

/// What an attack keeps.
enum Held {
    Nothing,
    Plain(#[allow(dead_code)] TcpStream),
    Tls(#[allow(dead_code)] Box<StreamOwned<ClientConnection, TcpStream>>),
}

fn attacks() -> Vec<Attack> {
    let attack = |name, per_second, keeps, go| Attack { name, per_second, done: AtomicU64::new(0), keeps, go };
    let (h1, h2) = (config(b"http/1.1"), config(b"h2"));
    let asking = |config: Arc<ClientConfig>, request: &'static [u8]| {
        Box::new(move || {
            let mut stream = tls(PORT, &config)?;
            stream.write_all(request).ok()?;
            // Whatever it answers is an answer.
            (stream.read(&mut [0; 512]).ok()? <= 512).then_some(Held::Nothing)
        })
    };
    let idle = |port| Box::new(move || raw(port).map(Held::Plain));
    let garbage = |port| {
        Box::new(move || {
            let noise: [u8; 2048] = narrows_sys::random::bytes().ok()?;
            raw(port)?.write_all(&noise).ok()?;
            Some(Held::Nothing)
        })
    };
    let zero = |port, config: Arc<ClientConfig>| {
        Box::new(move || {
            let mut stream = tls(port, &config)?;
            stream.write_all(&windowless()).ok()?;
            Some(Held::Tls(Box::new(stream)))
        })
    };
    vec![
        attack("idle connections", 400.0, 1_000, idle(PORT)),
        attack("idle connections to iperf3", 50.0, 300, idle(IPERF3)),
        attack("idle connections to responsiveness", 50.0, 300, idle(RESPONSIVENESS)),
        attack("garbage", 200.0, 0, garbage(PORT)),
        attack("garbage to iperf3", 50.0, 0, garbage(IPERF3)),
        attack("garbage to responsiveness", 50.0, 0, garbage(RESPONSIVENESS)),
        attack(
            "TLS without a token",
            200.0,
            0,
            asking(h1.clone(), b"GET /v1/hello HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"),
        ),
        attack(
            "inventories without a session",
            50.0,
            0,
            asking(
                h1,
                b"POST /v1/sessions/0/inventory HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}",
            ),
        ),
        attack("HTTP/2 windows of zero", 20.0, 100, zero(PORT, h2.clone())),
        attack("HTTP/2 windows of zero to responsiveness", 20.0, 100, zero(RESPONSIVENESS, h2)),
        attack(
            "iperf3 parameters of 8 KiB",
            20.0,
            50,
            Box::new(|| {
                let mut stream = raw(IPERF3)?;
                // Each is a test of its own.
                let mut cookie = narrows_sys::random::bytes::<37>().ok()?.map(|byte| b'a' + byte % 26);
                cookie[36] = 0;
                stream.write_all(&cookie).ok()?;
                stream.read_exact(&mut [0]).ok()?;
                stream.write_all(&[&8192_u32.to_be_bytes()[..], &[b'['; 8000]].concat()).ok()?;
                Some(Held::Plain(stream))
            }),
        ),
        attack(
            "STAMP requests, replies and garbage",
            500.0,
            0,
            Box::new(|| {
                let noise: [u8; 112] = narrows_sys::random::bytes().ok()?;
                let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
                socket.send_to(&noise[..44 + usize::from(noise[0] % 68)], (Ipv4Addr::LOCALHOST, STAMP)).ok()?;
                Some(Held::Nothing)
            }),
        ),
        attack(
            "single bytes",
            20.0,
            100,
            Box::new(|| {
                let mut stream = raw(PORT)?;
                stream.write_all(&[0x16]).ok()?;
                Some(Held::Plain(stream))
            }),
        ),
    ]
}

/// Attacks until told to stop, at this part of its rate if the server lets it.
fn run(attack: &Attack, part: f64, stop: &AtomicBool) {
    let mut held = std::collections::VecDeque::new();
    let begin = clock::now();
    let mut turn = 0_u32;
    while !stop.load(Ordering::Relaxed) {
        if let Some(kept) = (attack.go)() {
            attack.done.fetch_add(1, Ordering::Relaxed);
            if attack.keeps > 0 {
                held.push_back(kept);
            }
            if held.len() > attack.keeps {
                held.pop_front();
            }
        }
        turn += 1;
        let due = Duration::from_secs_f64(f64::from(turn) / (part * attack.per_second));
        clock::sleep(due.saturating_sub(begin.elapsed()).min(Duration::from_millis(100)));
    }
}

/// The server's processes: itself and its helpers.
fn processes(server: u32) -> Vec<u32> {
    let children = format!("/proc/{server}/task/{server}/children");
    let list = files::read_text(Path::new(&children)).unwrap_or_default();
    [server].into_iter().chain(list.split_whitespace().filter_map(|id| id.parse().ok())).collect()
}

/// Memory of their own in kilobytes, threads and open descriptors of all of them. Pages of the program's file are the same in each
/// process and grow with the code, not with what strangers do.
fn size(server: u32) -> [u64; 3] {
    let status = |pid: &u32, name: &str| -> u64 {
        let text = files::read_text(Path::new(&format!("/proc/{pid}/status"))).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
    };
    let open = |pid: &u32| files::list(Path::new(&format!("/proc/{pid}/fd"))).map_or(0, |names| names.len() as u64);
    let all = processes(server);
    let sum = |name| all.iter().map(|pid| status(pid, name)).sum();
    [sum("RssAnon:"), sum("Threads:"), all.iter().map(open).sum()]
}

/// The report of a client, as JSON.
fn report(stage: &Stage, words: &[&str]) -> Value {
    let words = [words, &["--format", "json", "--no-save", "-q"]].concat();
    let output = stage.client(&words).expect("a client").output().expect("a process");
    assert!(
        output.status.code().is_some_and(|code| code == 0 || code == 3),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Goodput of a TCP load of so long, bit/s.
fn goodput(stage: &Stage, seconds: u64, more: &[&str]) -> f64 {
    let report = report(stage, &[&["measure", "tcp", "server", "-t", &format!("{seconds}s")], more].concat());
    report["summary"]["flows"][0]["total"]["goodput_bps"].as_f64().expect("a goodput")
}

/// The verdict of a diagnosis in a word, and its goodput.
fn verdict(stage: &Stage) -> (String, f64) {
    let verdict = &report(stage, &["diagnose", "server"])["verdict"];
    let id = verdict["causes"][0]["id"].as_str().unwrap_or_default();
    let word = format!("{} {id}", verdict["status"].as_str().expect("a status"));
    (word, verdict["goodput_bps"].as_f64().expect("a goodput"))
}

/// Does the work while all attacks go on at this part of their rates.
fn stormed<T>(stage: &Stage, attacks: &[Attack], part: f64, work: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let host = stage.lab.host("server").expect("a host");
        for attack in attacks {
            scope.spawn(|| host.run(|| run(attack, part, &stop)));
        }
        clock::sleep(Duration::from_secs(1));
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        stop.store(true, Ordering::Relaxed);
        done.unwrap_or_else(|why| std::panic::resume_unwind(why))
    })
}

/// A lab whose path does not limit what two cores can do beside a storm, with a server of all services and an audit log.
fn stage(name: &str, log: &str) -> Stage {
    let way = Impairment { rate_bps: 200_000_000, delay_us: 2_000, ..Impairment::default() };
    let spec = LabSpec { name: name.to_owned(), up: way.clone(), down: way, ..LabSpec::default() };
    let flags = [&SERVICES[..], &["--audit-log", log]].concat();
    Stage::with_program(&spec, &flags, env!("CARGO_BIN_EXE_narrows").into()).expect("a lab")
}

fn seconds_of(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|seconds| seconds.parse().ok())
}

#[test]
fn a_storm_of_strangers_neither_stops_a_test_nor_fills_the_server() {
    let asked = seconds_of("NARROWS_STORM_S");
    let seconds = asked.unwrap_or(4);
    if process::raise_open_files().expect("a limit") < 8192 {
        println!("NOT CHECKED: a storm of connections, since this user may have too few files open");
        return;
    }
    let scratch = tempfile::tempdir().expect("a directory");
    let log = scratch.path().join("audit").to_string_lossy().into_owned();
    let stage = stage("storm", &log);
    let server = stage.server_id().expect("a server");
    let attacks = attacks();
    let (starts, largest) = stormed(&stage, &attacks, 1.0, || {
        std::thread::scope(|scope| {
            let load = scope.spawn(|| goodput(&stage, seconds, &[]));
            let (mut starts, mut largest) = (Vec::new(), [0; 3]);
            while !load.is_finished() {
                let begin = clock::now();
                // One second of its own, at a rate that takes nothing from the other.
                goodput(&stage, 1, &["--pacing-rate", "1M"]);
                starts.push(begin.elapsed().as_secs_f64() - 1.0);
                let now = size(server);
                largest = std::array::from_fn(|at| largest[at].max(now[at]));
                clock::sleep(Duration::from_millis(500));
            }
            load.join().expect("no panic");
            (starts, largest)
        })
    });
    for attack in &attacks {
        let done = attack.done.load(Ordering::Relaxed);
        println!("{done:>7} {} in {} s", attack.name, seconds + 1);
        assert!(done > 0, "no {}", attack.name);
    }
    let [memory, threads, open] = largest;
    let logged = files::read_text(Path::new(&log)).map_or(0, |text| text.len() as u64);
    let log_rate = logged / (seconds + 1);
    println!(
        "memory {} MB (wanted {}), threads {threads}, descriptors {open}, log {log_rate} B/s",
        memory / 1000,
        MEMORY_KB / 1000
    );
    let worst = starts.iter().copied().fold(0.0, f64::max);
    println!("a new test took {worst:.2} s more than its second at most, of {} (wanted 2)", starts.len());
    assert!(memory < MEMORY_KB, "{memory} kB");
    // Both places of a source at each of three ports, what the sessions use, and what each process has.
    assert!(open < 2 * 3 * OF_ONE_SOURCE + 300, "{open} descriptors");
    assert!(logged <= 10_000 * (seconds + 3), "{logged} bytes of log");
    assert_eq!(stage.server_id(), Some(server), "the server lives");
    if asked.is_some() {
        // In pairs, so that a machine that becomes slower meets both.
        for _ in 0..3 {
            let (calm, before) = verdict(&stage);
            let (stormy, beside) = stormed(&stage, &attacks, 1.0, || verdict(&stage));
            let (before, beside) = (before / 1e6, beside / 1e6);
            println!(
                "{stormy}: {beside:.1} of {before:.1} Mbit/s: {:+.2} % (wanted -3)",
                (beside / before - 1.0) * 100.0
            );
            assert_eq!(stormy, calm, "the verdict beside the storm");
        }
    }
}

/// What honest clients do, in turn.
const HONEST: [&[&str]; 7] = [
    &["measure", "tcp", "server", "-t", "3s", "--direction", "both"],
    &["measure", "udp", "server", "-t", "3s", "--rate", "20M"],
    &["measure", "rr", "server", "-t", "2s"],
    &["measure", "crr", "server", "-t", "2s"],
    &["audit", "server"],
    &["trace", "server", "--back"],
    &["diagnose", "server"],
];
/// What clients without a token do: of a service by its own protocol.
const FOREIGN: [&[&str]; 3] = [
    &["measure", "stamp", "server", "-t", "3s"],
    &["measure", "responsiveness", "server", "--insecure", "-t", "5s"],
    &["measure", "tcp", "iperf3://server", "-t", "3s"],
];

/// A figure of the soak over its samples: what it may grow to, if it may grow.
struct Figure {
    name: &'static str,
    /// The most that it may be above its first sample without being called growth.
    slack: f64,
    values: Vec<f64>,
}

#[test]
fn a_server_in_use_for_hours_keeps_its_size_and_its_speed() {
    let Some(seconds) = seconds_of("NARROWS_SOAK_S") else {
        println!("NOT CHECKED: a soak, since it takes hours (`make soak`)");
        return;
    };
    process::raise_open_files().expect("a limit");
    let scratch = tempfile::tempdir().expect("a directory");
    let log = scratch.path().join("audit").to_string_lossy().into_owned();
    let stage = stage("soak", &log);
    let server = stage.server_id().expect("a server");
    let attacks = attacks();
    let figure = |name, slack| Figure { name, slack, values: Vec::new() };
    let mut figures = [
        figure("memory, MB", 8.0),
        figure("threads", 8.0),
        figure("descriptors", 64.0),
        figure("disk of the server without its log, kB", 256.0),
        figure("goodput of a reference load, Mbit/s", f64::INFINITY),
    ];
    // Twelve samples an hour at least, and enough for a trend of a short soak.
    let period = Duration::from_secs((seconds / 12).clamp(20, 600));
    let begin = clock::now();
    let mut turn = 0;
    while begin.elapsed().as_secs() < seconds {
        let sampled = clock::now();
        let failures = stormed(&stage, &attacks, 0.02, || {
            let mut failures = Vec::new();
            while sampled.elapsed() < period.mul_f64(0.8) {
                turn += 1;
                let words = HONEST[turn % HONEST.len()];
                let mut one = stage.client(words).expect("a client");
                let mut other = stage.on_client(FOREIGN[turn % FOREIGN.len()]).expect("a client");
                let quiet = |command: &mut std::process::Command| {
                    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn()
                };
                let (mut one, mut other) = (quiet(&mut one).expect("a client"), quiet(&mut other).expect("a client"));
                // Every fifth is killed in the middle.
                if turn % 5 == 0 {
                    clock::sleep(Duration::from_millis(200 + 37 * (turn as u64 % 50)));
                    let _ = (one.kill(), other.kill());
                }
                let (one, other) = (one.wait().expect("waited for"), other.wait().expect("waited for"));
                if turn % 5 != 0 && !one.code().is_some_and(|code| code == 0 || code == 3) {
                    failures.push(words.join(" "));
                }
                if turn % 5 != 0 && !other.success() {
                    failures.push(FOREIGN[turn % FOREIGN.len()].join(" "));
                }
                if turn % 7 == 0 && std::env::var_os("NARROWS_SOAK_CLOCK").is_some() {
                    jump();
                }
            }
            failures
        });
        // What the storm held ends within the times of docs/security.md.
        clock::sleep(Duration::from_secs(12));
        let [memory, threads, open] = size(server);
        let disk = disk(&stage.scratch.join("server"));
        let speed = goodput(&stage, 5, &[]) / 1e6;
        let now = [memory as f64 / 1e3, threads as f64, open as f64, disk as f64 / 1e3, speed];
        print!("{:>6} s", begin.elapsed().as_secs());
        for (figure, value) in figures.iter_mut().zip(now) {
            figure.values.push(value);
            print!("  {} {value:.1}", figure.name);
        }
        println!("  {} clients, {} failed {failures:?}", 2 * turn, failures.len());
        assert_eq!(stage.server_id(), Some(server), "the server lives");
        assert!(failures.is_empty(), "honest clients failed");
    }
    for figure in &figures {
        // The first sample is of a server that has not seen everything yet.
        let values = &figure.values[1.min(figure.values.len() - 1)..];
        let points: Vec<(f64, f64)> = values.iter().enumerate().map(|(at, value)| (at as f64, *value)).collect();
        let options = narrows_stats::change_points::Options { change_min: 0.03, ..Default::default() };
        let (changes, trend) = (narrows_stats::change_points(values, &[], options), narrows_stats::trend(&points));
        println!("{}: {trend:?}, changes {changes:?}", figure.name);
        let drift = trend.map_or(0.0, |trend| trend.slope.interval[0] * points.len() as f64);
        let step = changes.iter().map(|change| change.after - change.before).fold(0.0, f64::max);
        assert!(drift.max(step) <= figure.slack, "{} grew: {values:?}", figure.name);
        assert!(figure.slack.is_finite() || changes.is_empty(), "{} changed: {values:?}", figure.name);
    }
}

/// Bytes of the files below a directory.
fn disk(directory: &Path) -> u64 {
    let names = files::list(directory).unwrap_or_default();
    names
        .iter()
        .map(|name| directory.join(name))
        .map(|path| std::fs::metadata(&path).map_or_else(|_| 0, |it| if it.is_dir() { disk(&path) } else { it.len() }))
        .sum()
}

/// Sets the clock of the machine forth by 40 s for a second, and back.
fn jump() {
    for offset in [40.0, -40.0] {
        let unix = clock::unix_us() as f64 / 1e6 + offset;
        let _ = std::process::Command::new("date").args(["-u", "-s", &format!("@{unix:.6}")]).output();
        clock::sleep(Duration::from_secs(1));
    }
}
