//! What a trace saw: each probe and its answer, in the order of sending.

use super::TracePlan;
use crate::Ending;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Why a probe was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProbePurpose {
    /// A sample of RTT and loss.
    Sample,
    /// Looks for another path at this TTL.
    Paths,
    /// Measures the path MTU: it must not be fragmented.
    Mtu,
}

/// One probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceProbe {
    /// Why it was sent.
    pub purpose: ProbePurpose,
    /// Its flow, from 0.
    pub flow: u16,
    /// Its TTL.
    pub ttl: u8,
    /// Its IP packet, bytes.
    pub bytes: u32,
    /// When it was sent, microseconds by the wall clock of this host.
    pub sent_us: u64,
    /// The answer; `None`: none so far.
    pub answer: Option<TraceAnswer>,
}

/// What an answer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnswerKind {
    /// The TTL ended here: a router of the path.
    TimeExceeded,
    /// The target: *port unreachable*, an echo reply, a datagram, a TCP connection that was accepted or refused.
    Reached,
    /// The packet is larger than the next link (ICMP 3/4, ICMPv6 2).
    TooBig,
    /// Network unreachable (`!N`).
    NoNetwork,
    /// Host unreachable (`!H`).
    NoHost,
    /// Protocol unreachable (`!P`).
    NoProtocol,
    /// Administratively prohibited (`!A`).
    Prohibited,
    /// Another *destination unreachable*, by its code (`!<code>`).
    Unreachable(u8),
}

impl AnswerKind {
    /// Whether a probe of a higher TTL gets no further.
    pub const fn is_end(self) -> bool {
        !matches!(self, Self::TimeExceeded | Self::TooBig)
    }

    /// The mark of traceroute(8); empty for a router and the target.
    pub fn mark(self) -> String {
        match self {
            Self::TimeExceeded | Self::Reached => String::new(),
            Self::TooBig => "!F".to_owned(),
            Self::NoNetwork => "!N".to_owned(),
            Self::NoHost => "!H".to_owned(),
            Self::NoProtocol => "!P".to_owned(),
            Self::Prohibited => "!A".to_owned(),
            Self::Unreachable(code) => format!("!<{code}>"),
        }
    }
}

/// One entry of an MPLS label stack (RFC 4950).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct MplsLabel {
    /// The label, 20 bits.
    pub label: u32,
    /// Traffic class, 3 bits.
    pub class: u8,
    /// The TTL of the entry.
    pub ttl: u8,
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceAnswer {
    /// When it arrived, microseconds by the wall clock of this host.
    pub at_us: u64,
    /// Who sent it.
    pub from: IpAddr,
    /// What it says.
    pub kind: AnswerKind,
    /// The TTL that its IP header had here.
    pub reply_ttl: Option<u8>,
    /// The MTU of the next link, bytes, of [`AnswerKind::TooBig`].
    pub mtu: Option<u32>,
    /// The label stack that the probe had.
    pub mpls: Vec<MplsLabel>,
    /// A TCP reset in the target's name: of a port that is closed, or of a filter on the way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
}

/// A trace as it was seen. Probes may be missing at the front of a long one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceRecord {
    /// What was planned.
    pub plan: TracePlan,
    /// When it began, microseconds since the Unix epoch.
    pub started_unix_us: u64,
    /// All probes.
    pub probes: Vec<TraceProbe>,
    /// Probes that were forgotten.
    pub forgotten: u64,
    /// Answers that could not be matched with a probe.
    pub unmatched: u64,
    /// The largest IP packet that the first link takes, bytes; `None`: not measured.
    pub first_link_mtu: Option<u32>,
    /// The search for the path MTU ended on its own.
    pub mtu_done: bool,
    /// Names of addresses by reverse lookup.
    pub names: BTreeMap<IpAddr, String>,
    /// How it ended.
    pub ending: Ending,
    /// The path back, as a narrows server at the target traced it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<Box<TraceRecord>>,
    /// Other TCP ports that were tried because the one of the plan is silent, and whether the target answered.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub other_ports: BTreeMap<u16, bool>,
}
