//! CPU time that `narrows connections` takes at one reading per second, on a host of the lab with many sockets: connections over
//! loopback between pairs of processes, one of 21 busy. `make connections-bench`.
//!
//! `connections_cost NARROWS [SOCKETS…]`; the number of sockets counts both ends.

#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::panic)] // a measurement that starts processes and fails loudly

use narrows_lab::{Lab, LabSpec};
use narrows_sys::pty::Pty;
use narrows_sys::{clock, files, process};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

const SECONDS: u64 = 20;
/// Connections of a pair of processes: a process may have a limited number of open files.
const OF_ONE_PAIR: usize = 9_000;
const FIRST_PORT: u16 = 7001;
/// One of so many connections carries data, ten times a second.
const BUSY: usize = 21;

fn address(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// Accepts all connections and answers on the busy ones until the other process ends.
fn answer(port: u16, connections: usize) {
    process::raise_open_files().expect("a limit");
    let listener = TcpListener::bind(address(port)).expect("a port");
    println!("ready");
    let mut held: Vec<_> = (0..connections).map(|_| listener.accept().expect("a connection").0).collect();
    println!("all");
    let mut bytes = [0; 1000];
    for turn in 0_usize.. {
        let one = &mut held[turn * BUSY % connections.next_multiple_of(BUSY) % connections];
        if one.read_exact(&mut bytes).and_then(|()| one.write_all(&bytes)).is_err() {
            return;
        }
    }
}

/// Opens all connections and asks on the busy ones in turn.
fn ask(port: u16, connections: usize) {
    process::raise_open_files().expect("a limit");
    let open = |_| TcpStream::connect(address(port)).expect("a connection");
    let mut held: Vec<_> = (0..connections).map(open).collect();
    println!("all");
    let busy = connections.div_ceil(BUSY);
    let mut bytes = [0; 1000];
    for turn in 0_usize.. {
        let one = &mut held[turn * BUSY % connections.next_multiple_of(BUSY) % connections];
        if one.write_all(&bytes).and_then(|()| one.read_exact(&mut bytes)).is_err() {
            return;
        }
        if turn % busy.div_ceil(10) == 0 {
            clock::sleep(Duration::from_millis(10));
        }
    }
}

/// User and system time so far, in clock ticks of 10 ms (proc_pid_stat(5)).
fn ticks(pid: u32) -> [u64; 2] {
    let text = files::read_text(Path::new(&format!("/proc/{pid}/stat"))).expect("a process");
    let words: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    [words[11], words[12]].map(|word| word.parse().expect("ticks"))
}

fn measure(program: &str, sockets: usize) {
    let connections = sockets / 2;
    let lab = Lab::up(&LabSpec { name: "cost".to_owned(), ..LabSpec::default() }).expect("a lab");
    let host = lab.host("client").expect("a host");
    let own = process::own_program().expect("a program").to_string_lossy().into_owned();
    let start = |role: &str, port: u16, count: usize| {
        let words = [role, &port.to_string(), &count.to_string()].map(str::to_owned);
        let mut child = host.command(&own).args(words).stdout(Stdio::piped()).spawn().expect("a process");
        let out = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
        (child, out)
    };
    let wait = |out: &mut std::io::BufReader<_>, word: &str| {
        let mut line = String::new();
        std::io::BufRead::read_line(out, &mut line).expect("a line");
        assert_eq!(line.trim(), word);
    };
    let mut processes = Vec::new();
    for (port, first) in (FIRST_PORT..).zip((0..connections).step_by(OF_ONE_PAIR)) {
        let count = OF_ONE_PAIR.min(connections - first);
        let (server, mut said) = start("--answer", port, count);
        wait(&mut said, "ready");
        let (client, mut told) = start("--ask", port, count);
        wait(&mut told, "all");
        wait(&mut said, "all");
        processes.extend([client, server]);
    }
    for format in ["in a terminal", "text", "ndjson"] {
        let mut command = host.command(program);
        command.args(["connections", "--interval", "1s"]).stdout(Stdio::null());
        let mut terminal = (format == "in a terminal").then(|| Pty::open(120, 40).expect("a terminal"));
        match &terminal {
            Some(terminal) => terminal.apply(command.env("TERM", "xterm")).expect("on the terminal"),
            None => drop(command.args(["--format", format])),
        }
        let mut watching = command.spawn().expect("narrows");
        let mut wait = |time: Duration| {
            let end = clock::now() + time;
            while let Some(left) = end.checked_duration_since(clock::now()) {
                match &mut terminal {
                    Some(terminal) => drop(terminal.read(left).expect("a terminal")),
                    None => clock::sleep(left),
                }
            }
        };
        // The first reading looks for the processes of all sockets.
        wait(Duration::from_millis(2_500));
        let before = ticks(watching.id());
        wait(Duration::from_secs(SECONDS));
        let after = ticks(watching.id());
        let [user, system] = [0, 1].map(|at| (after[at] - before[at]) as f64 / SECONDS as f64);
        println!("{sockets} sockets, {format}: {:.1} % of a core ({user:.1} user, {system:.1} system)", user + system);
        watching.kill().expect("ended");
        watching.wait().expect("ended");
    }
    for child in &mut processes {
        child.kill().expect("ended");
        child.wait().expect("ended");
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let count = |word: &String| word.parse().expect("a number of sockets");
    let number = |word: &str| word.parse::<u16>().expect("a small number");
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--answer", port, connections] => answer(number(port), number(connections).into()),
        ["--ask", port, connections] => ask(number(port), number(connections).into()),
        [program] => [21_000, 50_000].into_iter().for_each(|sockets| measure(program, sockets)),
        [program, ..] => words[1..].iter().for_each(|sockets| measure(program, count(sockets))),
        [] => panic!("usage: connections_cost NARROWS [SOCKETS…]"),
    }
}
