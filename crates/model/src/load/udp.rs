//! UDP trials: what is asked of the two ends, and what each of them saw. Counts are of datagrams (UDP payloads), not of
//! IP fragments; every sample is cumulative.

use crate::host::fact::Snapshot;
use crate::load::tcp::within;
use crate::load::trial::{HostSample, SocketMemory};
use crate::words::place::{Direction, Flow, Place};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The load that a flow is asked to carry, over all its streams.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UdpRate {
    /// Bits of UDP payload a second.
    Bps(u64),
    /// Datagrams a second.
    Pps(f64),
    /// As fast as the sockets take them.
    Max,
}

/// How large the datagrams are: bytes of UDP payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum DatagramSizes {
    /// The largest that the path MTU carries in one packet, found when the stream is opened.
    #[default]
    Largest,
    /// These, one after another and again from the start: one size, a list, or a mix.
    Sequence(Vec<u32>),
}

/// Whether a batch of datagrams is handed over as one (`UDP_SEGMENT`, `UDP_GRO`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "lowercase")]
pub enum Batching {
    /// The engine decides by rate, size and what the kernel can.
    #[default]
    Auto,
    /// Always, where the kernel can.
    On,
    /// Each datagram by itself.
    Off,
}

/// One UDP trial, the same words for both ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UdpPlan {
    /// Streams per flow, 1 to [`UdpPlan::MOST_STREAMS`].
    pub streams: u32,
    /// Which way the data goes.
    pub direction: Direction,
    /// The load of the flow that goes up.
    pub rate_up: UdpRate,
    /// The load of the flow that goes down.
    pub rate_down: UdpRate,
    /// Sizes of the datagrams.
    pub sizes: DatagramSizes,
    /// How long the senders send.
    pub duration_ms: u64,
    /// The first part of the trial that no summary counts.
    pub omit_ms: u64,
    /// How often both ends take a sample.
    pub interval_ms: u64,
    /// The most datagrams that leave a stream back to back; `None`: as few as the rate allows without losing it (about
    /// 100 µs of datagrams, at least one).
    pub burst_datagrams: Option<u32>,
    /// `SO_SNDBUF` asked for; `None`: sized to the rate.
    pub send_buffer_bytes: Option<u32>,
    /// `SO_RCVBUF` asked for; `None`: sized to the rate, as far as `net.core.rmem_max` lets it.
    pub receive_buffer_bytes: Option<u32>,
    /// DSCP of both ends, 0 to 63.
    pub dscp: u8,
    /// Batches on the sending side.
    pub segmentation: Batching,
    /// Batches on the receiving side.
    pub coalescing: Batching,
    /// Whether a datagram above the path MTU may be sent in fragments; otherwise it is refused before the trial.
    pub allow_fragments: bool,
}

impl UdpPlan {
    /// The most streams per flow that an end admits.
    pub const MOST_STREAMS: u32 = 128;
    /// The smallest datagram: the header of the probe.
    pub const LEAST_BYTES: u32 = 20;
    /// The largest UDP payload over IPv4.
    pub const MOST_BYTES: u32 = 65_507;
    /// The longest list of sizes.
    pub const MOST_SIZES: usize = 1024;
    /// The longest trial that an end admits.
    pub const LONGEST_MS: u64 = 24 * 3600 * 1000;

