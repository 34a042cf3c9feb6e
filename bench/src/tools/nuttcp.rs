//! nuttcp, as packaged, with its defaults.

use super::{Load, Tool, Udp, UdpReport, words};
use crate::network::SERVER;
use std::path::{Path, PathBuf};

/// nuttcp, or the program that cannot be run.
pub(super) fn tool(program: &Path) -> Result<Tool, PathBuf> {
    Ok(Tool { udp: Some(Udp { ask, read }), ..Tool::peer("nuttcp", program, "-V", "-S --nofork -P", 5204)? })
}

fn ask(port: u16, load: &Load) -> Vec<String> {
    // A rate without a letter is in kbit/s.
    let kbps = load.bps.div_ceil(1000);
    words(&format!("-u -R{kbps} -l{} -T{} -P {port} -fparse {SERVER}", load.bytes, load.seconds))
}

/// A line such as `megabytes=112.6638 real_seconds=2.00 rate_Mbps=472.5395 … drop=4740 pkt=86326 data_loss=5.49076`.
/// Its seconds are rounded; the rate, which refers to received data, is not.
fn read(said: &str, load: &Load) -> Option<UdpReport> {
    let value = |key: &str| -> Option<f64> {
        said.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('=')?.parse().ok())
    };
    let lost = value("drop")?;
    let received = value("pkt")? - lost;
    Some(UdpReport {
        received,
        lost,
        seconds: received * load.datagram_bits() / (value("rate_Mbps")? * 1e6),
        sent_bps: None,
        departures: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_follow_from_the_rate() {
        let said = "megabytes=100.0000 real_seconds=2.00 rate_Mbps=400.0000 tx_cpu=97 rx_cpu=36 drop=10 pkt=100010 data_loss=0.01\n";
        let load = Load { bps: 500_000_000, bytes: 1000, seconds: 2 };
        let heard = UdpReport { received: 100_000.0, lost: 10.0, seconds: 2.0, sent_bps: None, departures: None };
        assert_eq!(read(said, &load), Some(heard));
        assert_eq!(read("nuttcp-t: Error: connect", &load), None);
    }

    #[test]
    fn the_rate_is_asked_in_kilobits() {
        let asked = ask(5204, &Load { bps: 1_000_000, bytes: 64, seconds: 5 }).join(" ");
        assert!(asked.starts_with("-u -R1000 -l64 -T5 "), "{asked}");
    }
}
