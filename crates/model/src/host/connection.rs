//! TCP connections of a host as they are: samples without any load, and the view of what limits each one.

use crate::{SocketMemory, TcpInfo};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// One connection at one instant, as `sock_diag` shows it (include/uapi/linux/inet_diag.h).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConnectionSample {
    /// The socket's cookie: unique on the host while it runs.
    pub id: u64,
    /// When, by the host's own clock; only differences mean anything.
    pub at_us: u64,
    /// The address of this host.
    pub local: SocketAddr,
    /// The address of the peer.
    pub remote: SocketAddr,
    /// The kernel's number of its state; 1 is established.
    pub state: u8,
    /// The user of the socket.
    pub uid: u32,
    /// The socket's inode, by which its process is found; 0: it has none any more.
    #[serde(skip)]
    pub inode: u64,
    /// The inode of its control group, where the kernel says it.
    #[serde(skip)]
    pub cgroup: Option<u64>,
    /// Bytes received and not yet read by the application.
    pub unread_bytes: u32,
    /// The name of its congestion control.
    pub congestion_control: Option<String>,
    /// Memory of the socket.
    pub memory: Option<SocketMemory>,
    /// Its counters.
    pub tcp: TcpInfo,
}

/// Connections at one instant, by what is different from the reading before.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConnectionsReading {
    /// When, by the host's own clock.
    pub at_us: u64,
    /// Those that are new, sent or received something, or hold data that waits.
    pub changed: Vec<ConnectionSample>,
    /// What became of the others.
    pub others: Others,
}

/// Connections that a reading has no counters of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Others {
    /// There are none.
    #[default]
    Gone,
    /// They are as they were in the reading before, but those with these ids are gone.
    Quiet(Vec<u64>),
}

/// A process that holds a socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Owner {
    /// Its id.
    pub pid: u32,
    /// Its command name, at most 15 characters.
    pub name: String,
}

/// What limits a connection over an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ConnectionLimit {
    /// Nothing is sent or received.
    Idle,
    /// The sending application writes less than the connection carries.
    Application,
    /// The receiving application reads too slowly.
    ReceivingApplication,
    /// The receiver's window.
    ReceiveWindow,
    /// The send buffer of the socket.
    SendBuffer,
    /// A cap on the socket's pacing rate.
    PacingCap,
    /// Loss on the path: the sender recovers from it.
    Loss,
    /// A queue of this host, in front of its own interface.
    LocalQueue,
    /// A queue on the path: the path is full.
    Path,
    /// The congestion window, without a queue and without loss.
    CongestionWindow,
    /// This end does not show it.
    Unknown,
}

impl ConnectionLimit {
    /// All of them, with what is shown in a table.
    pub const WORDS: [(Self, &'static str); 11] = [
        (Self::Idle, "idle"),
        (Self::Application, "application"),
        (Self::ReceivingApplication, "receiving application"),
        (Self::ReceiveWindow, "receive window"),
        (Self::SendBuffer, "send buffer"),
        (Self::PacingCap, "pacing cap"),
        (Self::Loss, "loss"),
        (Self::LocalQueue, "local queue"),
        (Self::Path, "path"),
        (Self::CongestionWindow, "congestion window"),
        (Self::Unknown, "unknown"),
    ];

    /// What is shown in a table.
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(limit, _)| *limit == self).map_or("unknown", |(_, word)| word)
    }
}

/// Shares of the time of an interval, by the sender's `TCP_INFO`; together 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionShares {
    /// The application had nothing to send.
    pub application: f64,
    /// The receiver's window was full.
    pub receive_window: f64,
    /// The send buffer was full.
    pub send_buffer: f64,
    /// The congestion window, pacing, a queue, or recovery from loss.
    pub network: f64,
}

/// A rate that one limit allows at the present RTT.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionCeiling {
    /// Which limit.
    pub limit: ConnectionLimit,
    /// Payload, bits per second.
    pub bps: f64,
}

