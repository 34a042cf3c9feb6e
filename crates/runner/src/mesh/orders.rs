//! What the conductor of a mesh and a member say to each other: JSON lines over the member's standard streams.

use narrows_model::load::tcp::TcpPlan;
use narrows_model::run::mesh::OneWay;
use narrows_model::{Run, Snapshot};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, Read as _, Write};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// No line is longer: an inventory is a few hundred kilobytes, a diagnosis of one stream about a megabyte.
const LINE_MAX_BYTES: u64 = 32 << 20;

/// The conductor says something at least so often …
pub(super) const BEAT: Duration = Duration::from_secs(5);
/// … and a member that hears nothing for so long ends.
pub(super) const SILENCE: Duration = Duration::from_secs(20);
/// How long a member waits for a connection.
pub(super) const CONNECTS: Duration = Duration::from_secs(2);

/// What a member is to do.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Order {
    /// Nothing: the conductor is there.
    Beat,
    Inventory,
    /// Connect to these with their tokens, and hang up.
    Reach(Vec<(SocketAddr, String)>),
    /// Admit nobody any more who did not come until now.
    Seal,
    Probe(ProbeOrder),
    Load(LoadOrder),
    /// The same load, diagnosed.
    Diagnose(LoadOrder),
}

/// Probes of the paths to other members, all at once.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ProbeOrder {
    /// Where to, and the port of the reflector there if packets are to be sent.
    pub(crate) to: Vec<(IpAddr, Option<u16>)>,
    /// Packets to each, and the time between two of them.
    pub(crate) packets: u32,
    pub(crate) interval_us: u64,
}

/// What they saw of one path.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Probed {
    pub(crate) rtt_us: Option<[f64; 3]>,
    pub(crate) packets: Option<[u64; 3]>,
    pub(crate) one_way: Option<OneWay>,
    pub(crate) mtu_bytes: Option<u32>,
    pub(crate) hops: Vec<String>,
    pub(crate) remarks: Vec<String>,
}

/// A load of another member.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LoadOrder {
    pub(crate) to: SocketAddr,
    /// The other member's token, as revealed.
    pub(crate) token: String,
    pub(crate) plan: TcpPlan,
}

/// What a member answers; one answer to each order but [`Order::Beat`], and the first before any.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    Hello(Hello),
    Inventory(Box<Snapshot>),
    /// Why each could not be reached; `None` where it was.
    Reached(Vec<Option<String>>),
    Sealed,
    Probed(Vec<Probed>),
    Loaded(Loaded),
    Diagnosed(Box<Run>),
    Failed(String),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) version: String,
    pub(super) port: u16,
    pub(super) token: String,
    /// The port of its reflector.
    pub(super) stamp: u16,
    pub(super) process: u32,
    /// The boot of its machine.
    pub(super) boot: String,
    /// Whether another mesh has a member there.
    #[serde(default)]
    pub(super) is_shared: bool,
}

/// What a load carried.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Loaded {
    pub(crate) goodput_bps: f64,
    pub(crate) retransmits: Option<u64>,
    /// Of the sender and of the receiver.
    pub(crate) busy: [Option<f64>; 2],
}

/// Writes a line.
pub(super) fn say(to: &mut impl Write, what: &impl Serialize) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    to.write_all(&line)?;
    to.flush()
}

/// A line without its end; `None` at the end of all.
pub(super) fn line(from: &mut impl BufRead) -> std::io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    from.take(LINE_MAX_BYTES).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.pop() != Some(b'\n') {
        return Err(std::io::Error::other("a line was cut, or is too long"));
    }
    Ok(Some(line))
}

/// What a line says.
pub(super) fn heard<T: DeserializeOwned>(line: &[u8]) -> Result<T, String> {
    serde_json::from_slice(line).map_err(|error| format!("invalid message: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_said_and_no_more_of_it_than_may_be() {
        let mut said = Vec::new();
        say(&mut said, &Order::Reach(vec![("192.0.2.1:5220".parse().unwrap(), String::new())])).unwrap();
        say(&mut said, &Order::Beat).unwrap();
        let mut from = &said[..];
        let first = line(&mut from).unwrap().unwrap();
        assert!(matches!(heard::<Order>(&first), Ok(Order::Reach(all)) if all.len() == 1));
        assert!(matches!(heard::<Order>(&line(&mut from).unwrap().unwrap()), Ok(Order::Beat)));
        assert!(line(&mut from).unwrap().is_none());
        assert!(line(&mut &b"{\"beat"[..]).is_err(), "a line that was cut");
        let endless = std::io::repeat(b'a');
        assert!(line(&mut std::io::BufReader::new(endless)).is_err(), "a line without an end");
        assert!(heard::<Answer>(b"{\"loaded\":{\"goodput_bps\":\"much\"}}").is_err());
    }
}
