//! `narrows connections` over an emulated path: thirteen connections, each limited by something else, with drawn rates, round trips
//! and sizes, judged by the sender's end alone and by both ends; what a server tells of connections, and that watching sends nothing.
//! `NARROWS_CONNECTIONS_SEEDS=7,8,9` for other draws.

#![allow(clippy::disallowed_methods, clippy::panic, clippy::print_stdout)] // a test that runs programs and fails loudly

use narrows_model::lab::Impairment;
use narrows_model::{Direction, Family, Flow, Place};
use narrows_runner::demo::Stage;
use narrows_runner::emulated::LabSpec;
use narrows_sys::{clock, tcp};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Numbers from a seed (xorshift64*).
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    /// From `low` to `high`, evenly.
    fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }
}

/// Bytes that an application moves at once, and the time from one such moment to the next. `None`: as fast as it can.
type Pace = Option<(u64, Duration)>;

/// What an end of a connection does with its socket.
#[derive(Clone, Copy, Default)]
struct End {
    buffer: Option<u32>,
    pace: Pace,
    control: Option<&'static str>,
}

/// A congestion control that this host has; `bbr` paces, the others do not.
fn control(draw: &mut Draw, of: &[&'static str]) -> Option<&'static str> {
    let known = narrows_sys::sysctl::read("net.ipv4.tcp_available_congestion_control").expect("a list");
    let of: Vec<_> = of.iter().filter(|name| known.split_whitespace().any(|it| it == **name)).collect();
    let last = of.len().checked_sub(1)?;
    Some(of[usize::try_from(draw.within(0, last as u64)).expect("small")])
}

const ANY: [&str; 3] = ["cubic", "reno", "bbr"];

/// A pace of so many bits per second, in steps of so many milliseconds.
fn pace(bps: u64, step_ms: u64) -> Pace {
    Some((bps * step_ms / 8000, Duration::from_millis(step_ms)))
}

/// A connection with both of its applications.
struct Driven {
    name: &'static str,
    truth: &'static str,
    ends: [TcpStream; 2],
    threads: Vec<std::thread::JoinHandle<()>>,
}

/// Moves bytes at a pace until the connection ends.
fn drive(pace: Pace, mut step: impl FnMut(usize) -> std::io::Result<usize>) {
    let mut due = Instant::now();
    loop {
        let mut left = pace.map_or(1 << 16, |(bytes, _)| usize::try_from(bytes).expect("small").max(1));
        while left > 0 {
            match step(left.min(1 << 16)) {
                Ok(0) | Err(_) => return,
                Ok(moved) => left = left.saturating_sub(moved),
            }
        }
        if let Some((_, every)) = pace {
            due = (due + every).max(Instant::now());
            clock::sleep(due - Instant::now());
        }
    }
}

impl Driven {
    fn start(stage: &Stage, name: &'static str, truth: &'static str, sender: Option<End>, receiver: End) -> Self {
        Self::with(stage, name, truth, sender, receiver, |_| ())
    }

    /// `sender`: none sends nothing. `set` is for its socket.
    fn with(
        stage: &Stage,
        name: &'static str,
        truth: &'static str,
        sender: Option<End>,
        receiver: End,
        set: impl Fn(&TcpStream),
    ) -> Self {
        let address = stage.lab.address_of("server", Family::Ipv4).expect("an address");
        let listen = || TcpListener::bind(SocketAddr::new(address, 0)).expect("a port");
        let listener = stage.lab.host("server").expect("a host").run(listen).expect("in it");
        if let Some(bytes) = receiver.buffer {
            tcp::set_receive_buffer(&listener, bytes).expect("a buffer");
        }
        let to = listener.local_addr().expect("an address");
        let out =
            stage.lab.host("client").expect("a host").run(|| TcpStream::connect(to)).expect("in it").expect("open");
        let (into, _) = listener.accept().expect("a connection");
        set(&out);
        if let Some(control) = sender.and_then(|it| it.control) {
            tcp::set_congestion_control(&out, control).expect("a congestion control");
        }
        if let Some(bytes) = sender.and_then(|it| it.buffer) {
            tcp::set_send_buffer(&out, bytes).expect("a buffer");
        }
        let mut threads = Vec::new();
        if let Some(sender) = sender {
            let mut out = out.try_clone().expect("a descriptor");
            let data = vec![7_u8; 1 << 16];
            threads.push(std::thread::spawn(move || drive(sender.pace, |most| out.write(&data[..most]))));
        }
        let mut reader = into.try_clone().expect("a descriptor");
        let mut room = vec![0_u8; 1 << 16];
        threads.push(std::thread::spawn(move || drive(receiver.pace, |most| reader.read(&mut room[..most]))));
        Self { name, truth, ends: [out, into], threads }
    }

    fn port(&self) -> u16 {
        self.ends[0].local_addr().expect("an address").port()
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        for end in &self.ends {
            // The peer may be unreachable; a reset ends both.
            let _ = tcp::abort_on_close(end);
            let _ = end.shutdown(Shutdown::Both);
        }
        for thread in self.threads.drain(..) {
            thread.join().expect("no panic");
        }
    }
}

fn view(stage: &Stage, words: &[&str], token: bool) -> Value {
    let words = [&["connections", "--format", "ndjson", "--full"], words].concat();
    let command = if token { stage.client(&words) } else { stage.on_client(&words) };
    let output = command.expect("a client").output().expect("a process");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    serde_json::from_str(text.lines().last().unwrap_or_default()).expect("JSON")
}

fn find<'a>(view: &'a Value, one: &Driven) -> &'a Value {
    let port = format!(":{}", one.port());
    let all = view["connections"].as_array().expect("a list");
    let local = |it: &&Value| it["local"].as_str().is_some_and(|local| local.ends_with(&port));
    all.iter().find(local).unwrap_or_else(|| panic!("no {}: {view}", one.name))
}

