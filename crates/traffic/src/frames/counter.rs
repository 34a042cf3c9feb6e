//! What a receiver counts, whatever its mode.

use super::flows::{FlowSeen, StreamSeen};
use narrows_model::Distribution;
use narrows_model::load::frames::FrameInterval;
use narrows_sys::Result;

/// All that a counter knows.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    pub(super) streams: Vec<StreamSeen>,
    pub(super) foreign: u64,
    /// Frames dropped before the counter; `None`: not counted.
    pub(super) missed: Option<u64>,
    pub(super) bytes: u64,
    pub(super) first_ns: u64,
    pub(super) last_ns: u64,
    pub(super) latency_ns: Option<Distribution>,
    /// Stamped frames of another machine.
    pub(super) other_clocks: u64,
    pub(super) gaps_ns: Option<Distribution>,
    pub(super) flows: Vec<FlowSeen>,
    /// Frames of flows without room.
    pub(super) flows_left_out: u64,
}

/// Counts frames from its start until it is dropped.
pub(super) trait Counter: Send {
    /// Frames with a signature so far.
    fn frames(&mut self) -> Result<u64>;
    /// The totals now. Frames are counted concurrently: one that is just being counted must not look lost.
    fn sample(&mut self, at_us: u64) -> Result<FrameInterval>;
    fn read(&mut self, per_flow: bool) -> Result<Seen>;
}
