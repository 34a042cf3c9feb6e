//! TCP streams: the plan, which travels to the other end as it is, and what each end saw. Samples are cumulative and raw; rates
//! are derived on reading.

use crate::load::host::SocketMemory;
use crate::load::kind::{Cap, Carrier, Load, Plan, Sample, StreamSpec, StreamsRecord, TrialOf};
use crate::load::kind::{check_omitted, is_below, within, within_if};
use crate::load::placement::Placement;
use crate::load::tcp_info::TcpInfo;
use crate::words::place::{Direction, Flow, Place};
use crate::words::units;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When a trial ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// After this many milliseconds, the omitted ones included.
    DurationMs(u64),
    /// When each stream has carried this many bytes (and after [`TcpPlan::LONGEST_MS`] at the latest).
    BytesPerStream(u64),
}

/// Whether the sender avoids copying into the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "lowercase")]
pub enum ZeroCopy {
    /// The engine decides by what helps on this kernel.
    #[default]
    Auto,
    /// Pages of a file in memory are sent by reference (`tee`, `splice`).
    On,
    /// Plain `send` from a user buffer.
    Off,
}

/// What the receiver does with the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "lowercase")]
pub enum Receive {
    /// The kernel discards it without a copy (`MSG_TRUNC`, tcp(7)): the cost of the path alone.
    #[default]
    Discard,
    /// It is copied to a user buffer (`recv`), as an application does.
    Copy,
}

/// What carries the streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// TCP of the kernel.
    #[default]
    Tcp,
    /// Multipath TCP where both ends have it, else TCP (RFC 8684).
    Multipath,
    /// QUIC in the process, a connection for each stream (RFC 9000); the far end serves its protocol `perf`
    /// (draft-banks-quic-performance-00).
    Quic,
}

impl Transport {
    /// Its name in a sentence.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Tcp | Self::Multipath => "TCP",
            Self::Quic => "QUIC",
        }
    }

    fn is_tcp(&self) -> bool {
        *self == Self::Tcp
    }
}

/// An application that the engine imitates. All zero: an application that is always ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct Application {
    /// The sending application offers no more than this, over all streams of a flow; 0 = as fast as the socket takes it.
    pub write_bps: u64,
    /// The receiving application reads no more than this, over all streams of a flow; 0 = as fast as the socket gives it.
    pub read_bps: u64,
    /// CPU time that the sending application burns on each MiB before it writes it.
    pub write_cpu_us_per_mib: u32,
    /// CPU time that the receiving application burns on each MiB after it read it.
    pub read_cpu_us_per_mib: u32,
}

impl Application {
    /// The most CPU time that an end admits for a MiB: at that, a load carries a megabit per second.
    pub const MAX_CPU_US_PER_MIB: u32 = 10_000_000;
}

/// One TCP trial, the same words for both ends. Where a field is an `Option`, `None` means *as the kernel decides*,
/// which is itself a decision: nothing is left open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TcpPlan {
    /// Streams per flow (so `both` has twice as many connections), 1 to [`TcpPlan::MAX_STREAMS`].
    pub streams: u32,
    /// Which way the data goes.
    pub direction: Direction,
    /// When it ends.
    pub limit: Limit,
    /// The first part of the trial that no summary counts: slow start, mostly.
    pub omit_ms: u64,
    /// How often both ends take a sample (there are more and closer ones in the first 100 ms).
    pub interval_ms: u64,
    /// Bytes handed to the kernel in one call, at least.
    pub message_bytes: u32,
    /// Never more: otherwise a stream of 1 Gbit/s and more hands over 1 MiB where this is the default of 128 KiB.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_message_bytes: bool,
    /// `SO_SNDBUF` asked for on every sending socket.
    pub send_buffer_bytes: Option<u32>,
    /// `SO_RCVBUF` asked for on every receiving socket, before the connection is made.
    pub receive_buffer_bytes: Option<u32>,
    /// `TCP_CONGESTION` on every sending socket.
    pub congestion_control: Option<String>,
    /// `TCP_MAXSEG` before the connection is made.
    pub mss_bytes: Option<u16>,
    /// DSCP of both ends, 0 to 63.
    pub dscp: u8,
    /// `TCP_NODELAY`.
    pub no_delay: bool,
    /// `SO_MAX_PACING_RATE` of each sending socket, in bits per second.
    pub pacing_bps: Option<u64>,
    /// How the sender hands its bytes over.
    pub zero_copy: ZeroCopy,
    /// What the receiver does with the data.
    #[serde(default)]
    pub receive: Receive,
    /// The application that the two ends imitate.
    pub application: Application,
    /// Both ends keep their cores awake with threads that yield to everything else. The clock tick that the kernel accounts by
    /// stands still on a core that is idle but for interrupts; on one that is awake it sees what they take.
    #[serde(default)]
    pub awake: bool,
    /// What carries them.
    #[serde(default, skip_serializing_if = "Transport::is_tcp")]
    pub transport: Transport,
    /// Which CPUs the data threads use; `None`: as [`Placement::default`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Box<Placement>>,
}