/// Judged connections, and the wrong ones by the sender's end alone and by both.
#[derive(Default)]
struct Score {
    judged: usize,
    wrong: [Vec<String>; 2],
}

impl Score {
    /// Reads both ways at once, over the same time.
    fn judge(&mut self, stage: &Stage, all: &[Driven]) {
        let [one, both] = std::thread::scope(|scope| {
            let once = ["--once", "--interval", "2s"];
            let alone = scope.spawn(move || view(stage, &once, false));
            let both = scope.spawn(move || view(stage, &[&once[..], &["--peer-host", "server"]].concat(), true));
            [alone, both].map(|thread| thread.join().expect("no panic"))
        });
        for connection in all {
            self.judged += 1;
            for (end, (wrong, view)) in self.wrong.iter_mut().zip([&one, &both]).enumerate() {
                let found = find(view, connection);
                let (limit, truth) = (found["limit"].as_str().unwrap_or_default(), connection.truth);
                let (name, why, far) = (connection.name, &found["why"], &found["ends"]["far"]["limit"]);
                let control = found["congestion_control"].as_str().unwrap_or_default();
                // A reader that is slow and leaves the window open is a full window to the sender: only the other end sees why.
                let right = limit == truth || (end, truth, limit) == (0, "receiving-application", "receive-window");
                println!("  {} {name}, {control}: {limit} (far: {far}): {why}", if right { "ok   " } else { "WRONG" });
                if !right {
                    wrong.push(format!("{name} is {truth}, not {limit}: {found}"));
                }
            }
        }
    }
}

/// The limits that are of the sockets and the hosts: all at once.
fn of_hosts(stage: &Stage, draw: &mut Draw, rtt_us: u64, score: &mut Score) {
    // Twice as much is taken, half of it for overhead.
    let bytes_in_flight = |bps: u64| u32::try_from(bps / 8 * rtt_us / 1_000_000).expect("small").max(4_096);
    let large = End { buffer: Some(212_992), ..End::default() };
    let rate = |draw: &mut Draw, most: u64| draw.within(1_500_000, most);
    let start = |name, truth, sender, receiver| Driven::start(stage, name, truth, sender, receiver);
    let fast = |draw: &mut Draw| Some(End { control: control(draw, &ANY), ..large });
    let mut all = vec![start("nothing to send", "idle", None, large)];
    let (bps, step) = (rate(draw, 8_000_000), draw.within(5, 200));
    let writer = fast(draw).map(|end| End { pace: pace(bps, step), ..end });
    all.push(start("slow writer", "application", writer, large));
    let small = End { buffer: Some(bytes_in_flight(rate(draw, 15_000_000))), ..End::default() };
    all.push(start("receiver's SO_RCVBUF", "receive-window", fast(draw), small));
    let (bps, step) = (rate(draw, 6_000_000), draw.within(2, 50));
    let reader = End { pace: pace(bps, step), ..End::default() };
    all.push(start("slow reader", "receiving-application", fast(draw), reader));
    let small = bytes_in_flight(rate(draw, 15_000_000));
    let sender = fast(draw).map(|end| End { buffer: Some(small), ..end });
    all.push(start("sender's SO_SNDBUF", "send-buffer", sender, large));
    let cap = rate(draw, 12_000_000) / 8;
    let paced = |socket: &TcpStream| tcp::set_max_pacing(socket, cap).expect("a cap");
    all.push(Driven::with(stage, "SO_MAX_PACING_RATE", "pacing-cap", fast(draw), large, paced));
    // What is set for a host is for the connections that follow and whose buffers grow by themselves.
    let value = (2 * bytes_in_flight(rate(draw, 15_000_000))).to_string();
    stage.lab.fault("tcp-send-buffer", Place::Client, Some(&value), Direction::Both).expect("a fault");
    let sender = fast(draw).map(|end| End { buffer: None, ..end });
    all.push(start("sender's tcp_wmem", "send-buffer", sender, large));
    let value = (2 * bytes_in_flight(rate(draw, 15_000_000))).to_string();
    stage.lab.fault("tcp-receive-window", Place::Server, Some(&value), Direction::Both).expect("a fault");
    all.push(start("receiver's tcp_rmem", "receive-window", fast(draw), End::default()));
    clock::sleep(Duration::from_secs(3));
    score.judge(stage, &all);
    drop(all);
    stage.lab.unfault("all", None).expect("undone");
}

