//! The samples of the counted part of a trial, stream by stream, and what a data thread did in it.

use narrows_model::Flow;
use narrows_model::load::tcp::{TcpEndRecord, TcpSample, TcpStreamRecord};

pub(super) type Counted<'a> = Vec<(&'a TcpStreamRecord, &'a [TcpSample])>;

pub(super) fn counted(end: &TcpEndRecord, flow: Flow, omit_us: u64) -> Counted<'_> {
    end.streams
        .iter()
        .filter(|stream| stream.flow == flow)
        .map(|stream| {
            let from = stream.samples.partition_point(|sample| sample.at_us < omit_us);
            // Of a trial that was cut before its counted part every sample counts.
            let from = if stream.samples.len() - from < 2 { 0 } else { from };
            (stream, &stream.samples[from..])
        })
        .collect()
}

pub(super) fn thread_share(samples: &[TcpSample]) -> Option<f64> {
    let (first, last) = (samples.first()?, samples.last()?);
    let span = last.at_us.checked_sub(first.at_us).filter(|&us| us > 0)?;
    #[allow(clippy::cast_precision_loss)]
    // A thread is on one core at a time; the clocks are not read at quite the same instant.
    Some((last.thread_cpu_us?.saturating_sub(first.thread_cpu_us?) as f64 / span as f64).min(1.0))
}

/// From the first to the last sample that knows it: a thread that has ended is read no more.
pub(super) fn thread_waits(samples: &[TcpSample]) -> Option<f64> {
    let mut known = samples.iter().filter_map(|sample| Some((sample.at_us, sample.thread_wait_us?)));
    let (from_us, before) = known.next()?;
    let (to_us, after) = known.next_back()?;
    let span_us = to_us.checked_sub(from_us).filter(|us| *us > 0)?;
    #[allow(clippy::cast_precision_loss)] // microseconds of one trial
    Some((after.saturating_sub(before) as f64 / span_us as f64).min(1.0))
}
