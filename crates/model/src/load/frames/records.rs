//! What a generator and a receiver saw: raw counts, from which rates and losses follow.

use super::{GeneratePlan, ReceiveMode, ReceivePlan, SendMode};
use crate::load::udp::record::Distribution;
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

/// One look at the counters of a generator or of a receiver. Everything in it is counted since the start: what happened
/// between two looks is their difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct FrameInterval {
    /// When it was, since the start.
    pub at_us: u64,
    /// Frames handed to the device, or counted by the receiver, copies included.
    pub frames: u64,
    /// What else a generator knew; `None` of a receiver, and where only frames were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<SentSoFar>,
    /// What else a receiver knew; `None` of a generator, and where only frames were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub got: Option<GotSoFar>,
}

/// What a generator counted since the start, beside the frames that it handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct SentSoFar {
    /// Frames due by load and time. Those neither handed over nor skipped are behind: they leave within the burst, or are
    /// skipped.
    pub due: u64,
    /// Frames that were due and skipped after a stall.
    pub skipped: u64,
    /// Frames handed over that the device dropped by its own counter; `None`: it has none.
    pub refused: Option<u64>,
    /// Of the frames handed over, on the wire: with FCS, preamble and gap.
    pub wire_bytes: u64,
}

/// What a receiver counted since the start, beside its frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct GotSoFar {
    /// Numbers up to the highest of each stream, over all streams: so many frames were sent at least. Those that did not come
    /// are lost so far; some of them may still come.
    pub numbers: u64,
    /// Copies of frames that had come already (RFC 5560).
    pub duplicates: u64,
    /// Frames that came after a later one (RFC 4737), on the same CPU of the receiver.
    pub reordered: u64,
    /// Frames without a signature.
    pub foreign: u64,
    /// Frames of any kind that found no room at the receiver itself; `None`: nobody counts them.
    #[serde(default)]
    pub missed: Option<u64>,
    /// Bytes of the frames with a signature, with FCS.
    pub bytes: u64,
}

impl FrameInterval {
    /// Frames due that have not left so far: behind, skipped, or refused by the device. `None` of a receiver.
    pub fn unsent(&self) -> Option<u64> {
        let sent = self.sent?;
        Some(sent.due.max(self.frames).saturating_sub(self.frames).saturating_add(sent.refused.unwrap_or(0)))
    }

    /// Numbers below the highest of their stream whose frame has not come so far. It shrinks when a late frame comes, and
    /// does not know of frames after the highest. `None` of a generator.
    pub fn lost(&self) -> Option<u64> {
        let got = self.got?;
        Some(got.numbers.saturating_sub(self.frames.saturating_sub(got.duplicates)))
    }
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
    /// When the first frame left, by the monotonic clock of the generator's host; `None`: none left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_ns: Option<u64>,
    /// First to last frame.
    pub elapsed_ns: u64,
    /// Cumulative, over all workers.
    pub intervals: Vec<FrameInterval>,
    /// Why it ended early, if it did.
    pub ended: Option<String>,
}

impl GenerateRecord {
    /// Frames due.
    pub fn due(&self) -> u64 {
        self.streams.iter().map(|stream| stream.due).sum()
    }

    /// Frames that left, as far as the device tells.
    pub fn sent(&self) -> u64 {
        let handed: u64 = self.streams.iter().map(|stream| stream.handed).sum();
        handed.saturating_sub(self.refused.unwrap_or(0))
    }

    /// Frames due that never left.
    pub fn unsent(&self) -> u64 {
        self.due().saturating_sub(self.sent())
    }

    /// Frames a second that left.
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
    /// How often its numbers began anew: a generator that ran again, or another one with this stream. What came then counts as
    /// duplicated or late.
    #[serde(default)]
    pub restarts: u64,
}

impl StreamGot {
    /// Numbers below its highest whose frame did not come. Frames after the highest are not among them: nobody but the
    /// generator knows of these.
    pub const fn lost(&self) -> u64 {
        if self.received == 0 {
            return 0;
        }
        (self.highest.saturating_add(1)).saturating_sub(self.received.saturating_sub(self.duplicates))
    }
}

/// What came of one flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct FlowGot {
    /// `address:port` of the source.
    pub source: String,
    /// `address:port` of the destination.
    pub destination: String,
    /// Its frames, copies included.
    pub received: u64,
    /// Copies of frames that had come already.
    #[serde(default)]
    pub duplicates: u64,
    /// Frames that came after a later one of the same flow.
    #[serde(default)]
    pub reordered: u64,
    /// Frames of it below the highest number of its stream that did not come. `None` where the flows did not take turns: then
    /// nobody but the generator knows whose frame is missing.
    #[serde(default)]
    pub lost: Option<u64>,
}