/// Those of the path and of the own interface, one after the other.
fn of_path(stage: &Stage, draw: &mut Draw, base: &Impairment, score: &mut Score) {
    let large = End { buffer: Some(212_992), ..End::default() };
    let bulk = |name, truth, control| {
        Driven::start(stage, name, truth, Some(End { control, ..End::default() }), End::default())
    };
    let settle = |seconds: u64| clock::sleep(Duration::from_secs(seconds));
    let up = |change: Impairment| stage.lab.set(Flow::Up, change).expect("a path");
    up(Impairment { loss: draw.within(5, 20) as f64 / 1000.0, ..base.clone() });
    let one = bulk("random loss", "loss", control(draw, &["cubic", "reno"]));
    settle(3);
    score.judge(stage, &[one]);

    let rate_bps = draw.within(8_000_000, 40_000_000);
    let queue_bytes = rate_bps / 8 * draw.within(30, 120) / 1000;
    up(Impairment { rate_bps, queue_bytes, queue_packets: 0, ..base.clone() });
    let one = bulk("bottleneck of the path", "path", control(draw, &ANY));
    settle(4);
    score.judge(stage, &[one]);
    up(base.clone());

    let rate = draw.within(8_000_000, 40_000_000).to_string();
    stage.lab.fault("local-shaper", Place::Client, Some(&rate), Direction::Both).expect("a fault");
    let one = bulk("own interface's shaper", "local-queue", control(draw, &ANY));
    settle(4);
    score.judge(stage, &[one]);
    stage.lab.unfault("all", None).expect("undone");

    // Grows by one segment in each round trip after the loss is over.
    up(Impairment { loss: 0.03, delay_us: draw.within(30_000, 60_000), ..base.clone() });
    let one = bulk("window after loss", "congestion-window", control(draw, &["reno"]));
    settle(2);
    let clean = Impairment { loss: 0.0, ..stage.lab.impairment(Flow::Up) };
    up(clean);
    settle(2);
    score.judge(stage, &[one]);
    up(base.clone());

    let one = Driven::start(stage, "full segments vanish", "loss", Some(large), End::default());
    settle(1);
    stage.lab.fault("mtu-black-hole", Place::Path, Some("1200"), Direction::Up).expect("a fault");
    settle(3);
    score.judge(stage, &[one]);
    stage.lab.unfault("all", None).expect("undone");
}

#[test]
fn each_limit_is_found_by_the_sender_alone_and_by_both_ends() {
    let seeds = std::env::var("NARROWS_CONNECTIONS_SEEDS").unwrap_or_else(|_| "1".to_owned());
    for seed in seeds.split(',').map(|seed| seed.trim().parse::<u64>().expect("a number")) {
        let mut draw = Draw(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let delay_us = draw.within(6_000, 30_000);
        let way = Impairment { rate_bps: 500_000_000, delay_us, ..Impairment::default() };
        println!("seed {seed}: {} ms", 2 * delay_us / 1000);
        let spec =
            LabSpec { name: "limits".to_owned(), up: way.clone(), down: way.clone(), seed, ..LabSpec::default() };
        let stage = Stage::with_program(&spec, &[], env!("CARGO_BIN_EXE_narrows").into()).expect("a lab");
        let mut score = Score::default();
        of_hosts(&stage, &mut draw, 2 * delay_us, &mut score);
        of_path(&stage, &mut draw, &way, &mut score);
        let [alone, both] = &score.wrong;
        println!("seed {seed}: {} connections; wrong: {} alone, {} both", score.judged, alone.len(), both.len());
        assert!(alone.len() <= 1, "{alone:#?}");
        assert!(both.is_empty(), "{both:#?}");
    }
}

#[test]
fn watching_sends_nothing() {
    let stage = Stage::with_program(&LabSpec::default(), &[], env!("CARGO_BIN_EXE_narrows").into()).expect("a lab");
    let all: Vec<Driven> = (0..20).map(|_| Driven::start(&stage, "idle", "idle", None, End::default())).collect();
    clock::sleep(Duration::from_millis(300));
    let packets = || [Flow::Up, Flow::Down].map(|flow| stage.lab.counters(flow).taken_packets);
    let before = packets();
    let seen = view(&stage, &["--count", "10", "--interval", "100ms"], false);
    assert_eq!(seen["matching"], all.len());
    assert_eq!(packets(), before);
}
