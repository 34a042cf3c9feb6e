//! The view of frames that were generated, received, or both: what `narrows generate` and `narrows receive` print in every
//! format. Derived from their records.

use crate::load::frames::{FlowGot, FrameFormat, FrameLoad, ReceiveMode, SendMode, StampClock, StreamGot, StreamSent};
use crate::load::line_rate::wire_bits;
use crate::load::udp::record::Distribution;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the JSON form.
pub const SCHEMA: &str = "narrows.frames/1";

/// A rate of frames in all its units.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FrameRate {
    /// Frames a second.
    pub pps: f64,
    /// Bits a second on the wire: preamble and gap included.
    pub wire_bps: f64,
    /// Of the line rate, 1: all of it; `None` where the link's rate is not known.
    pub of_line: Option<f64>,
}

impl FrameRate {
    /// So many frames a second of such a (mean) size with FCS, on a link of that rate.
    pub fn new(pps: f64, frame_bytes: f64, link_bps: Option<u64>) -> Self {
        let wire_bps = pps * wire_bits(frame_bytes);
        let of_line = link_bps.filter(|bps| *bps > 0).map(|bps| wire_bps / bps as f64);
        Self { pps, wire_bps, of_line }
    }

    /// The line rate of a link for frames of such a (mean) size with FCS: `link ÷ (8·(size + 20))` frames a second.
    pub fn line(frame_bytes: f64, link_bps: u64) -> Self {
        let wire_bps = link_bps as f64;
        Self { pps: wire_bps / wire_bits(frame_bytes), wire_bps, of_line: Some(1.0) }
    }
}

/// Frames as their reader meets them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FramesReport {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Bits per second on the wire: what shares of the line rate refer to.
    pub link_bps: Option<u64>,
    /// What the generator saw; `None` where only a receiver ran.
    pub sent: Option<FramesSent>,
    /// What the receiver saw; `None` where only a generator ran.
    pub received: Option<FramesReceived>,
    /// What went missing in between, where both ends are known.
    pub lost: Option<FramesLost>,
}

/// The generator's side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FramesSent {
    /// The device that sent.
    pub device: String,
    /// The mode obtained.
    pub mode: SendMode,
    /// Why not a better one, a sentence each.
    pub not_better: Vec<String>,
    /// The frames.
    pub format: FrameFormat,
    /// The load asked for, over all workers.
    pub load: FrameLoad,
    /// Frames due by load and time; without a load, those that were tried.
    pub due: u64,
    /// Frames that left, as far as the device tells.
    pub sent: u64,
    /// Frames due that never left.
    pub unsent: u64,
    /// Frames handed over that the device dropped by its own counter; `None`: it has none.
    pub refused: Option<u64>,
    /// First to last frame.
    pub elapsed_ns: u64,
    /// The rate at which they left.
    pub rate: FrameRate,
    /// Achieved of what was asked for; `None` where as much as possible was asked for.
    pub of_asked: Option<f64>,
    /// One per worker.
    pub streams: Vec<StreamSent>,
    /// In the order of time.
    pub intervals: Vec<SentInterval>,
    /// Why it ended early, if it did.
    pub ended: Option<String>,
}

