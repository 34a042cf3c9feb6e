//! What a contender is: its program, its server, and how it measures.

use crate::network::Listens;
use clap::ValueEnum;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) version: String,
    /// Whether it is narrows in some setting, and not a peer.
    pub(crate) own: bool,
    pub(super) program: PathBuf,
    pub(super) serving: Serving,
    /// Its TCP measurement, if the bench uses it.
    pub(crate) tcp: Option<Tcp>,
    /// Its UDP measurement, if the bench uses it.
    pub(crate) udp: Option<Udp>,
}

pub(super) struct Serving {
    /// Its arguments; `None`: it uses another contender's server.
    pub(super) words: Option<Vec<String>>,
    /// The port that the client connects to first.
    pub(super) port: u16,
    pub(super) listens: Listens,
    /// Whether it serves one measurement and must then be restarted.
    pub(super) once: bool,
}

/// TCP: the client's arguments, and how to read its JSON.
pub(crate) struct Tcp {
    /// `None`: it has no such load.
    pub(super) ask: fn(port: u16, work: &Work) -> Option<Vec<String>>,
    pub(super) read: fn(&Value) -> Option<TcpReport>,
}

/// What the ends of a TCP load do with each byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// What each tool does unless it is told otherwise
    Usual,
    /// Both ends copy
    Copying,
    /// Neither end copies
    Uncopied,
}

/// Which way its data goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Way {
    Up,
    Down,
    Both,
}

impl Way {
    /// The words of narrows and of iperf3.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Up => "",
            Self::Down => "-R",
            Self::Both => "--bidir",
        }
    }
}

/// A TCP load, the same for all tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) streams: u32,
    pub(crate) mode: Mode,
    pub(crate) way: Way,
    pub(crate) seconds: u32,
}

#[derive(Debug, PartialEq)]
pub(crate) struct TcpReport {
    /// Payload bytes received.
    pub(crate) bytes: f64,
    /// As the tool reports it for the receiving end.
    pub(crate) goodput_bps: f64,
}

/// UDP: the client's arguments, and how to read its output.
pub(crate) struct Udp {
    pub(super) ask: fn(port: u16, load: &Load) -> Vec<String>,
    pub(super) read: fn(said: &str, load: &Load) -> Option<UdpReport>,
}

/// A UDP load, the same for all tools.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Load {
    /// Bits of UDP payload per second.
    pub(crate) bps: u64,
    /// UDP payload of a datagram.
    pub(crate) bytes: u32,
    pub(crate) seconds: u32,
}

impl Tool {
    /// A peer as packaged, with its own server; or the program that cannot be run.
    pub(super) fn peer(
        name: &'static str,
        program: &Path,
        flag: &str,
        serve: &str,
        port: u16,
    ) -> Result<Self, PathBuf> {
        let words = Some(words(&format!("{serve} {port}")));
        let serving = Serving { words, port, listens: Listens::Tcp, once: false };
        let version = version(program, flag)?;
        Ok(Self { name, version, own: false, program: program.to_owned(), serving, tcp: None, udp: None })
    }
}

impl Load {
    pub(crate) fn datagram_bits(&self) -> f64 {
        f64::from(self.bytes) * 8.0
    }
}

/// A tool's own report of one UDP measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct UdpReport {
    pub(crate) received: f64,
    pub(crate) lost: f64,
    /// The time in which they arrived.
    pub(crate) seconds: f64,
    /// The send rate that the tool reports, bits of payload per second; `None` if it does not.
    pub(crate) sent_bps: Option<f64>,
    /// The tool's report on its pacing; `None` if there is none.
    pub(crate) departures: Option<PacingReport>,
}

/// A sender's own report on its pacing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PacingReport {
    pub(crate) gap_p50_ns: f64,
    pub(crate) gap_p99_ns: f64,
    /// The maximum number of datagrams that left back to back.
    pub(crate) burst: f64,
}

impl UdpReport {
    pub(crate) fn pps(&self) -> f64 {
        self.received / self.seconds
    }
}

/// The first line of output of `PROGRAM FLAG`, or the program that cannot be run.
pub(crate) fn version(program: &Path, flag: &str) -> Result<String, PathBuf> {
    let output = Command::new(program).arg(flag).output().map_err(|_| program.to_owned())?;
    let said = [output.stdout, output.stderr].concat();
    Ok(String::from_utf8_lossy(&said).lines().next().unwrap_or_default().trim().to_owned())
}

/// Splits a command line into arguments.
pub(crate) fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}
