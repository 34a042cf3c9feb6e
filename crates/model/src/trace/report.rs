//! The view of a trace: the hops, the path MTU, the paths, and what was found.

use super::record::MplsLabel;
use super::{TracePlan, TraceProtocol};
use crate::Ending;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One address that answered at one hop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceNode {
    /// Its address.
    pub address: String,
    /// Its name by reverse lookup.
    pub name: Option<String>,
    /// Flows that it answered.
    pub flows: Vec<u16>,
    /// Probes that it answered.
    pub answered: u32,
    /// Least, median and worst RTT, milliseconds.
    pub rtt_ms: Option<[f64; 3]>,
    /// The TTL of its newest answer.
    pub reply_ttl: Option<u8>,
    /// Hops of the reverse path: the nearest usual initial TTL (64, 128 or 255) less the TTL of the answer, and one.
    pub return_hops: Option<u8>,
    /// MPLS label stack of the probe when it came there.
    pub mpls: Vec<MplsLabel>,
    /// Marks of traceroute(8): `!A`, `!H`, `!N`, `!P`.
    pub marks: Vec<String>,
}

/// One hop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceHop {
    /// The TTL of the probes.
    pub ttl: u8,
    /// Who answered, most answers first; empty: silence.
    pub nodes: Vec<TraceNode>,
    /// Probes sent.
    pub sent: u32,
    /// Probes that were answered.
    pub answered: u32,
    /// Share of probes without an answer; `None`: none was sent.
    pub loss: Option<f64>,
    /// Later hops lose less, by more than chance (p < 0.01): the hop limits its ICMP answers and forwards the packets.
    pub limits_answers: bool,
    /// The largest IP packet that came to this hop, bytes.
    pub pmtu_bytes: Option<u32>,
    /// Flows that were tried here.
    pub flows: u16,
    /// The number of nodes is complete with 95 % confidence (MDA stopping rule).
    pub complete: bool,
}

/// A place where the path MTU shrinks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MtuStep {
    /// The hop in front of the link; 0 is this host.
    pub after_hop: u8,
    /// The first hop behind it that was seen.
    pub before_hop: u8,
    /// The address of the hop in front of the link.
    pub address: Option<String>,
    /// The largest IP packet that passes the link, bytes.
    pub mtu_bytes: u32,
    /// Whether ICMP reports it; otherwise larger packets vanish: a black hole.
    pub reported: bool,
}

/// The path MTU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceMtu {
    /// The largest IP packet that the first link takes, bytes.
    pub first_link_bytes: u32,
    /// The largest IP packet that came to the last hop that answers, bytes.
    pub path_bytes: u32,
    /// Whether that hop is the target.
    pub to_target: bool,
    /// Where it shrinks.
    pub steps: Vec<MtuStep>,
}

/// How the path ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TraceEnd {
    /// The target answered at this TTL.
    Reached {
        /// The TTL.
        ttl: u8,
    },
    /// A TCP reset in the target's name came at this TTL: the port is closed, or a filter before the target refuses it.
    Refused {
        /// The TTL.
        ttl: u8,
    },
    /// A hop rejects the probes.
    Rejected {
        /// The TTL that was rejected.
        ttl: u8,
        /// The hop that rejects, if it answered before.
        hop: Option<u8>,
        /// Its address.
        address: String,
        /// The mark: `!A`, `!H`, `!N`, `!P`.
        mark: String,
    },
    /// Nothing answers behind this hop.
    Silent {
        /// The last hop that answered; 0: none.
        after_hop: u8,
    },
    /// The highest TTL was reached.
    MaxHops,
}

/// A sequence of nodes that flows took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TracePath {
    /// The flows.
    pub flows: Vec<u16>,
    /// The node at each hop, from the first; `None`: silence.
    pub nodes: Vec<Option<String>>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceFinding {
    /// A word that never changes its meaning: `black-hole`, `mtu-shrinks`, `filtered`, `loss`, `icmp-rate-limit`, `asymmetry`, `ecmp`,
    /// `nat`, `silent`, `refused`.
    pub id: String,
    /// Whether it harms traffic, or can.
    pub harm: bool,
    /// The sentence.
    pub says: String,
}

/// A trace for its reader.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceReport {
    /// The user's word for the target.
    pub asked: String,
    /// Its address.
    pub target: String,
    /// What the probes were.
    pub protocol: TraceProtocol,
    /// What was planned.
    pub plan: TracePlan,
    /// When it began, microseconds since the Unix epoch.
    pub started_unix_us: u64,
    /// How long it took, seconds.
    pub elapsed_s: f64,
    /// The hops, from the first TTL.
    pub hops: Vec<TraceHop>,
    /// How the path ends.
    pub end: TraceEnd,
    /// The path MTU; `None`: not measured.
    pub mtu: Option<TraceMtu>,
    /// The paths of the flows that were sent to all hops, most flows first.
    pub paths: Vec<TracePath>,
    /// What was found, harm first.
    pub findings: Vec<TraceFinding>,
    /// What could not be measured, and why.
    pub remarks: Vec<String>,
    /// How the run ended.
    pub ending: Ending,
    /// The path back, as a narrows server at the target traced it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<Box<TraceReport>>,
}
