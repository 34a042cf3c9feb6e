//! iperf (2), as packaged, with its defaults.

use super::{Load, Serving, Tool, Udp, UdpReport, words};
use crate::network::{Listens, SERVER};
use std::path::{Path, PathBuf};

/// iperf, or the program that cannot be run. Its server is restarted for each measurement: 2.1.8 crashes with a
/// segmentation fault after some.
pub(super) fn tool(program: &Path) -> Result<Tool, PathBuf> {
    let tool = Tool::peer("iperf", program, "-v", "-s -u -e -p", 5203)?;
    Ok(Tool {
        serving: Serving { listens: Listens::Udp, once: true, ..tool.serving },
        udp: Some(Udp {
            ask: |port, load| {
                words(&format!("-c {SERVER} -p {port} -u -b {} -l {} -t {} -e", load.bps, load.bytes, load.seconds))
            },
            read,
        }),
        ..tool
    })
}

/// The line of the server's report, such as
/// `[  1] 0.0000-2.0001 sec   106 MBytes   444 Mbits/sec   0.000 ms 9660/86288 (11%) …`, and what the client says before it.
fn read(said: &str, load: &Load) -> Option<UdpReport> {
    let (client, report) = said.split_once("Server Report:")?;
    let report = report.lines().find(|line| line.contains(" sec "))?;
    let (lost, total) = report.split_once(" ms ")?.1.split_whitespace().next()?.split_once('/')?;
    let (lost, total): (f64, f64) = (lost.parse().ok()?, total.parse().ok()?);
    let sent = client.lines().rfind(|line| line.contains(" sec ")).and_then(|line| {
        let datagrams: f64 = client.split_once("] Sent ")?.1.split_whitespace().next()?.parse().ok()?;
        Some(datagrams * load.datagram_bits() / seconds(line)?)
    });
    Some(UdpReport { received: total - lost, lost, seconds: seconds(report)?, sent_bps: sent, departures: None })
}

/// The length of the interval of a line: the word before `sec`, such as `0.0000-2.0001`.
fn seconds(line: &str) -> Option<f64> {
    let (from, to) = line.split_once(" sec ")?.0.split_whitespace().next_back()?.split_once('-')?;
    Some(to.parse::<f64>().ok()? - from.parse::<f64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_report_counts() {
        let said = "[ ID] Interval            Transfer     Bandwidth      Write/Err  PPS\n\
            [  1] 0.0000-2.0000 sec   119 MBytes   500 Mbits/sec  86287/0    43140 pps\n\
            [  1] Sent 86000 datagrams\n\
            [  1] Server Report:\n\
            [ ID] Interval            Transfer     Bandwidth        Jitter   Lost/Total  Latency avg/min/max/stdev PPS\n\
            [  1] 0.0000-2.0001 sec   106 MBytes   444 Mbits/sec   0.000 ms 9660/86288 (11%) 0.002/0.001/0.842/0.005 ms\n";
        let load = Load { bps: 500_000_000, bytes: 1000, seconds: 2 };
        let heard =
            UdpReport { received: 76_628.0, lost: 9660.0, seconds: 2.0001, sent_bps: Some(344e6), departures: None };
        assert_eq!(read(said, &load), Some(heard));
        assert_eq!(read("WARNING: did not receive ack of last datagram", &load), None);
    }
}
