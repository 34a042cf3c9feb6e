//! The samples of the counted part of a trial, stream by stream, and what a data thread did in it.

use narrows_model::Flow;
use narrows_model::load::tcp::{TcpEndRecord, TcpSample, TcpStreamRecord};

pub(super) type Counted<'a> = Vec<(&'a TcpStreamRecord, &'a [TcpSample])>;

pub(super) fn counted(end: &TcpEndRecord, flow: Flow, omit_us: u64) -> Counted<'_> {
    end.streams
        .iter()
        .filter(|stream| stream.flow == flow)
        .map(|stream| (stream, &stream.samples[begin(&stream.samples, omit_us)..]))
        .collect()
}

/// The first sample of the counted part; of a trial that was cut before it every sample counts.
fn begin(samples: &[TcpSample], omit_us: u64) -> usize {
    let from = samples.partition_point(|sample| sample.at_us < omit_us);
    if samples.len() - from < 2 { 0 } else { from }
}

/// Goodput over all streams and the length of the counted part in seconds, from the samples of the whole trial.
pub(super) fn goodput(whole: &Counted<'_>, omit_us: u64) -> Option<(f64, f64)> {
    let (mut bps, mut longest_us) = (0.0, 0);
    for (_, samples) in whole {
        let first = samples.get(TcpSample::after_a_hole(samples, begin(samples, omit_us)))?;
        let last = samples.last()?;
        let span = last.at_us.checked_sub(first.at_us).filter(|&us| us > 0)?;
        bps += last.bytes.saturating_sub(first.bytes) as f64 * 8e6 / span as f64;
        longest_us = longest_us.max(span);
    }
    (longest_us > 0).then_some((bps, longest_us as f64 / 1e6))
}

pub(super) fn thread_share(samples: &[TcpSample]) -> Option<f64> {
    let (first, last) = (samples.first()?, samples.last()?);
    let span = last.at_us.checked_sub(first.at_us).filter(|&us| us > 0)?;
    // A thread is on one core at a time; the clocks are not read at quite the same instant.
    Some((last.thread_cpu_us?.saturating_sub(first.thread_cpu_us?) as f64 / span as f64).min(1.0))
}

/// From the first to the last sample that knows it: a thread that has ended is read no more.
pub(super) fn thread_waits(samples: &[TcpSample]) -> Option<f64> {
    let mut known = samples.iter().filter_map(|sample| Some((sample.at_us, sample.thread_wait_us?)));
    let (from_us, before) = known.next()?;
    let (to_us, after) = known.next_back()?;
    let span_us = to_us.checked_sub(from_us).filter(|us| *us > 0)?;
    Some((after.saturating_sub(before) as f64 / span_us as f64).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_hole_held_back_before_the_count_is_no_goodput() {
        let sample = |at: u64, bytes| TcpSample { at_us: at * 100_000, bytes, ..TcpSample::default() };
        // 100 Mbit/s are 1.25 MB in each tenth of a second; a hole from 1.8 s on is filled in the interval that ends at 2.1 s.
        let bytes = |at: u64| if (18..=20).contains(&at) { 18 * 1_250_000 } else { at * 1_250_000 };
        let holed: Vec<TcpSample> = (0..=40).map(|at| sample(at, bytes(at))).collect();
        let steady: Vec<TcpSample> = (0..=40).map(|at| sample(at, at * 1_250_000)).collect();
        let stream = TcpStreamRecord::default();
        let of = |samples: &[TcpSample], omit_us| goodput(&vec![(&stream, samples)], omit_us).expect("samples");
        assert_eq!(of(&steady, 2_000_000), (100e6, 2.0));
        assert_eq!(of(&holed, 2_000_000), (100e6, 1.9), "what came at 2.1 s was sent before 2 s");
        // A hole within the counted part is filled in it, and one that never is counts.
        assert_eq!(of(&holed, 1_000_000), (100e6, 3.0));
        assert_eq!(of(&holed[..=20], 1_900_000), (0.0, 0.1));
    }
}
