//! What a generator and a receiver saw: raw counts, from which rates and losses follow.

use super::{GeneratePlan, ReceiveMode, ReceivePlan, SendMode};
use crate::udp::Distribution;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one worker sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct StreamSent {
    /// Its number.
    pub stream: u16,
    /// Frames that were due by load and time; where there is no load, those that were tried.
    pub due: u64,
    /// Frames handed to the device.
    pub handed: u64,
}

/// What was sent between two looks, both directions of time exclusive of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct FrameInterval {
    /// The end of the interval, since the start.
    pub at_us: u64,
    /// Frames handed to the device, or counted by the receiver, since the start.
    pub frames: u64,
}

/// What a generator saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GenerateRecord {
    /// What was asked for.
    pub plan: GeneratePlan,
    /// The mode obtained.
    pub mode: SendMode,
    /// Why not a better one, a sentence each.
    pub not_better: Vec<String>,
    /// One per worker.
    pub streams: Vec<StreamSent>,
    /// Frames handed over that the device dropped by its own counter; `None`: it has none.
    pub refused: Option<u64>,
    /// First to last frame.
    pub elapsed_ns: u64,
    /// Cumulative, over all workers.
    pub intervals: Vec<FrameInterval>,
    /// Why it ended early, if it did.
    pub ended: Option<String>,
}

impl GenerateRecord {
    /// Frames due.
    #[must_use]
    pub fn due(&self) -> u64 {
        self.streams.iter().map(|stream| stream.due).sum()
    }

    /// Frames that left, as far as the device tells.
    #[must_use]
    pub fn sent(&self) -> u64 {
        let handed: u64 = self.streams.iter().map(|stream| stream.handed).sum();
        handed.saturating_sub(self.refused.unwrap_or(0))
    }

    /// Frames due that never left.
    #[must_use]
    pub fn unsent(&self) -> u64 {
        self.due().saturating_sub(self.sent())
    }

    /// Frames a second that left.
    #[must_use]
    pub fn sent_pps(&self) -> f64 {
        per_second(self.sent(), self.elapsed_ns)
    }
}

fn per_second(frames: u64, elapsed_ns: u64) -> f64 {
    if elapsed_ns == 0 { 0.0 } else { frames as f64 * 1e9 / elapsed_ns as f64 }
}

/// What came of one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct StreamGot {
    /// Its number.
    pub stream: u16,
    /// Frames with its signature, copies included.
    pub received: u64,
    /// Copies of frames that had come already (RFC 5560).
    pub duplicates: u64,
    /// Frames that came after a later one (RFC 4737), on the same CPU of the receiver.
    pub reordered: u64,
    /// The highest sequence number.
    pub highest: u64,
}

/// What came of one flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowGot {
    /// `address:port` of the source.
    pub source: String,
    /// `address:port` of the destination.
    pub destination: String,
    /// Its frames, copies included.
    pub received: u64,
}

/// What a receiver saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReceiveRecord {
    /// What was asked for.
    pub plan: ReceivePlan,
    /// The mode obtained.
    pub mode: ReceiveMode,
    /// Why not a better one, a sentence each.
    pub not_better: Vec<String>,
    /// One per stream that was seen.
    pub streams: Vec<StreamGot>,
    /// Frames without a signature.
    pub foreign: u64,
    /// Bytes of the frames with a signature, with FCS.
    pub bytes: u64,
    /// First to last frame.
    pub elapsed_ns: u64,
    /// Cumulative.
    pub intervals: Vec<FrameInterval>,
    /// Time from the stamp in a frame to its arrival, ns; only where both ends share a clock.
    pub latency_ns: Option<Distribution>,
    /// Time between two arrivals, ns, sampled.
    pub gaps_ns: Option<Distribution>,
    /// Flows, if they were asked for, busiest first.
    pub flows: Vec<FlowGot>,
    /// Flows that found no room in the table.
    pub flows_left_out: u64,
}

impl ReceiveRecord {
    /// Frames that came, each once.
    #[must_use]
    pub fn distinct(&self) -> u64 {
        self.streams.iter().map(|stream| stream.received.saturating_sub(stream.duplicates)).sum()
    }

    /// Frames a second, each counted once.
    #[must_use]
    pub fn received_pps(&self) -> f64 {
        per_second(self.distinct(), self.elapsed_ns)
    }
}

/// A generator and a receiver over the same time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FrameTrial {
    /// The generators, one per direction.
    pub sent: GenerateRecord,
    /// Their receivers.
    pub got: ReceiveRecord,
}

impl FrameTrial {
    /// Sent and not received; negative where more came than were sent, which makes a trial invalid.
    #[must_use]
    pub fn lost(&self) -> i64 {
        let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        signed(self.sent.sent()).saturating_sub(signed(self.got.distinct()))
    }
}
