//! What an end tells while a trial runs.

use narrows_model::{Flow, TcpSample};

/// All streams of one end at the end of an interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Since the trial began on this end.
    pub at_us: u64,
    /// By id. A stream that has ended shows its last sample.
    pub streams: Vec<StreamProgress>,
    /// Whether it is the last word.
    pub done: bool,
}

/// One stream at the end of an interval.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamProgress {
    /// Its number.
    pub id: u32,
    /// Which way its data goes.
    pub flow: Flow,
    /// Totals so far; what was moved is in `sample.bytes`.
    pub sample: TcpSample,
}
