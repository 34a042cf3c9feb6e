//! A tool's client: started on its end, limited in time, its output read to the end.

use super::{Load, TcpReport, Tool, UdpReport, Work};
use crate::network::{End, Network};
use serde_json::Value;
use std::process::{Output, Stdio};

impl Tool {
    /// One TCP measurement, as the client reports it.
    pub(crate) fn measure_tcp(&self, network: &Network, work: &Work) -> Result<TcpReport, String> {
        let tcp = self.tcp.as_ref().ok_or_else(|| format!("{} is not asked for TCP here", self.name))?;
        let words = (tcp.ask)(self.serving.port, work).ok_or_else(|| format!("{} has no such load", self.name))?;
        let output = self.client(network, words, work.seconds)?;
        let json: Value = serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("{} gave no JSON ({error}): {}", self.name, complaint(&output)))?;
        let moved = (tcp.read)(&json).filter(|moved| moved.bytes > 0.0);
        moved.ok_or_else(|| format!("the JSON of {} does not say what it moved: {}", self.name, complaint(&output)))
    }

    /// Whether it has such a TCP load.
    pub(crate) fn has(&self, work: &Work) -> bool {
        self.tcp.as_ref().is_some_and(|tcp| (tcp.ask)(self.serving.port, work).is_some())
    }

    /// One UDP measurement, as the client reports it.
    pub(crate) fn measure_udp(&self, network: &Network, load: &Load) -> Result<UdpReport, String> {
        let udp = self.udp.as_ref().ok_or_else(|| format!("{} is not asked for UDP here", self.name))?;
        let output = self.client(network, (udp.ask)(self.serving.port, load), load.seconds)?;
        let heard = (udp.read)(&String::from_utf8_lossy(&output.stdout), load)
            .filter(|heard| heard.received > 0.0 && heard.seconds > 0.0);
        heard.ok_or_else(|| {
            format!("{} did not say what arrived at {} bit/s: {}", self.name, load.bps, complaint(&output))
        })
    }

    fn client(&self, network: &Network, words: Vec<String>, seconds: u32) -> Result<Output, String> {
        let limit_s = u64::from(seconds) + 10;
        network
            .command(End::Client)
            .args(["timeout", "-k", "1", &limit_s.to_string()])
            .arg(&self.program)
            .args(words)
            .env("DO_NOT_TRACK", "1") // xfr would look for updates
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("cannot start {}: {error}", self.program.display()))
    }
}

/// The beginning of its standard error.
fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).lines().take(3).collect::<Vec<_>>().join(" / ")
}
