//! The path profile: what the path does by itself, measured by short steps of paced UDP. The plan of a trial, and what its steps
//! showed. The client decides the steps; each is raw here, and what they mean is derived on reading.
//!
//! Rates are bits of IP packets a second (RFC 5136, IP-layer capacity). Times of different hosts are read off different clocks:
//! only differences of delays mean something.

use crate::host::fact::Snapshot;
use crate::load::host::HostSample;
use crate::load::kind::{Cap, Carrier, Load, Plan, Sample, StreamSpec, TrialOf, within};
use crate::load::tcp::TcpPlan;
use crate::words::place::{Direction, Flow, Place};
use crate::words::units;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One profile of one direction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProfilePlan {
    /// Which way the steps go; not both.
    pub direction: Direction,
    /// The rate to begin with: what the path is known to carry.
    pub start_bps: u64,
    /// No step offers more.
    pub max_bps: u64,
    /// After this time no step begins.
    pub limit_ms: u64,
}

impl ProfilePlan {
    /// The longest time that an end admits.
    pub const MAX_MS: u64 = 60_000;
    /// The lowest rate of a step.
    pub const MIN_BPS: u64 = 50_000;
    /// The highest rate of a step.
    pub const MAX_BPS: u64 = 1 << 40;
    /// Bytes of UDP payload of the largest datagram that is used: that of a jumbo frame. Loopback takes more, in coarse steps.
    pub const MAX_DATAGRAM_BYTES: u32 = 8_972;
    /// The most datagrams of a step.
    pub const MAX_DATAGRAMS: u32 = 1 << 17;
    /// The longest step.
    pub const MAX_STEP_MS: u64 = 2_000;
}

impl Default for ProfilePlan {
    fn default() -> Self {
        Self { direction: Direction::Up, start_bps: 1_000_000, max_bps: Self::MAX_BPS, limit_ms: 5_000 }
    }
}

impl Plan for ProfilePlan {
    fn check(&self) -> Result<(), String> {
        if self.direction == Direction::Both {
            return Err("the direction of a path profile is up or down, not both".to_owned());
        }
        within("start_bps", self.start_bps, Self::MIN_BPS, Self::MAX_BPS)?;
        within("max_bps", self.max_bps, Self::MIN_BPS, Self::MAX_BPS)?;
        within("limit in ms", self.limit_ms, 100, Self::MAX_MS)
    }

    fn duration_ms(&self) -> Option<u64> {
        Some(self.limit_ms)
    }

    fn streams(&self) -> Vec<StreamSpec> {
        StreamSpec::list(0, 1, self.direction.flows(), Carrier::Udp)
    }

    fn tcp_options(&self, _: u32) -> Option<TcpPlan> {
        None
    }

    fn describe(&self) -> String {
        format!("path profile {} for up to {}", self.direction, units::micros(self.limit_ms * 1000))
    }
}

impl Load for ProfilePlan {
    type Record = ProfileEndRecord;
    type Sample = ProfileSample;

    fn capped(self, cap: &Cap) -> Result<Self, String> {
        let max_bps = self.max_bps.min(cap.max_bps).max(Self::MIN_BPS);
        Ok(Self { max_bps, start_bps: self.start_bps.min(max_bps), ..self })
    }

    fn is_within(&self, asked: &Self) -> bool {
        let (start_bps, max_bps) = (asked.start_bps, asked.max_bps);
        self.start_bps <= start_bps && self.max_bps <= max_bps && *asked == Self { start_bps, max_bps, ..self.clone() }
    }

    fn partial_record(place: Place, _: Vec<(u32, Flow, Vec<ProfileSample>)>, remark: String) -> ProfileEndRecord {
        ProfileEndRecord { remarks: vec![remark], ..ProfileEndRecord::empty(place) }
    }
}

/// The steps so far at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct ProfileSample {
    /// Since the trial began on this end.
    pub at_us: u64,
    /// Steps that are over.
    pub steps: u32,
    /// Bytes of UDP payload sent or received so far.
    pub bytes: u64,
}

impl Sample for ProfileSample {
    fn at_us(&self) -> u64 {
        self.at_us
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn thread_cpu_us(&self) -> Option<u64> {
        None
    }
}

/// What a step sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileStep {
    /// From 1, in the order of time.
    pub id: u16,
    /// Datagrams to send.
    pub datagrams: u32,
    /// Bytes of UDP payload of each.
    pub datagram_bytes: u32,
    /// From the start of a datagram to that of the next; 0: back to back.
    pub gap_ns: u64,
    /// The receiver ends it once a queue of so many microseconds stood for a while, or the path lost much; 0: it is sent to its end.
    pub stop_above_us: u32,
}

impl ProfileStep {
    /// How long it is planned to take.
    pub fn planned_ns(&self) -> u64 {
        u64::from(self.datagrams).saturating_mul(self.gap_ns)
    }

    /// What is wrong with it, if anything: an end checks what its peer asks for.
    /// Errors: one sentence that names the field, its value and what is allowed.
    pub fn check(&self, max_bps: u64, header_bytes: u32) -> Result<(), String> {
        within("datagrams of a step", self.datagrams, 1, ProfilePlan::MAX_DATAGRAMS)?;
        within("bytes of a datagram", self.datagram_bytes, 64, 65_507)?;
        within("length of a step in ms", self.planned_ns() / 1_000_000, 0, ProfilePlan::MAX_STEP_MS)?;
        let bits = u64::from(self.datagram_bytes + header_bytes) * 8;
        // Back to back only what a train is.
        let least_ns = if self.datagrams <= Self::MAX_TRAIN { 0 } else { bits.saturating_mul(1_000_000_000) / max_bps };
        within("gap of a step in ns", self.gap_ns, least_ns.saturating_sub(1), u64::MAX)
    }

