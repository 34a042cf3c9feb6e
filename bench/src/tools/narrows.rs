//! narrows itself, in three settings: as a user runs it, with everything sampled ten times a second, and with nothing sampled; and another
//! build of it.

use super::{Mode, PacingReport, Serving, Tcp, TcpReport, Tool, Udp, UdpReport, Way, Work, words};
use crate::network::SERVER;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The port of the server that all settings use.
const PORT: u16 = 5220;

/// The token of a server, which makes it. Without one a server paces each stream, and admits few.
fn token(port: u16) -> String {
    format!("--token-file target/bench-{port}.token")
}

/// As a user runs it.
pub(super) fn plain(program: &Path) -> Result<Tool, PathBuf> {
    whole(program, "narrows", PORT)
}

/// Another build of it, as both ends.
pub(super) fn other(program: &Path) -> Result<Tool, PathBuf> {
    whole(program, "narrows, other build", PORT + 1)
}

fn whole(program: &Path, name: &'static str, port: u16) -> Result<Tool, PathBuf> {
    let tool = setting(program, name, port, |port, work| Some(ask(port, work, "")))?;
    let serve = words(&format!("serve --port {port} {}", token(port)));
    Ok(Tool {
        serving: Serving { words: Some(serve), ..tool.serving },
        udp: Some(Udp {
            ask: |port, load| {
                words(&format!(
                    "measure udp {SERVER} --port {port} --rate {} --size {} --duration {}s --format json {}",
                    load.bps,
                    load.bytes,
                    load.seconds,
                    token(port)
                ))
            },
            read: |said, _| read_udp(&serde_json::from_str(said).ok()?),
        }),
        ..tool
    })
}

/// All collectors, ten samples a second.
pub(super) fn sampling(program: &Path) -> Result<Tool, PathBuf> {
    setting(program, "narrows, 100 ms", PORT, |port, work| usual(port, work, "--interval 100ms"))
}

/// No collector at all.
pub(super) fn bare(program: &Path) -> Result<Tool, PathBuf> {
    setting(program, "narrows, bare", PORT, |port, work| usual(port, work, "--no-collect"))
}

fn setting(
    program: &Path,
    name: &'static str,
    port: u16,
    ask: fn(u16, &Work) -> Option<Vec<String>>,
) -> Result<Tool, PathBuf> {
    let tool = Tool::peer(name, program, "--version", "", port)?;
    let serving = Serving { words: None, ..tool.serving };
    Ok(Tool { own: true, serving, tcp: Some(Tcp { ask, read: read_tcp }), ..tool })
}

fn ask(port: u16, Work { streams, mode, way, seconds }: &Work, more: &str) -> Vec<String> {
    let mode = match mode {
        Mode::Usual => "",
        Mode::Copying => "--zero-copy off --receive copy",
        Mode::Uncopied => "--zero-copy on",
    };
    let (load, way) = (format!("--streams {streams} --duration {seconds}s {mode}"), way.words());
    words(&format!("measure tcp {SERVER} --port {port} {} {load} {way} --format json {more}", token(port)))
}

/// What sampling costs is measured once.
fn usual(port: u16, work: &Work, more: &str) -> Option<Vec<String>> {
    (work.mode == Mode::Usual && work.way == Way::Up).then(|| ask(port, work, more))
}

fn read_tcp(json: &Value) -> Option<TcpReport> {
    let flows = json.pointer("/summary/flows")?.as_array()?;
    let sum = |key: &str| flows.iter().map(|flow| flow.get("total")?.get(key)?.as_f64()).sum::<Option<f64>>();
    Some(TcpReport { bytes: sum("bytes")?, goodput_bps: sum("goodput_bps")? })
}

fn read_udp(json: &Value) -> Option<UdpReport> {
    let total = json.pointer("/summary/flows/0/total")?;
    let number = |path: &str| total.pointer(path).and_then(Value::as_f64);
    let received = number("/received/datagrams")?;
    Some(UdpReport {
        received,
        lost: number("/received/lost")?,
        seconds: received / number("/received/pps")?,
        sent_bps: number("/sent/bps"),
        departures: departures(&number),
    })
}

fn departures(number: &impl Fn(&str) -> Option<f64>) -> Option<PacingReport> {
    Some(PacingReport {
        gap_p50_ns: number("/sent/gaps_ns/p50")?,
        gap_p99_ns: number("/sent/gaps_ns/p99")?,
        burst: number("/sent/burst_max")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_summary_of_the_one_flow_counts() {
        let said = json!({"summary": {"flows": [{"total": {"bytes": 1000, "goodput_bps": 8000.0}}]}});
        assert_eq!(read_tcp(&said), Some(TcpReport { bytes: 1000.0, goodput_bps: 8000.0 }));
    }

    #[test]
    fn datagrams_are_those_of_the_receiver() {
        let sent = json!({"bps": 1e6, "gaps_ns": {"p50": 10, "p99": 20}, "burst_max": 3});
        let total = json!({"sent": sent, "received": {"datagrams": 500, "lost": 1, "pps": 250.0}});
        let said = json!({"summary": {"flows": [{"total": total}]}});
        let heard = UdpReport {
            received: 500.0,
            lost: 1.0,
            seconds: 2.0,
            sent_bps: Some(1e6),
            departures: Some(PacingReport { gap_p50_ns: 10.0, gap_p99_ns: 20.0, burst: 3.0 }),
        };
        assert_eq!(read_udp(&said), Some(heard));
    }
}
