//! The programs that are compared: one file each, one line in [`available`].

mod iperf3;
mod narrows;
mod xfr;

use crate::args::Args;
use crate::figures::Figure;
use crate::machine::busy_seconds;
use crate::network::{End, Network};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// What one run of a client moved.
#[derive(Debug, PartialEq)]
pub(crate) struct Moved {
    /// Payload bytes that the receiving end took.
    pub(crate) bytes: f64,
    /// As the tool says it, by the receiving end.
    pub(crate) goodput_bps: f64,
}

/// One contender.
pub(crate) struct Tool {
    /// As the table names it.
    pub(crate) name: &'static str,
    /// The first line of `--version`.
    pub(crate) version: String,
    /// Whether it is narrows in some setting, and not a peer.
    pub(crate) own: bool,
    program: PathBuf,
    port: u16,
    /// What the serving end is started with; `None`: another contender's server serves this one too.
    serve: Option<Vec<String>>,
    /// The client's words.
    ask: fn(port: u16, streams: u32, seconds: u32) -> Vec<String>,
    /// What the client's JSON says was moved.
    read: fn(&Value) -> Option<Moved>,
}

/// The contenders that can run here, and a sentence for each that cannot.
pub(crate) fn available(args: &Args) -> (Vec<Tool>, Vec<String>) {
    let (mut tools, mut missing) = (Vec::new(), Vec::new());
    for (found, hint) in [
        (narrows::plain(&args.narrows), "build it with `make build`, or name it with --narrows"),
        (narrows::sampling(&args.narrows), ""),
        (narrows::bare(&args.narrows), ""),
        (iperf3::tool(&args.iperf3), "install it (Debian: apt-get install iperf3), or name it with --iperf3"),
        (xfr::tool(&args.xfr), "install it (cargo install xfr), or name it with --xfr"),
    ] {
        match found {
            Ok(tool) => tools.push(tool),
            Err(program) if !hint.is_empty() => missing.push(format!("cannot run {}: {hint}", program.display())),
            Err(_) => {}
        }
    }
    (tools, missing)
}

/// The first line of `PROGRAM --version`, or the program that cannot be run.
fn version(program: &Path) -> Result<String, PathBuf> {
    let output = Command::new(program).arg("--version").output().map_err(|_| program.to_owned())?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().trim().to_owned())
}

/// Words as a command line has them.
fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// The running serving end of a tool; it ends when this is dropped, or when this program ends.
pub(crate) struct Server(Option<Child>);

impl Server {
    /// Starts it and waits until it listens.
    pub(crate) fn start(tool: &Tool, network: &Network) -> Result<Self, String> {
        let Some(serve) = &tool.serve else { return Ok(Self(None)) };
        // The shell ends the server when its own input closes: also when this program is killed.
        let child = network
            .command(End::Server)
            .args(["sh", "-c", "trap : INT TERM; \"$@\" & cat >/dev/null; kill $!; wait", "sh"])
            .arg(&tool.program)
            .args(serve)
            .env("DO_NOT_TRACK", "1") // xfr would look for updates
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", tool.program.display()))?;
        let server = Self(Some(child));
        network.await_listener(End::Server, tool.port).map_err(|why| format!("the server of {}: {why}", tool.name))?;
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}

impl Tool {
    /// One measurement, with the CPU time of the whole machine from before the client starts until after it ended.
    pub(crate) fn measure(&self, network: &Network, streams: u32, seconds: u32) -> Result<Figure, String> {
        let before = busy_seconds()?;
        let output = network
            .command(End::Client)
            .arg(&self.program)
            .args((self.ask)(self.port, streams, seconds))
            .env("DO_NOT_TRACK", "1")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("cannot start {}: {error}", self.program.display()))?;
        let cpu_s = busy_seconds()? - before;
        let said = || String::from_utf8_lossy(&output.stderr).lines().take(3).collect::<Vec<_>>().join(" / ");
        let json: Value = serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("{} gave no JSON ({error}): {}", self.name, said()))?;
        let moved = (self.read)(&json).filter(|moved| moved.bytes > 0.0);
        let moved = moved.ok_or_else(|| format!("the JSON of {} does not say what it moved: {}", self.name, said()))?;
        Ok(Figure { goodput_bps: moved.goodput_bps, cpu_s_per_gb: cpu_s / (moved.bytes / 1e9) })
    }
}
