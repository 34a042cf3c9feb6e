//! One UDP trial of one tool, with what it cost.

use crate::machine::Machine;
use crate::network::Network;
use crate::tools::{Load, Server, Tool, UdpReport};
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Trial {
    pub(crate) load: Load,
    pub(crate) heard: UdpReport,
    /// Busy CPU seconds of the whole machine, from before the client started until after it ended.
    pub(crate) machine_s: f64,
    /// CPU seconds of the receiving process in the same time.
    pub(crate) receiver_s: Option<f64>,
}

impl Trial {
    /// Runs one trial. The CPU time of a server that is started for it is counted from when it listens.
    pub(crate) fn run(tool: &Tool, server: &Server, network: &Network, load: Load) -> Result<Self, String> {
        let once = Server::start_once(tool, network)?;
        let receiver_s = || once.cpu_seconds().or_else(|| server.cpu_seconds());
        let (machine, receiver) = (Machine::now()?, receiver_s());
        let heard = tool.measure_udp(network, &load)?;
        let machine_s = machine.busy_seconds()?;
        let receiver_s = receiver.and_then(|before| Some(receiver_s()? - before));
        Ok(Self { load, heard, machine_s, receiver_s })
    }

    /// Datagrams received per busy CPU second of the machine.
    pub(crate) fn per_machine_s(&self) -> Option<f64> {
        per(self.heard.received, self.machine_s)
    }

    /// Datagrams received per CPU second of the receiving process.
    pub(crate) fn per_receiver_s(&self) -> Option<f64> {
        per(self.heard.received, self.receiver_s?)
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "asked_bps": self.load.bps, "seconds": self.heard.seconds, "received": self.heard.received,
            "lost": self.heard.lost, "pps": self.heard.pps(), "sent_bps": self.heard.sent_bps,
            "departures": self.heard.departures.map(|said| json!({
                "gap_p50_ns": said.gap_p50_ns, "gap_p99_ns": said.gap_p99_ns, "burst": said.burst,
            })),
            "machine_cpu_s": self.machine_s, "receiver_cpu_s": self.receiver_s,
        })
    }
}

fn per(count: f64, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| count / seconds)
}
