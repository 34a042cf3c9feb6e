//! What an end reports while a trial runs.

use narrows_model::{Flow, LoadSample};

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

impl<S: Into<LoadSample>> From<Progress<S>> for narrows_model::Progress {
    fn from(it: Progress<S>) -> Self {
        let stream = |it: StreamProgress<S>| narrows_model::StreamProgress {
            id: it.id,
            flow: it.flow,
            sample: it.sample.into(),
        };
        Self { at_us: it.at_us, streams: it.streams.into_iter().map(stream).collect() }
    }
}
