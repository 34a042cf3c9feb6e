//! A trace: the plan, the probes and their answers as they were seen ([`record`]), and the view of them ([`report`]).

pub mod record;
pub mod report;

use crate::words::place::Family;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Probes that a trace keeps; a longer one forgets the oldest.
pub const MAX_PROBES: usize = 50_000;

/// What the probes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TraceProtocol {
    /// UDP datagrams to a closed port: the target answers *port unreachable*.
    Udp,
    /// TCP connections to a port.
    Tcp,
    /// ICMP echo requests.
    Icmp,
}

impl TraceProtocol {
    /// Its usual spelling.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Udp => "UDP",
            Self::Tcp => "TCP",
            Self::Icmp => "ICMP",
        }
    }

    /// Bytes of headers around the payload: IP, and UDP or ICMP (TCP: without options).
    pub const fn header_bytes(self, family: Family) -> u32 {
        family.header_bytes()
            + match self {
                Self::Udp | Self::Icmp => 8,
                Self::Tcp => 20,
            }
    }
}

/// A trace, within limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TracePlan {
    /// The user's word for the target.
    pub asked: String,
    /// Its address.
    pub target: IpAddr,
    /// What the probes are.
    pub protocol: TraceProtocol,
    /// Destination port; of no meaning for ICMP.
    pub port: u16,
    /// The first TTL, from 1.
    pub first_ttl: u8,
    /// The last TTL.
    pub max_ttl: u8,
    /// Silent hops in a row after which the rest is not probed.
    pub gap: u8,
    /// Probes to each hop, before those that look for other paths and for the MTU.
    pub rounds: u32,
    /// The rounds go on until the trace is stopped.
    pub continuous: bool,
    /// Flows at most (source ports, ICMP identifiers). One flow stays on one path of an equal-cost multipath.
    pub flows: u16,
    /// Time between rounds, milliseconds.
    pub interval_ms: u64,
    /// How long an answer may take, milliseconds.
    pub wait_ms: u64,
    /// Bytes of a probe, IP header included.
    pub probe_bytes: u32,
    /// Source and destination port of each flow, where only the routers of these flows are looked for (UDP); none: any source port, `port`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<[u16; 2]>,
    /// Whether the path MTU is measured.
    pub mtu: bool,
    /// Whether the names of the hops are looked up.
    pub names: bool,
}