    /// The flows of the trial.
    #[must_use]
    pub fn flows(&self) -> &'static [Flow] {
        self.direction.flows()
    }

    /// The load of a flow.
    #[must_use]
    pub const fn rate(&self, flow: Flow) -> UdpRate {
        match flow {
            Flow::Up => self.rate_up,
            Flow::Down => self.rate_down,
        }
    }

    /// The time, in seconds, over which the rate of one stream of a flow is taken: from its first to its last departure or
    /// arrival, whichever is longer, and one pacing interval, for the last burst takes its time, too. Where fewer than two
    /// pacing intervals passed it is the planned duration: a few datagrams that leave at once have no rate of their own.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn rate_seconds(&self, flow: Flow, sent: Option<&UdpSent>, received: Option<&UdpReceived>) -> f64 {
        let active_ns = [sent.map(|it| it.active_ns), received.map(|it| it.active_ns)].into_iter().flatten().max();
        let departures = sent.map(|it| it.datagrams).or(received.map(|it| it.datagrams)).unwrap_or(0);
        let burst = match self.rate(flow) {
            UdpRate::Max => 1,
            UdpRate::Bps(_) | UdpRate::Pps(_) => sent.map_or(1, |it| it.burst_max).max(1),
        };
        match active_ns {
            Some(active_ns @ 1..) if departures / 3 >= burst => {
                let last_burst = (departures - 1) % burst + 1;
                active_ns as f64 / 1e9 * (departures as f64 / (departures - last_burst) as f64)
            }
            _ => self.duration_ms as f64 / 1e3,
        }
    }

    /// What is wrong with the plan, if anything: the check that both ends make before they act on it.
    ///
    /// # Errors
    /// One sentence that names the field, its value and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        within("streams", self.streams.into(), 1, Self::MOST_STREAMS.into())?;
        within("duration in ms", self.duration_ms, 10, Self::LONGEST_MS)?;
        if self.omit_ms >= self.duration_ms {
            return Err(format!("omit is {} ms, but the trial lasts only {} ms", self.omit_ms, self.duration_ms));
        }
        within("interval in ms", self.interval_ms, 10, 3_600_000)?;
        for flow in self.flows() {
            match self.rate(*flow) {
                UdpRate::Bps(bps) => within("rate in bit/s", bps, 1, 1 << 50)?,
                UdpRate::Pps(pps) if !(pps.is_finite() && (0.01..=1e12).contains(&pps)) => {
                    return Err(format!("rate in packets/s is {pps}, but must be from 0.01 to 10^12"));
                }
                UdpRate::Pps(_) | UdpRate::Max => {}
            }
        }
        if let DatagramSizes::Sequence(sizes) = &self.sizes {
            within("number of datagram sizes", sizes.len() as u64, 1, Self::MOST_SIZES as u64)?;
            for size in sizes {
                within("datagram size", (*size).into(), Self::LEAST_BYTES.into(), Self::MOST_BYTES.into())?;
            }
        }
        if let Some(burst) = self.burst_datagrams {
            within("burst in datagrams", burst.into(), 1, 65_536)?;
        }
        for (name, bytes) in [("send buffer", self.send_buffer_bytes), ("receive buffer", self.receive_buffer_bytes)] {
            if let Some(bytes) = bytes {
                within(name, bytes.into(), 1024, 1 << 30)?;
            }
        }
        within("dscp", self.dscp.into(), 0, 63)
    }
}

impl Default for UdpPlan {
    /// One stream up at 1 Mbit/s for ten seconds, the largest unfragmented datagrams.
    fn default() -> Self {
        Self {
            streams: 1,
            direction: Direction::Up,
            rate_up: UdpRate::Bps(1_000_000),
            rate_down: UdpRate::Bps(1_000_000),
            sizes: DatagramSizes::Largest,
            duration_ms: 10_000,
            omit_ms: 0,
            interval_ms: 1_000,
            burst_datagrams: None,
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
            dscp: 0,
            segmentation: Batching::Auto,
            coalescing: Batching::Auto,
            allow_fragments: false,
        }
    }
}

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
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.no_buffers
            .saturating_add(self.would_block)
            .saturating_add(self.too_big)
            .saturating_add(self.not_permitted)
            .saturating_add(self.refused)
            .saturating_add(self.other)
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
    /// System calls.
    pub calls: u64,
    /// Those that failed.
    pub errors: u64,
    /// Datagrams that were handed over and refused: they are never lost on the path.
    pub unsent: Unsent,
    /// Datagrams that were due while this end stood still, and were given up rather than sent in a burst.
    pub skipped: u64,
    /// From the first to the last departure. For a rate use [`UdpPlan::rate_seconds`].
    pub active_ns: u64,
    /// Gaps between departures, ns, by the clock right before each call; within a batch they are 0.
    pub gaps_ns: Distribution,
    /// The most datagrams that left back to back in one call or within 1 µs.
    pub burst_max: u64,
}

