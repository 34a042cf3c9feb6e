//! xfr, with its defaults (zero copy is one of them).

use super::{Mode, Tcp, TcpReport, Tool, Udp, UdpReport, Way, Work, words};
use crate::network::SERVER;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// xfr, or the program that cannot be run.
pub(super) fn tool(program: &Path) -> Result<Tool, PathBuf> {
    Ok(Tool {
        tcp: Some(Tcp {
            ask: |port, Work { streams, mode, way, seconds }| {
                let load = format!("{SERVER} -p {port} -P {streams} -t {seconds}s --json --no-tui --no-update-check");
                (*mode == Mode::Usual && *way == Way::Up).then(|| words(&load))
            },
            read: read_tcp,
        }),
        udp: Some(Udp {
            ask: |port, load| {
                words(&format!(
                    "{SERVER} -p {port} -u -b {} -l {} -t {}s --json --no-tui --no-update-check",
                    load.bps, load.bytes, load.seconds
                ))
            },
            read: |said, load| read_udp(&serde_json::from_str(said).ok()?, load.datagram_bits()),
        }),
        ..Tool::peer("xfr", program, "--version", "serve --no-mdns -p", 5202)?
    })
}

fn seconds(json: &Value) -> Option<f64> {
    Some(json.get("duration_ms")?.as_f64().filter(|ms| *ms > 0.0)? / 1e3)
}

fn read_tcp(json: &Value) -> Option<TcpReport> {
    let bytes = json.get("bytes_total")?.as_f64()?;
    Some(TcpReport { bytes, goodput_bps: bytes * 8.0 / seconds(json)? })
}

fn read_udp(json: &Value, datagram_bits: f64) -> Option<UdpReport> {
    let udp = json.get("udp_stats")?;
    let seconds = seconds(json)?;
    let sent = udp.get("packets_sent").and_then(Value::as_f64);
    Some(UdpReport {
        received: udp.get("packets_received")?.as_f64()?,
        lost: udp.get("lost")?.as_f64()?,
        seconds,
        sent_bps: sent.map(|sent| sent * datagram_bits / seconds),
        departures: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn goodput_is_bytes_over_time() {
        let said = json!({"bytes_total": 1_000_000, "duration_ms": 2000, "throughput_mbps": 4.0});
        assert_eq!(read_tcp(&said), Some(TcpReport { bytes: 1e6, goodput_bps: 4e6 }));
        assert_eq!(read_tcp(&json!({"bytes_total": 1, "duration_ms": 0})), None);
    }

    #[test]
    fn datagrams_are_counted_separately() {
        let stats = json!({"packets_sent": 1000, "packets_received": 990, "lost": 10});
        let said = json!({"duration_ms": 2000, "udp_stats": stats});
        let heard =
            UdpReport { received: 990.0, lost: 10.0, seconds: 2.0, sent_bps: Some(256_000.0), departures: None };
        assert_eq!(read_udp(&said, 512.0), Some(heard));
    }
}
