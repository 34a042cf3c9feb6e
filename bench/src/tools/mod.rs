//! The programs that are compared: one file each, one line in [`available`].

mod client;
mod iperf;
mod iperf3;
mod narrows;
mod nuttcp;
mod server;
mod xfr;

pub(crate) use server::Server;

use crate::args::{Args, Part};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One contender.
pub(crate) struct Tool {
    /// As the table names it.
    pub(crate) name: &'static str,
    /// What it says when it is asked for its version.
    pub(crate) version: String,
    /// Whether it is narrows in some setting, and not a peer.
    pub(crate) own: bool,
    program: PathBuf,
    serving: Serving,
    /// How it measures TCP, where this bench asks it.
    pub(crate) tcp: Option<Tcp>,
    /// How it measures UDP, where this bench asks it.
    pub(crate) udp: Option<Udp>,
}

/// The serving end of a tool.
struct Serving {
    /// Its words; `None`: another contender's server serves this one too.
    words: Option<Vec<String>>,
    /// Where the client turns to first.
    port: u16,
    /// The protocol of that port.
    listens: Listens,
    /// Whether it serves one measurement and is then started anew.
    once: bool,
}

/// What a server waits for its clients with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Listens {
    Tcp,
    Udp,
}

/// TCP: the client's words, and what its JSON says was moved.
pub(crate) struct Tcp {
    ask: fn(port: u16, streams: u32, seconds: u32) -> Vec<String>,
    read: fn(&Value) -> Option<Moved>,
}

/// What one TCP measurement moved.
#[derive(Debug, PartialEq)]
pub(crate) struct Moved {
    /// Payload bytes that the receiving end took.
    pub(crate) bytes: f64,
    /// As the tool says it, by the receiving end.
    pub(crate) goodput_bps: f64,
}

/// UDP: the client's words, and what its output says.
pub(crate) struct Udp {
    ask: fn(port: u16, load: &Load) -> Vec<String>,
    read: fn(said: &str, load: &Load) -> Option<Heard>,
}

/// A UDP load, the same for all tools.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Load {
    /// Bits of UDP payload a second.
    pub(crate) bps: u64,
    /// UDP payload of a datagram.
    pub(crate) bytes: u32,
    /// How long.
    pub(crate) seconds: u32,
}

impl Load {
    /// Bits of payload in a datagram.
    pub(crate) fn datagram_bits(&self) -> f64 {
        f64::from(self.bytes) * 8.0
    }
}

/// What a tool itself says about one UDP measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Heard {
    /// Datagrams that arrived.
    pub(crate) received: f64,
    /// Datagrams that the tool calls lost.
    pub(crate) lost: f64,
    /// The time in which they arrived.
    pub(crate) seconds: f64,
    /// The rate at which the tool says that it sent, bits of payload a second; `None` where it does not say.
    pub(crate) sent_bps: Option<f64>,
    /// What the tool says about its departures; `None` where it does not.
    pub(crate) departures: Option<Said>,
}

/// A sender's own word on its departures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Said {
    pub(crate) gap_p50_ns: f64,
    pub(crate) gap_p99_ns: f64,
    /// The most datagrams that left back to back.
    pub(crate) burst: f64,
}

impl Heard {
    /// Datagrams received a second.
    pub(crate) fn pps(&self) -> f64 {
        self.received / self.seconds
    }
}

/// The contenders that can run here, and a sentence for each that cannot. Those of frames are found by that part itself.
pub(crate) fn available(args: &Args) -> (Vec<Tool>, Vec<String>) {
    let mut all = vec![
        (narrows::plain(&args.narrows), "build it with `make build`, or name it with --narrows"),
        (narrows::sampling(&args.narrows), ""),
        (narrows::bare(&args.narrows), ""),
    ];
    if args.part != Part::Frames {
        all.extend([
            (iperf3::tool(&args.iperf3), "install it (Debian: apt-get install iperf3), or name it with --iperf3"),
            (iperf::tool(&args.iperf), "install it (Debian: apt-get install iperf), or name it with --iperf"),
            (nuttcp::tool(&args.nuttcp), "install it (Debian: apt-get install nuttcp), or name it with --nuttcp"),
            (xfr::tool(&args.xfr), "install it (cargo install xfr), or name it with --xfr"),
        ]);
    }
    let (mut tools, mut missing) = (Vec::new(), Vec::new());
    for (found, hint) in all {
        match found {
            Ok(tool) => tools.push(tool),
            Err(program) if !hint.is_empty() => missing.push(format!("cannot run {}: {hint}", program.display())),
            Err(_) => {}
        }
    }
    (tools, missing)
}

/// The first line that `PROGRAM FLAG` says, or the program that cannot be run.
pub(crate) fn version(program: &Path, flag: &str) -> Result<String, PathBuf> {
    let output = Command::new(program).arg(flag).output().map_err(|_| program.to_owned())?;
    let said = [output.stdout, output.stderr].concat();
    Ok(String::from_utf8_lossy(&said).lines().next().unwrap_or_default().trim().to_owned())
}

/// Words as a command line has them.
pub(crate) fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}
