//! The view of frames from their records.

use super::intervals;
use crate::figures::float;
use narrows_model::load::frames::{FrameLoad, FrameTrial, GenerateRecord, ReceiveRecord, StreamGot};
use narrows_model::load::frames_report::{FrameRate, FramesLost, FramesReceived, FramesReport, FramesSent, SCHEMA};

/// The view of a generator. `link_bps`: the link's bit/s on the wire, if known.
#[must_use]
pub fn generate(record: &GenerateRecord, link_bps: Option<u64>) -> FramesReport {
    FramesReport { sent: Some(sent(record, link_bps)), ..empty(link_bps) }
}

/// The view of a receiver.
#[must_use]
pub fn receive(record: &ReceiveRecord, link_bps: Option<u64>) -> FramesReport {
    FramesReport { received: Some(received(record, link_bps)), ..empty(link_bps) }
}

/// The view of both, over the same time.
#[must_use]
pub fn trial(trial: &FrameTrial, link_bps: Option<u64>) -> FramesReport {
    let frames = trial.lost();
    #[allow(clippy::cast_precision_loss)]
    let ratio = (trial.sent.sent() > 0).then(|| frames as f64 / float(trial.sent.sent()));
    FramesReport {
        sent: Some(sent(&trial.sent, link_bps)),
        received: Some(received(&trial.got, link_bps)),
        lost: Some(FramesLost { frames, ratio }),
        ..empty(link_bps)
    }
}

fn empty(link_bps: Option<u64>) -> FramesReport {
    FramesReport { schema: SCHEMA.to_owned(), link_bps, sent: None, received: None, lost: None }
}

/// Frames per second between the first and the last: ten frames have nine gaps. 0 without a gap.
fn pps(frames: u64, elapsed_ns: u64) -> f64 {
    if elapsed_ns == 0 { 0.0 } else { float(frames.saturating_sub(1)) * 1e9 / float(elapsed_ns) }
}

fn sent(record: &GenerateRecord, link_bps: Option<u64>) -> FramesSent {
    let plan = &record.plan;
    let rate = FrameRate::new(pps(record.sent(), record.elapsed_ns), plan.format.mean_bytes(), link_bps);
    let of_asked = match plan.load {
        // Frames sent at one instant have no rate.
        FrameLoad::FramesPerSecond(asked) if asked > 0.0 && record.elapsed_ns > 0 => Some(rate.pps / asked),
        FrameLoad::FramesPerSecond(_) | FrameLoad::Max => None,
    };
    FramesSent {
        device: plan.device.clone(),
        mode: record.mode,
        not_better: record.not_better.clone(),
        format: plan.format.clone(),
        load: plan.load,
        due: record.due(),
        sent: record.sent(),
        unsent: record.unsent(),
        refused: record.refused,
        elapsed_ns: record.elapsed_ns,
        rate,
        of_asked,
        streams: record.streams.clone(),
        intervals: intervals::each(&record.intervals, |from, to| {
            intervals::sent(from, to, plan.format.mean_bytes(), link_bps)
        }),
        ended: record.ended.clone(),
    }
}

fn received(record: &ReceiveRecord, link_bps: Option<u64>) -> FramesReceived {
    let sum = |of: fn(&StreamGot) -> u64| record.streams.iter().fold(0u64, |sum, it| sum.saturating_add(of(it)));
    let all = sum(|stream| stream.received);
    let frame_bytes = (all > 0).then(|| float(record.bytes) / float(all));
    let lost = sum(StreamGot::lost);
    let numbers = record.distinct().saturating_add(lost);
    FramesReceived {
        device: record.plan.device.clone(),
        mode: record.mode,
        not_better: record.not_better.clone(),
        received: record.distinct(),
        duplicates: sum(|stream| stream.duplicates),
        reordered: sum(|stream| stream.reordered),
        lost,
        lost_ratio: (numbers > 0).then(|| float(lost) / float(numbers)),
        foreign: record.foreign,
        missed: record.missed,
        restarts: sum(|stream| stream.restarts),
        frame_bytes,
        elapsed_ns: record.elapsed_ns,
        rate: FrameRate::new(pps(record.distinct(), record.elapsed_ns), frame_bytes.unwrap_or(0.0), link_bps),
        latency_ns: record.latency_ns.clone(),
        stamp_clock: record.stamp_clock,
        gaps_ns: record.gaps_ns.clone(),
        streams: record.streams.clone(),
        flows: record.flows.clone(),
        flows_left_out: record.flows_left_out,
        flows_silent: record.flows_silent,
        intervals: intervals::each(&record.intervals, |from, to| {
            intervals::received(from, to, frame_bytes.unwrap_or(0.0), link_bps)
        }),
        ended: record.ended.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_frames_have_nine_distances() {
        assert_eq!((pps(10, 9_000_000), pps(1, 0), pps(1, 5), pps(0, 0)), (1_000.0, 0.0, 0.0, 0.0));
    }
}