    /// Datagrams that may leave back to back.
    pub const MAX_TRAIN: u32 = 64;
}

/// What left the sender of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct StepSent {
    /// Datagrams that the socket took: fewer than planned where the step ended early.
    pub datagrams: u32,
    /// From the first to the last one; of a train, until the socket had taken the last one. 0 where that is not known.
    pub span_ns: u64,
    /// The longest time that the sender was behind its schedule.
    pub late_ns: u64,
}

/// A part of a step as its receiver saw it: of a step's datagrams, numbered from 0, those from `from` up to the next part's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct StepPart {
    /// Number of its first datagram.
    pub from: u32,
    /// Those that arrived.
    pub received: u32,
    /// Arrival of its last one, since the first of the step.
    pub last_ns: u64,
    /// Median of arrival less sending, by two clocks.
    pub delay_ns: i64,
}

/// What reached the receiver of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct StepReceived {
    /// Different datagrams.
    pub datagrams: u32,
    /// From the arrival of the first to that of the last.
    pub span_ns: u64,
    /// More than once.
    pub duplicates: u32,
    /// After one with a higher number.
    pub reordered: u32,
    /// Gaps in the numbers.
    pub gaps: u32,
    /// Number of the first one that is missing.
    pub first_missing: Option<u32>,
    /// Dropped by this socket for want of room.
    pub socket_drops: u32,
    /// Least of arrival less sending, by two clocks.
    pub min_delay_ns: i64,
    /// 10th, 50th and 90th percentile of it.
    pub delays_ns: [i64; 3],
    /// Its parts, in order, up to [`StepReceived::PARTS`].
    pub parts: Vec<StepPart>,
}

impl StepReceived {
    /// Parts that a step is divided into.
    pub const PARTS: u32 = 16;
}

/// One step as both ends saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepRecord {
    /// Since the trial began.
    pub at_us: u64,
    /// What was to be sent.
    pub step: ProfileStep,
    /// What was sent.
    pub sent: StepSent,
    /// What arrived; `None` where the receiver's account of it was lost.
    pub received: Option<StepReceived>,
}

/// One probe of the idle path, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileProbe {
    /// UDP payload in the direction of the profile; the other way it is short.
    pub bytes: u32,
    /// There and back, without the time at the server.
    pub rtt_ns: u64,
    /// From client to server, by two clocks.
    pub up_ns: i64,
    /// From server to client, by two clocks.
    pub down_ns: i64,
}

/// What one end saw of a profile; the client's holds the steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileEndRecord {
    /// Which end.
    pub place: Place,
    /// Bytes of IP and UDP header of each datagram.
    pub header_bytes: u32,
    /// Bytes of UDP payload of the largest datagram that the path carries whole.
    pub datagram_bytes: u32,
    /// Probes of the idle path that were sent.
    pub probes_sent: u32,
    /// Those that were answered.
    pub probes: Vec<ProfileProbe>,
    /// The steps, in the order of time.
    pub steps: Vec<StepRecord>,
    /// One stream, as every load has them.
    pub streams: Vec<ProfileStream>,
    /// The host's CPUs.
    pub host: Vec<HostSample>,
    /// Counters of the host right before.
    pub before: Snapshot,
    /// Counters of the host right after.
    pub after: Snapshot,
    /// Words on anything that went otherwise than planned.
    pub remarks: Vec<String>,
}

impl ProfileEndRecord {
    /// Of an end that saw nothing yet.
    pub fn empty(place: Place) -> Self {
        Self {
            place,
            header_bytes: 0,
            datagram_bytes: 0,
            probes_sent: 0,
            probes: Vec::new(),
            steps: Vec::new(),
            streams: Vec::new(),
            host: Vec::new(),
            before: Snapshot::default(),
            after: Snapshot::default(),
            remarks: Vec::new(),
        }
    }
}

/// The stream of a profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileStream {
    /// Which way its steps go.
    pub flow: Flow,
    /// In the order of time.
    pub samples: Vec<ProfileSample>,
}

impl crate::load::Keyed for ProfileStream {
    fn key(&self) -> (u32, Flow) {
        (0, self.flow)
    }
}

/// A trial of a profile.
pub type ProfileTrial<'a> = TrialOf<'a, ProfilePlan>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_and_steps_say_what_is_wrong_with_them() {
        assert_eq!(ProfilePlan::default().check(), Ok(()));
        let both = ProfilePlan { direction: Direction::Both, ..ProfilePlan::default() };
        assert!(both.check().is_err_and(|why| why.contains("not both")));
        let step = ProfileStep { id: 1, datagrams: 1000, datagram_bytes: 1472, gap_ns: 120_000, stop_above_us: 0 };
        assert_eq!(step.check(100_000_000, 28), Ok(()));
        assert!(step.check(99_000_000, 28).is_err_and(|why| why.contains("gap")));
        let train = ProfileStep { datagrams: 16, gap_ns: 0, ..step };
        assert_eq!(train.check(1_000_000, 28), Ok(()));
    }
}
