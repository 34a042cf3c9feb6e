//! What an end reports while a trial runs.

use narrows_model::Flow;

/// All streams of one end at the end of an interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress<S> {
    /// Since the trial began on this end.
    pub at_us: u64,
    /// By id. A stream that has ended shows its last sample.
    pub streams: Vec<StreamProgress<S>>,
    /// Whether it is the last report.
    pub done: bool,
}

/// One stream at the end of an interval.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamProgress<S> {
    /// Its number.
    pub id: u32,
    /// Which way its data goes.
    pub flow: Flow,
    /// Totals so far.
    pub sample: S,
}