impl TcpPlan {
    /// The longest trial that an end admits.
    pub const LONGEST_MS: u64 = 24 * 3600 * 1000;
    /// The most streams per flow that an end admits.
    pub const MAX_STREAMS: u32 = 128;

    /// The flows of the trial.
    pub fn flows(&self) -> &'static [Flow] {
        self.direction.flows()
    }
}

impl Default for TcpPlan {
    /// One stream up for ten seconds, every other thing as the kernel decides.
    fn default() -> Self {
        Self {
            streams: 1,
            direction: Direction::Up,
            limit: Limit::DurationMs(10_000),
            omit_ms: 0,
            interval_ms: 1_000,
            message_bytes: 128 << 10,
            keeps_message_bytes: false,
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
            congestion_control: None,
            mss_bytes: None,
            dscp: 0,
            no_delay: false,
            pacing_bps: None,
            zero_copy: ZeroCopy::Auto,
            receive: Receive::Discard,
            application: Application::default(),
            awake: false,
            transport: Transport::Tcp,
            placement: None,
        }
    }
}

impl Plan for TcpPlan {
    fn check(&self) -> Result<(), String> {
        within("streams", self.streams, 1, Self::MAX_STREAMS)?;
        match self.limit {
            Limit::DurationMs(ms) => {
                within("duration in ms", ms, 100, Self::LONGEST_MS)?;
                check_omitted(self.omit_ms, ms)?;
            }
            Limit::BytesPerStream(bytes) => within("bytes per stream", bytes, 1, 1 << 50)?,
        }
        within("interval in ms", self.interval_ms, 10, 3_600_000)?;
        within("message bytes", self.message_bytes, 1, 64 << 20)?;
        within_if("send buffer", self.send_buffer_bytes, 1024, 1 << 30)?;
        within_if("receive buffer", self.receive_buffer_bytes, 1024, 1 << 30)?;
        within_if("mss", self.mss_bytes, 88, 32_767)?;
        within("dscp", self.dscp, 0, 63)?;
        self.placement.as_ref().map_or(Ok(()), |it| it.check())?;
        if let Some(name) = &self.congestion_control
            && (name.is_empty()
                || name.len() > 15
                || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'))
        {
            return Err(format!("invalid congestion control `{}`", name.escape_default()));
        }
        within_if("pacing rate in bit/s", self.pacing_bps, 8_000, 1 << 50)?;
        if self.transport == Transport::Multipath
            && (self.pacing_bps.is_some() || self.mss_bytes.is_some() || self.dscp > 0)
        {
            return Err("Multipath TCP has no pacing rate, no MSS and no DSCP to set".to_owned());
        }
        let Application { write_bps, read_bps, write_cpu_us_per_mib, read_cpu_us_per_mib } = self.application;
        for (name, bps) in [("write rate in bit/s", write_bps), ("read rate in bit/s", read_bps)] {
            within(name, bps, 0, 1 << 50)?;
        }
        for (name, us) in [("CPU time of a write", write_cpu_us_per_mib), ("CPU time of a read", read_cpu_us_per_mib)] {
            within(&format!("{name} in us per MiB"), us, 0, Application::MAX_CPU_US_PER_MIB)?;
        }
        Ok(())
    }

    fn duration_ms(&self) -> Option<u64> {
        match self.limit {
            Limit::DurationMs(ms) => Some(ms),
            Limit::BytesPerStream(_) => None,
        }
    }

    fn streams(&self) -> Vec<StreamSpec> {
        StreamSpec::list(0, self.streams, self.flows(), Carrier::Tcp)
    }

    fn tcp_options(&self, _id: u32) -> Option<Self> {
        Some(self.clone())
    }

    fn omitted_ms(&self) -> u64 {
        self.omit_ms
    }

    fn rate_limit_bps(&self) -> Option<u64> {
        Some(self.pacing_bps?.saturating_mul(self.streams.into()))
    }

    fn times_mut(&mut self) -> Option<[&mut u64; 2]> {
        Some([&mut self.interval_ms, &mut self.omit_ms])
    }

    fn describe(&self) -> String {
        let span = match self.limit {
            Limit::DurationMs(ms) => units::micros(ms * 1000),
            Limit::BytesPerStream(bytes) => units::bytes(bytes),
        };
        format!("{} {} for {span}", self.transport.word(), self.direction)
    }
}

impl Load for TcpPlan {
    type Record = TcpEndRecord;
    type Sample = TcpSample;

