//! What each data thread has, and what it leaves.

use super::stream::UdpStream;
use crate::common::counters;
use crate::common::outcome::Outcome;
use crate::common::threads::Control;
use narrows_model::{Place, UdpPlan, UdpReceived, UdpSent};
use std::time::Duration;

/// The totals of a stream: datagrams, bytes, calls; from [`ERRORS`] on a sender's, from [`LOST`] on a receiver's.
pub(super) type Counters = counters::Counters<9>;
pub(super) const ERRORS: usize = 3;
/// Then: duplicates, reordered, jitter (the bits of a float).
pub(super) const LOST: usize = 5;

pub(super) struct Worker<'a> {
    pub(super) place: Place,
    pub(super) plan: &'a UdpPlan,
    pub(super) control: &'a Control<'a>,
    /// Where in its flow the stream is: the bursts of several streams take turns.
    pub(super) turn: u32,
    pub(super) stream: &'a UdpStream,
    pub(super) counters: &'a Counters,
}

/// What a data thread leaves.
pub(super) struct Left {
    pub(super) outcome: Outcome,
    /// How long it went on after its last data: for the answer to its end message, or for stragglers.
    pub(super) waited: Duration,
    /// The largest datagram that it sends, or that arrived.
    pub(super) datagram_bytes: Option<u32>,
    pub(super) method: &'static str,
    pub(super) remark: Option<String>,
    pub(super) sent: Option<UdpSent>,
    pub(super) received: Option<UdpReceived>,
}