/// What a receiving end saw of one stream. `datagrams = distinct + duplicates`; `distinct + lost` = as many as were sent
/// before the last one that arrived, where the sender's count is not known, else as many as were sent.
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

/// One stream over a trial, seen from one end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    pub rcvbuf_wanted_bytes: Option<u32>,
    /// How datagrams were moved: `sendmmsg`, `sendmmsg+segment`, `recvmmsg`, `recvmmsg+gro`.
    pub method: String,
    /// On the end that sends.
    pub sent: Option<UdpSent>,
    /// On the end that receives.
    pub received: Option<UdpReceived>,
    /// In the order of time.
    pub samples: Vec<UdpSample>,
}

/// What one end saw of a UDP trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UdpEndRecord {
    /// Which end.
    pub place: Place,
    /// Its streams, by id.
    pub streams: Vec<UdpStreamRecord>,
    /// The host's CPUs, at the same instants as the streams' samples or near them.
    pub host: Vec<HostSample>,
    /// Counters of the host right before the load.
    pub before: Snapshot,
    /// Counters of the host right after it.
    pub after: Snapshot,
    /// Words on anything that went otherwise than planned.
    pub remarks: Vec<String>,
}

/// One UDP trial, as both ends saw it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UdpTrial {
    /// What was asked for.
    pub plan: UdpPlan,
    /// What the client saw.
    pub client: UdpEndRecord,
    /// What the server saw.
    pub server: UdpEndRecord,
    /// How long the trial took, by the client's clock.
    pub elapsed_us: u64,
}

impl UdpTrial {
    /// The record of one end. A path records nothing.
    #[must_use]
    pub const fn end(&self, place: Place) -> Option<&UdpEndRecord> {
        match place {
            Place::Client => Some(&self.client),
            Place::Server => Some(&self.server),
            Place::Path => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_plan_is_sound() {
        assert_eq!(UdpPlan::default().check(), Ok(()));
    }

    #[test]
    fn a_bad_plan_names_the_field_and_the_limits() {
        let plan = UdpPlan { sizes: DatagramSizes::Sequence(vec![64, 12]), ..UdpPlan::default() };
        assert_eq!(plan.check(), Err("datagram size is 12, but must be from 20 to 65507".to_owned()));
        let plan = UdpPlan { rate_up: UdpRate::Pps(f64::NAN), ..UdpPlan::default() };
        assert!(plan.check().is_err());
        // The rate of a flow that there is not may be anything.
        let plan = UdpPlan { rate_down: UdpRate::Bps(0), ..UdpPlan::default() };
        assert_eq!(plan.check(), Ok(()));
    }

    #[test]
    fn a_rate_counts_over_whole_pacing_intervals() {
        let plan = UdpPlan { duration_ms: 1_000, rate_up: UdpRate::Bps(1_000_000), ..UdpPlan::default() };
        let seconds = |datagrams, burst_max, active_ns| {
            plan.rate_seconds(Flow::Up, Some(&UdpSent { datagrams, burst_max, active_ns, ..UdpSent::default() }), None)
        };
        // Four departures 0.1 s apart are those of 0.4 s; so are four bursts of ten.
        assert!((seconds(4, 1, 300_000_000) - 0.4).abs() < 1e-9);
        assert!((seconds(40, 10, 300_000_000) - 0.4).abs() < 1e-9);
        // One datagram, or bursts with a single interval between them, leave the planned duration.
        assert_eq!((seconds(1, 1, 0), seconds(0, 0, 0), seconds(20, 10, 50)), (1.0, 1.0, 1.0));
        assert_eq!(plan.rate_seconds(Flow::Up, None, None), 1.0);
        // As fast as possible: bursts say nothing.
        let plan = UdpPlan { rate_up: UdpRate::Max, ..plan };
        let sent = UdpSent { datagrams: 101, burst_max: 101, active_ns: 100_000, ..UdpSent::default() };
        assert!((plan.rate_seconds(Flow::Up, Some(&sent), None) - 101e-6).abs() < 1e-12);
    }
}