/// The clock that stamped frames are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct StampClock {
    /// By how much the clocks of two CPUs of this machine differ at most, ns, as measured: so far may a latency be from the
    /// truth. `None`: it could not be measured.
    pub bound_ns: Option<u64>,
    /// Stamped frames of another machine, whose clock says nothing here; they are no part of the latency.
    pub of_others: u64,
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
    /// Frames of any kind that found no room at the receiver itself (`PACKET_STATISTICS` of packet(7)): they look lost, though
    /// they came. `None`: nobody counts them.
    #[serde(default)]
    pub missed: Option<u64>,
    /// Bytes of the frames with a signature, with FCS.
    pub bytes: u64,
    /// When counting began, from where the intervals count, by the monotonic clock of the receiver's host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_ns: Option<u64>,
    /// When the first frame came, by the same clock; `None`: none came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_ns: Option<u64>,
    /// First to last frame.
    pub elapsed_ns: u64,
    /// Cumulative.
    pub intervals: Vec<FrameInterval>,
    /// Time from the stamp in a frame to its arrival, ns; only where both ends share a clock.
    pub latency_ns: Option<Distribution>,
    /// That clock; `None` in records that do not have it.
    #[serde(default)]
    pub stamp_clock: Option<StampClock>,
    /// Time between two arrivals, ns, sampled.
    pub gaps_ns: Option<Distribution>,
    /// Flows, if they were asked for, busiest first.
    pub flows: Vec<FlowGot>,
    /// Frames of flows that found no room in the table.
    pub flows_left_out: u64,
    /// Flows of which no frame came at all, where the flows took turns; else, and where flows were not asked for, `None`.
    #[serde(default)]
    pub flows_silent: Option<u64>,
    /// Why it ended early, if it did.
    #[serde(default)]
    pub ended: Option<String>,
}

impl ReceiveRecord {
    /// Numbers below the highest of each stream whose frame did not come.
    pub fn lost(&self) -> u64 {
        self.streams.iter().map(StreamGot::lost).sum()
    }

    /// Frames that came, each once.
    pub fn distinct(&self) -> u64 {
        self.streams.iter().map(|stream| stream.received.saturating_sub(stream.duplicates)).sum()
    }

    /// Frames a second, each counted once.
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
    pub fn lost(&self) -> i64 {
        let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        signed(self.sent.sent()).saturating_sub(signed(self.got.distinct()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_of_old_records_are_read_and_say_no_more_than_they_know() {
        let look: FrameInterval = serde_json::from_str(r#"{"at_us":1000000,"frames":7}"#).expect("a look");
        assert_eq!((look.frames, look.unsent(), look.lost()), (7, None, None));
        let text = serde_json::to_string(&look).expect("json");
        assert_eq!(text, r#"{"at_us":1000000,"frames":7}"#, "what was not known is not written");
        let flow: FlowGot = serde_json::from_str(r#"{"source":"a","destination":"b","received":7}"#).expect("a flow");
        assert_eq!((flow.received, flow.lost), (7, None));
    }

    #[test]
    fn unsent_is_behind_skipped_and_refused() {
        let sent = SentSoFar { due: 100, skipped: 10, refused: Some(5), wire_bytes: 0 };
        let look = FrameInterval { frames: 80, sent: Some(sent), ..FrameInterval::default() };
        assert_eq!(look.unsent(), Some(10 + 10 + 5));
        let ahead = FrameInterval { frames: 101, ..look };
        assert_eq!(ahead.unsent(), Some(5), "a frame that left since the load was looked up");
    }

    #[test]
    fn lost_shrinks_when_a_late_frame_comes() {
        let got = GotSoFar { numbers: 100, duplicates: 2, ..GotSoFar::default() };
        let look = |frames, got| FrameInterval { frames, got: Some(got), ..FrameInterval::default() }.lost();
        assert_eq!(look(92, got), Some(10));
        assert_eq!(look(95, GotSoFar { reordered: 3, ..got }), Some(7));
        assert_eq!(look(103, got), Some(0), "more than were sent is no negative loss");
        assert_eq!(StreamGot { received: 92, duplicates: 2, highest: 99, ..StreamGot::default() }.lost(), 10);
        assert_eq!(StreamGot::default().lost(), 0, "of a stream that never came nothing is known");
    }
}
