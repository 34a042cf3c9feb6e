//! What each end saw of UDP streams. Counts are of datagrams (UDP payloads), not of IP fragments; every sample is cumulative.

use crate::load::host::SocketMemory;
use crate::load::kind::{Sample, StreamsRecord};
use crate::words::place::Flow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A distribution of times or counts, small enough to store: the quantiles that reports show, and the buckets behind them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Distribution {
    /// How many values.
    pub count: u64,
    /// Their smallest.
    pub min: u64,
    /// Their mean.
    pub mean: f64,
    /// The median.
    pub p50: u64,
    /// 90 of 100 are not above it.
    pub p90: u64,
    /// 99 of 100.
    pub p99: u64,
    /// 999 of 1,000.
    pub p99_9: u64,
    /// 9,999 of 10,000.
    pub p99_99: u64,
    /// Their largest.
    pub max: u64,
    /// `[upper bound, count]` of each bucket that holds any, smallest first; a bucket is at most 1 % wide.
    pub buckets: Vec<[u64; 2]>,
}

/// What a sending socket refused, by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Unsent {
    /// `ENOBUFS`: the queue of the device was full.
    pub no_buffers: u64,
    /// `EAGAIN`: the send buffer was full for too long.
    pub would_block: u64,
    /// `EMSGSIZE`: larger than the path MTU.
    pub too_big: u64,
    /// `EPERM`: a filter of this host refused it.
    pub not_permitted: u64,
    /// `ECONNREFUSED`: an earlier datagram had found no one who listens.
    pub refused: u64,
    /// Any other error.
    pub other: u64,
}

impl Unsent {
    /// All of them.
    pub const fn total(&self) -> u64 {
        self.no_buffers
            .saturating_add(self.would_block)
            .saturating_add(self.too_big)
            .saturating_add(self.not_permitted)
            .saturating_add(self.refused)
            .saturating_add(self.other)
    }

    /// Those of two sockets.
    pub const fn plus(self, other: Self) -> Self {
        Self {
            no_buffers: self.no_buffers.saturating_add(other.no_buffers),
            would_block: self.would_block.saturating_add(other.would_block),
            too_big: self.too_big.saturating_add(other.too_big),
            not_permitted: self.not_permitted.saturating_add(other.not_permitted),
            refused: self.refused.saturating_add(other.refused),
            other: self.other.saturating_add(other.other),
        }
    }
}

/// What a sending end did on one stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct UdpSent {
    /// Datagrams that the plan asked for in the time that passed; 0 where it asked for as many as possible.
    pub intended: u64,
    /// Datagrams that the socket took.
    pub datagrams: u64,
    /// Their payload.
    pub bytes: u64,
    /// System calls; 0 where this end reports only what it sent (iperf3).
    pub calls: u64,
    /// Those that failed.
    pub errors: u64,
    /// Datagrams that were handed over and refused: they are never lost on the path.
    pub unsent: Unsent,
    /// Datagrams that were due while this end stalled, and were given up rather than sent in a burst.
    pub skipped: u64,
    /// From the first to the last departure. For a rate use [`UdpPlan::rate_seconds`].
    pub active_ns: u64,
    /// Gaps between departures, ns, by the clock right before each call; within a batch they are 0.
    pub gaps_ns: Distribution,
    /// The most datagrams that left back to back in one call or within 1 µs.
    pub burst_max: u64,
}

impl UdpSent {
    /// Whether this end counted its calls, and with them what the socket refused: nothing is sent without a call.
    pub const fn counts_calls(&self) -> bool {
        self.calls > 0 || self.datagrams == 0
    }
}

