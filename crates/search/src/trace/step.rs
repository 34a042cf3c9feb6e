//! What the planner wants next.

use narrows_model::ProbePurpose;

/// What the caller does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Send(Order),
    /// Wait for answers until this time at most, microseconds.
    Wait(u64),
    Done,
}

/// A probe to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    pub id: u64,
    pub flow: u16,
    pub ttl: u8,
    /// Its IP packet, bytes.
    pub bytes: u32,
}

/// What a phase wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// A probe: why, flow, TTL, bytes.
    Probe(ProbePurpose, u16, u8, u32),
    /// The answers of all probes on their way, or their time is over.
    Answers,
    /// This time, microseconds.
    Until(u64),
    Next,
}