/// One connection and what limits it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionView {
    /// The socket's cookie, in hexadecimal digits.
    pub id: String,
    /// The address of this host.
    pub local: String,
    /// The address of the peer.
    pub remote: String,
    /// The process that holds it; unknown without the permission to see it.
    pub process: Option<Owner>,
    /// The user of the socket.
    pub uid: u32,
    /// What limits it.
    pub limit: ConnectionLimit,
    /// The evidence, in one sentence.
    pub why: String,
    /// Shares of the time of the interval; only of a connection that sends.
    pub shares: Option<ConnectionShares>,
    /// Acknowledged payload, bits per second.
    pub send_bps: Option<f64>,
    /// Received payload, bits per second.
    pub receive_bps: Option<f64>,
    /// Smoothed RTT, milliseconds.
    pub rtt_ms: Option<f64>,
    /// Least RTT of the last minutes, milliseconds.
    pub min_rtt_ms: Option<f64>,
    /// Segments sent again per segment sent, over the interval.
    pub retransmitted: Option<f64>,
    /// Segments sent again since the connection began.
    pub retransmitted_total: Option<u64>,
    /// The rates that single limits allow, lowest first.
    pub ceilings: Vec<ConnectionCeiling>,
    /// The name of its congestion control.
    pub congestion_control: Option<String>,
    /// Bytes received and not yet read by the application.
    pub unread_bytes: u32,
    /// Bytes written by the application and not yet sent.
    pub unsent_bytes: Option<u64>,
    /// What each end shows alone, where both are read; `limit` and `why` are then the verdict of both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<Box<ConnectionEnds>>,
}

/// One connection as each end of it shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionEnds {
    /// What limits it by this end alone.
    pub limit: ConnectionLimit,
    /// The evidence of this end.
    pub why: String,
    /// The other end: its addresses, its figures and what limits it by them alone.
    pub far: ConnectionView,
}

/// The connections of a host as their reader watches them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionsView {
    /// The name of the host.
    pub host: String,
    /// How long they have been watched, seconds.
    pub elapsed_s: f64,
    /// Connections that match the filters.
    pub matching: usize,
    /// Of them, those that carried data in the last interval.
    pub active: usize,
    /// Of them, those without any data so far that are not listed.
    #[serde(default, skip_serializing_if = "is_none")]
    pub quiet: usize,
    /// The connections, in the order that was asked for.
    pub connections: Vec<ConnectionView>,
    /// What could not be seen, and why.
    pub remarks: Vec<String>,
}

const fn is_none(count: &usize) -> bool {
    *count == 0
}

/// What connections are in order of, highest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionOrder {
    /// Payload per second.
    Rate,
    /// Smoothed RTT.
    Rtt,
    /// Share of segments sent again.
    Retrans,
    /// The limits, in alphabetical order.
    Limit,
}

impl ConnectionOrder {
    const ALL: [(Self, &'static str); 4] =
        [(Self::Rate, "rate"), (Self::Rtt, "RTT"), (Self::Retrans, "retransmissions"), (Self::Limit, "limit")];

    /// The order after this one, in a circle.
    pub fn next(self) -> Self {
        let at = Self::ALL.iter().position(|(order, _)| *order == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()].0
    }

    /// What is shown.
    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(order, _)| *order == self).map_or("", |(_, word)| word)
    }

    /// Sorts; equal ones stay as they are.
    pub fn apply(self, all: &mut [ConnectionView]) {
        let high_first = |of: fn(&ConnectionView) -> Option<f64>| {
            move |a: &ConnectionView, b: &ConnectionView| of(b).unwrap_or(-1.0).total_cmp(&of(a).unwrap_or(-1.0))
        };
        match self {
            Self::Rate => all.sort_by(high_first(|it| Some(it.bps()))),
            Self::Rtt => all.sort_by(high_first(|it| it.rtt_ms)),
            Self::Retrans => all.sort_by(high_first(|it| it.retransmitted)),
            Self::Limit => all.sort_by_key(|it| it.limit.word()),
        }
    }
}

impl ConnectionView {
    /// Payload of both directions, bits per second.
    pub fn bps(&self) -> f64 {
        self.send_bps.unwrap_or(0.0) + self.receive_bps.unwrap_or(0.0)
    }
}
