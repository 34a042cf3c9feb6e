//! iperf3, as packaged, with its defaults.

use super::{Mode, Tcp, TcpReport, Tool, Udp, UdpReport, Work, words};
use crate::network::SERVER;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// iperf3, or the program that cannot be run.
pub(super) fn tool(program: &Path) -> Result<Tool, PathBuf> {
    Ok(Tool {
        tcp: Some(Tcp {
            // It copies unless it is told otherwise.
            ask: |port, Work { streams, mode, way, seconds }| {
                let mode = if *mode == Mode::Uncopied { "-Z --skip-rx-copy" } else { "" };
                let (load, way) = (format!("-P {streams} -t {seconds} {mode}"), way.words());
                Some(words(&format!("-c {SERVER} -p {port} {load} {way} -J")))
            },
            read: read_tcp,
        }),
        udp: Some(Udp {
            ask: |port, load| {
                words(&format!("-c {SERVER} -p {port} -u -b {} -l {} -t {} -J", load.bps, load.bytes, load.seconds))
            },
            read: |said, _| read_udp(&serde_json::from_str(said).ok()?),
        }),
        ..Tool::peer("iperf3", program, "--version", "-s -p", 5201)?
    })
}

fn read_tcp(json: &Value) -> Option<TcpReport> {
    // Of both ways the second one is beside the first.
    let sums = [json.pointer("/end/sum_received"), json.pointer("/end/sum_received_bidir_reverse")];
    let sum = |key: &str| sums.iter().flatten().map(|sum| sum.get(key)?.as_f64()).sum::<Option<f64>>();
    sums[0]?;
    Some(TcpReport { bytes: sum("bytes")?, goodput_bps: sum("bits_per_second")? })
}

fn read_udp(json: &Value) -> Option<UdpReport> {
    let sum = json.pointer("/end/sum_received")?;
    let lost = sum.get("lost_packets")?.as_f64()?;
    Some(UdpReport {
        received: sum.get("packets")?.as_f64()? - lost,
        lost,
        seconds: sum.get("seconds")?.as_f64()?,
        sent_bps: json.pointer("/end/sum_sent/bits_per_second").and_then(Value::as_f64),
        departures: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_receivers_sum_counts() {
        let said = json!({"end": {"sum_sent": {"bytes": 9}, "sum_received": {"bytes": 7, "bits_per_second": 28.0}}});
        assert_eq!(read_tcp(&said), Some(TcpReport { bytes: 7.0, goodput_bps: 28.0 }));
        assert_eq!(read_tcp(&json!({"error": "unable to connect"})), None);
    }

    #[test]
    fn what_was_lost_is_among_the_packets() {
        let said = json!({"end": {
            "sum_sent": {"bits_per_second": 499.0},
            "sum_received": {"packets": 86_310, "lost_packets": 5003, "seconds": 2.0},
        }});
        let heard =
            UdpReport { received: 81_307.0, lost: 5003.0, seconds: 2.0, sent_bps: Some(499.0), departures: None };
        assert_eq!(read_udp(&said), Some(heard));
    }
}