    /// Long enough to leave slow start behind and to count for some seconds.
    fn for_proof(&self) -> Self {
        const MAX_MS: u64 = 4_000;
        const MAX_OMIT_MS: u64 = 1_500;
        match self.limit {
            Limit::DurationMs(ms) if ms > MAX_MS => {
                Self { limit: Limit::DurationMs(MAX_MS), omit_ms: self.omit_ms.min(MAX_OMIT_MS), ..self.clone() }
            }
            _ => self.clone(),
        }
    }

    fn capped(self, cap: &Cap) -> Result<Self, String> {
        cap.check_streams(self.streams)?;
        cap.refuse(self.dscp > 0, "a DSCP")?;
        cap.refuse(self.awake, "keeping CPUs awake")?;
        cap.refuse(
            self.placement.as_ref().is_some_and(|it| !it.server_cpus.is_empty()),
            "a choice of this server's CPUs",
        )?;
        // It cannot be paced.
        cap.refuse(self.transport != Transport::Tcp, "Multipath TCP or QUIC")?;
        let burns = self.application.write_cpu_us_per_mib > 0 || self.application.read_cpu_us_per_mib > 0;
        cap.refuse(burns, "an application that uses CPU time")?;
        let known = |name: &String| cap.congestion_controls.contains(name);
        if let Some(name) = self.congestion_control.as_ref().filter(|name| !known(name)) {
            cap.refuse(true, &format!("congestion control {name}"))?;
        }
        let max = (cap.max_bps / u64::from(self.streams)).max(8_000);
        Ok(Self { pacing_bps: Some(self.pacing_bps.map_or(max, |bps| bps.min(max))), ..self })
    }

    fn is_within(&self, asked: &Self) -> bool {
        is_below(asked.pacing_bps, self.pacing_bps) && *asked == Self { pacing_bps: asked.pacing_bps, ..self.clone() }
    }

    fn partial_record(place: Place, streams: Vec<(u32, Flow, Vec<TcpSample>)>, remark: String) -> TcpEndRecord {
        let stream = |(id, flow, samples)| TcpStreamRecord {
            id,
            flow,
            method: "unknown".to_owned(),
            samples,
            ..TcpStreamRecord::default()
        };
        TcpEndRecord::partial(place, streams.into_iter().map(stream).collect(), remark)
    }
}

/// Which sizes of a socket's buffers the application fixed (`SO_BUF_LOCK`): the kernel then stops tuning them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct BufferLock {
    /// `SO_SNDBUF` was called.
    pub send: bool,
    /// `SO_RCVBUF` was called.
    pub receive: bool,
}

/// One stream at one instant, seen from one end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct TcpSample {
    /// Since the trial began on this end.
    pub at_us: u64,
    /// Bytes that the application handed over (sender) or took (receiver) so far.
    pub bytes: u64,
    /// Calls that moved them.
    pub calls: u64,
    /// CPU time of the thread that moves the data so far, user and system; `None` where threads are shared.
    pub thread_cpu_us: Option<u64>,
    /// How long that thread was ready to run and waited for a core so far (`schedstat`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_wait_us: Option<u64>,
    /// The kernel's view, by the length that it returned.
    pub tcp: TcpInfo,
    /// The socket's memory.
    pub memory: Option<SocketMemory>,
    /// `SIOCINQ`: received, not yet read by the application.
    pub recv_q_bytes: Option<u32>,
    /// `SIOCOUTQ`: written by the application, not yet acknowledged.
    pub send_q_bytes: Option<u32>,
}

impl TcpSample {
    /// The sample that a count from `from` on begins at. Where a lost segment held the reader up then, what arrived meanwhile is delivered at
    /// once when it was sent again: that is of the omitted part, and the count begins after it.
    pub fn after_a_hole(samples: &[Self], from: usize) -> usize {
        /// Intervals of a tenth of a second: a hole lasts a few round trips.
        const LOOK: usize = 10;
        let rate = |a: usize, b: usize| {
            let span = samples[b].at_us.saturating_sub(samples[a].at_us).max(1);
            samples[b].bytes.saturating_sub(samples[a].bytes) as f64 / span as f64
        };
        let last = samples.len().saturating_sub(1);
        if from == 0 || from >= last {
            return from;
        }
        let usual = rate(from, last);
        let (little, much) = (|at: usize| rate(at - 1, at) < 0.5 * usual, |at: usize| rate(at - 1, at) > 1.5 * usual);
        let within = from + 1..last.min(from + LOOK);
        let filled = within.clone().find(|at| much(*at)).filter(|_| little(from));
        filled.map_or(from, |at| (at..within.end).take_while(|at| much(*at)).last().unwrap_or(at))
    }
}

