//! What a live view shows of a running trial.

use crate::words::place::{Flow, Place};
use crate::words::units::bps;
use std::collections::BTreeMap;
use std::fmt;

/// RTTs of the last probes to each TTL, milliseconds, oldest first; `None` without an answer.
pub type HopHistory = BTreeMap<u8, Vec<Option<f64>>>;

/// What the figures of a load are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveKind {
    /// Bits per second, RTT and retransmissions.
    Tcp,
    /// Bits per second, delay variation and lost datagrams.
    Udp,
    /// Transactions per second, latency and failures.
    Rr,
}

impl LiveKind {
    /// Names of the delay and of the loss.
    pub const fn words(self) -> [&'static str; 2] {
        match self {
            Self::Tcp => ["RTT", "Retr"],
            Self::Udp => ["delay variation", "lost"],
            Self::Rr => ["latency", "failed"],
        }
    }

    /// A rate with its unit.
    pub fn rate(self, rate: f64) -> String {
        if self == Self::Rr { format!("{rate:.0}/s") } else { bps(rate) }
    }
}

/// One direction of a running trial at one instant, seen from one end.
#[derive(Debug, Clone, PartialEq)]
pub struct LivePoint {
    pub flow: Flow,
    /// The end that says it.
    pub place: Place,
    /// Since the trial began, seconds.
    pub at_s: f64,
    /// Since the point before; bits or transactions per second.
    pub rate: f64,
    /// RTT, delay variation or latency, milliseconds.
    pub delay_ms: Option<f64>,
    /// Retransmissions, losses or failures since the trial began.
    pub lost: Option<u64>,
}

/// A step of a campaign that begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CampaignStep {
    /// From 1, in the order of the schedule.
    pub number: usize,
    /// Steps of the whole schedule.
    pub of: usize,
    /// Steps that are done.
    pub done: usize,
    /// The repetition, from 1.
    pub block: usize,
    /// The host that is measured.
    pub host: String,
    /// The level of each factor.
    pub cell: String,
    /// What this step and those after it will take, seconds.
    pub left_s: u64,
}

impl CampaignStep {
    /// Which one it is: `[3/128] block 1, server`.
    pub fn place(&self) -> String {
        format!("[{}/{}] block {}, {}", self.number, self.of, self.block, self.host)
    }
}

impl fmt::Display for CampaignStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({} s left)", self.place(), self.cell, self.left_s)
    }
}