/// The receiver's side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FramesReceived {
    /// The device that was watched.
    pub device: String,
    /// The mode obtained.
    pub mode: ReceiveMode,
    /// Why not a better one, a sentence each.
    pub not_better: Vec<String>,
    /// Frames that came, each once.
    pub received: u64,
    /// Copies of frames that had come already.
    pub duplicates: u64,
    /// Frames that came after a later one of their stream.
    pub reordered: u64,
    /// Numbers below the highest of each stream whose frame did not come: lost, as far as a receiver alone can know.
    pub lost: u64,
    /// Of the frames up to the highest of each stream; `None` where none came.
    pub lost_ratio: Option<f64>,
    /// Frames without a signature.
    pub foreign: u64,
    /// Frames of any kind that found no room at the receiver itself: they look lost, though they came. `None`: nobody counts
    /// them.
    pub missed: Option<u64>,
    /// How often the numbers of a stream began anew: what came then counts as duplicated or late.
    pub restarts: u64,
    /// Their mean size with FCS; `None` where none came.
    pub frame_bytes: Option<f64>,
    /// First to last frame.
    pub elapsed_ns: u64,
    /// The rate at which they came, each counted once.
    pub rate: FrameRate,
    /// Time from the stamp in a frame to its arrival, ns; `None` where both ends do not share a clock.
    pub latency_ns: Option<Distribution>,
    /// That clock, and how exact it is; `None` in records that do not have it.
    pub stamp_clock: Option<StampClock>,
    /// Time between two arrivals, ns, sampled.
    pub gaps_ns: Option<Distribution>,
    /// One per stream that was seen.
    pub streams: Vec<StreamGot>,
    /// Flows, if they were asked for, busiest first.
    pub flows: Vec<FlowGot>,
    /// Frames of flows that found no room in the table.
    pub flows_left_out: u64,
    /// Flows of which no frame came at all; `None`: it cannot be known.
    pub flows_silent: Option<u64>,
    /// In the order of time.
    pub intervals: Vec<ReceivedInterval>,
    /// Why it ended early, if it did.
    pub ended: Option<String>,
}

/// What went missing between both ends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FramesLost {
    /// Sent and not received; negative where more came than were sent, so that the counters cannot both be right.
    pub frames: i64,
    /// Of those sent; `None` where none was.
    pub ratio: Option<f64>,
}

/// One interval of a generator: not cumulative.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SentInterval {
    /// Since the start.
    pub from_s: f64,
    /// Since the start.
    pub to_s: f64,
    /// Frames that left, as far as the device tells.
    pub frames: u64,
    /// Bytes on the wire of the frames handed to the device, with preamble and gap; `None` in old records.
    pub wire_bytes: Option<u64>,
    /// Their rate.
    pub rate: FrameRate,
    /// Frames that did not leave though they were due; `None` in old records.
    pub unsent: Option<UnsentFrames>,
}

/// Why frames that were due did not leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnsentFrames {
    /// All of them. Negative where more caught up than fell behind.
    pub frames: i64,
    /// By how many frames the generator fell behind its load (negative: caught up), neither sent nor given up yet.
    pub behind: i64,
    /// Given up after a stall.
    pub skipped: u64,
    /// Dropped by the device by its own counter; `None`: it has none.
    pub refused: Option<u64>,
}

/// One interval of a receiver: not cumulative.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReceivedInterval {
    /// Since the start.
    pub from_s: f64,
    /// Since the start.
    pub to_s: f64,
    /// Frames received, copies included.
    pub frames: u64,
    /// Their bytes with FCS; `None` in old records.
    pub bytes: Option<u64>,
    /// Their rate.
    pub rate: FrameRate,
    /// Numbers that were passed by in this interval and whose frame has not come, less those of before that came now: negative
    /// where more late frames came than others went missing. `None` in old records, as all that follows.
    pub lost: Option<i64>,
    /// Frames that came after a later one.
    pub reordered: Option<u64>,
    /// Copies of frames that had come already.
    pub duplicates: Option<u64>,
    /// Frames without a signature.
    pub foreign: Option<u64>,
    /// Frames of any kind that found no room at the receiver itself; `None` also where nobody counts them.
    pub missed: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_carries_what_the_standard_says() {
        // IEEE 802.3: 64 bytes with FCS take 84 on the wire.
        let line = FrameRate::line(64.0, 10_000_000_000);
        assert!((line.pps - 14_880_952.38).abs() < 0.01, "{line:?}");
        let half = FrameRate::new(line.pps / 2.0, 64.0, Some(10_000_000_000));
        assert!((half.wire_bps - 5e9).abs() < 1.0 && half.of_line.is_some_and(|part| (part - 0.5).abs() < 1e-9));
        assert_eq!(FrameRate::new(1.0, 64.0, None).of_line, None);
        assert_eq!(FrameRate::new(1.0, 64.0, Some(0)).of_line, None, "no link is infinitely loaded");
    }
}