impl Sample for TcpSample {
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
pub struct TcpStreamRecord {
    /// From 0, the same on both ends.
    pub id: u32,
    /// Which way its data goes.
    pub flow: Flow,
    /// `address:port` of this end.
    pub local: String,
    /// `address:port` of the other end.
    pub remote: String,
    /// The congestion control in use, read back from the socket.
    pub congestion_control: Option<String>,
    /// The MSS that the socket reported at the start.
    pub mss_bytes: Option<u32>,
    /// Which buffers the application fixed.
    pub buffer_lock: Option<BufferLock>,
    /// `SO_SNDBUF` as obtained right after the connection was made.
    pub sndbuf_bytes: Option<u32>,
    /// `SO_RCVBUF` as obtained right after the connection was made.
    pub rcvbuf_bytes: Option<u32>,
    /// How the sender handed its bytes over: `send`, `splice`; how the receiver took them: `recv`, `discard`.
    pub method: String,
    /// In the order of time; the first is taken right after the connection was made, the last after the last byte.
    pub samples: Vec<TcpSample>,
    /// With Multipath TCP, its subflows at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subflows: Vec<TcpSubflow>,
}

/// One of the connections that carry a connection of Multipath TCP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct TcpSubflow {
    /// `address:port` of this end.
    pub local: String,
    /// `address:port` of the other end.
    pub remote: String,
    /// The kernel's view of it.
    pub tcp: TcpInfo,
}

impl TcpStreamRecord {
    /// The smoothed round trips of the load in the samples from an instant on, microseconds. Until something of it is acknowledged the
    /// kernel has that of the handshake, which is not the load's.
    pub fn load_rtts_us(&self, from_us: u64) -> impl Iterator<Item = u64> + '_ {
        let before = self.samples.first().and_then(|first| first.tcp.bytes_acked);
        let samples = self.samples.iter().filter(move |sample| sample.at_us >= from_us);
        let acked = samples.filter(move |sample| sample.tcp.bytes_acked.is_none_or(|bytes| Some(bytes) > before));
        acked.filter_map(|sample| sample.tcp.rtt_us.filter(|us| *us > 0))
    }
}

impl crate::load::Keyed for TcpStreamRecord {
    fn key(&self) -> (u32, Flow) {
        (self.id, self.flow)
    }
}

/// What one end saw of a trial.
pub type TcpEndRecord = StreamsRecord<TcpStreamRecord>;

/// A trial of TCP streams.
pub type TcpTrial<'a> = TrialOf<'a, TcpPlan>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_round_trip_of_the_handshake_is_not_that_of_the_load() {
        let sample = |at_us, acked, rtt_us| TcpSample {
            at_us,
            tcp: TcpInfo { bytes_acked: acked, rtt_us: Some(rtt_us), ..TcpInfo::default() },
            ..TcpSample::default()
        };
        let of = |samples: Vec<TcpSample>| -> Vec<u64> {
            TcpStreamRecord { samples, ..TcpStreamRecord::default() }.load_rtts_us(5).collect()
        };
        assert_eq!(of(vec![sample(0, Some(45), 25), sample(5, Some(45), 25), sample(9, Some(45), 25)]), [0_u64; 0]);
        assert_eq!(of(vec![sample(0, Some(45), 25), sample(5, Some(45), 25), sample(9, Some(46), 700)]), [700]);
        // A kernel that does not say what was acknowledged.
        assert_eq!(of(vec![sample(0, None, 25), sample(5, None, 26), sample(9, None, 0)]), [26]);
    }

    #[test]
    fn the_default_plan_is_sound() {
        assert_eq!(TcpPlan::default().check(), Ok(()));
    }

    #[test]
    fn a_bad_plan_names_the_field_and_the_limits() {
        let plan = TcpPlan { streams: 0, ..TcpPlan::default() };
        assert_eq!(plan.check(), Err("streams is 0, but must be from 1 to 128".to_owned()));
        let plan = TcpPlan { omit_ms: 10_000, ..TcpPlan::default() };
        assert_eq!(plan.check(), Err("omit is 10 s, but the trial lasts only 10 s".to_owned()));
        let plan = TcpPlan { congestion_control: Some("a b".into()), ..TcpPlan::default() };
        assert!(plan.check().is_err());
    }
}