/// What a receiving end saw of one stream. `datagrams = distinct + duplicates`; `distinct + lost` = as many as were sent
/// before the last one that arrived, where the sender's count is not known, else as many as were sent, less `uncounted`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct UdpReceived {
    /// All that carried this stream's header.
    pub datagrams: u64,
    /// Their payload.
    pub bytes: u64,
    /// System calls.
    pub calls: u64,
    /// Arrived once or more.
    pub distinct: u64,
    /// Further copies of one that had arrived.
    pub duplicates: u64,
    /// Sent and never arrived.
    pub lost: u64,
    /// Sent after the last one that arrived, when this end may have stopped counting: neither arrived nor lost. The ends of iperf3
    /// do not agree on a last datagram.
    #[serde(default)]
    pub uncounted: u64,
    /// Arrived after one with a higher number (RFC 4737, type-P-reordered).
    pub reordered: u64,
    /// The largest distance, in datagrams, to the earliest one that overtook it (RFC 4737, reordering extent).
    pub reorder_extent_max: u64,
    /// Arrived so much later than its successors that its place was forgotten; it is also counted in `distinct`.
    pub late: u64,
    /// Runs of consecutive losses: their number.
    pub loss_bursts: u64,
    /// The longest of them.
    pub loss_burst_max: u64,
    /// Bytes that were no datagram of this stream.
    pub foreign: u64,
    /// Dropped by the kernel for want of room in this socket's buffer (`SO_RXQ_OVFL`).
    pub socket_drops: Option<u64>,
    /// Highest sequence number seen, plus one.
    pub next_sequence: u64,
    /// Interarrival jitter (RFC 3550, section 6.4.1), ns.
    pub jitter_ns: f64,
    /// From the first to the last arrival, by the kernel's receive time stamps where `stamps` is `kernel`.
    pub active_ns: u64,
    /// Where arrival times come from: `kernel` or `user`.
    pub stamps: String,
    /// Gaps between arrivals, ns.
    pub gaps_ns: Distribution,
    /// One-way delay above the smallest one (PDV, RFC 5481), ns; needs no common clock.
    pub delay_variation_ns: Distribution,
    /// The smallest difference of receive and send time by the two hosts' wall clocks, ns: a one-way delay only within
    /// the clocks' error.
    pub min_clock_difference_ns: Option<i64>,
    /// By how much the one-way delay grew, ns, by the median slope of the least delays of spans of 10 ms, and of ten datagrams, at least;
    /// needs no common clock. `None`: fewer than two such spans, or a server that does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_growth_ns: Option<i64>,
}

/// One stream at one instant, seen from one end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct UdpSample {
    /// Since the trial began on this end.
    pub at_us: u64,
    /// Datagrams that the socket took (sender) or gave (receiver) so far.
    pub datagrams: u64,
    /// Their payload.
    pub bytes: u64,
    /// System calls so far.
    pub calls: u64,
    /// Calls that failed so far (sender).
    pub errors: u64,
    /// Refused by the socket so far (sender).
    pub unsent: u64,
    /// Missing so far, before those that may still arrive (receiver).
    pub lost: u64,
    /// Second copies so far (receiver).
    pub duplicates: u64,
    /// Overtaken so far (receiver).
    pub reordered: u64,
    /// Jitter at this instant (receiver), ns.
    pub jitter_ns: f64,
    /// Dropped at this socket so far (receiver, `SO_RXQ_OVFL` or `SO_MEMINFO`).
    pub socket_drops: Option<u64>,
    /// CPU time of the thread that moves the data so far, user and system.
    pub thread_cpu_us: Option<u64>,
    /// The socket's memory.
    pub memory: Option<SocketMemory>,
}

impl Sample for UdpSample {
    fn at_us(&self) -> u64 {
        self.at_us
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn thread_cpu_us(&self) -> Option<u64> {
        self.thread_cpu_us
    }
}

/// One stream over a trial, seen from one end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct UdpStreamRecord {
    /// From 0, the same on both ends.
    pub id: u32,
    /// Which way its data goes.
    pub flow: Flow,
    /// `address:port` of this end.
    pub local: String,
    /// `address:port` of the other end.
    pub remote: String,
    /// The largest datagram that the stream sends.
    pub datagram_bytes: u32,
    /// IP packet size that the path was found to carry in one piece, in this stream's direction.
    pub path_mtu_bytes: Option<u32>,
    /// Send buffer asked for and obtained, bytes of kernel memory (`SO_SNDBUF` as the kernel doubles it).
    pub sndbuf_bytes: Option<u32>,
    /// Receive buffer obtained, bytes of kernel memory.
    pub rcvbuf_bytes: Option<u32>,
    /// Receive buffer that the engine or the user wanted, in the same bytes.
    #[serde(rename = "rcvbuf_wanted_bytes")]
    pub rcvbuf_requested_bytes: Option<u32>,
    /// How datagrams were moved: `sendmmsg`, `sendmmsg+segment`, `recvmmsg`, `recvmmsg+gro`.
    pub method: String,
    /// On the end that sends.
    pub sent: Option<UdpSent>,
    /// On the end that receives.
    pub received: Option<UdpReceived>,
    /// In the order of time.
    pub samples: Vec<UdpSample>,
}

impl crate::load::Keyed for UdpStreamRecord {
    fn key(&self) -> (u32, Flow) {
        (self.id, self.flow)
    }
}

/// What one end saw of a UDP trial.
pub type UdpEndRecord = StreamsRecord<UdpStreamRecord>;
