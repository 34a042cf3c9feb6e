//! The view of frames from their records.

mod intervals;

use narrows_model::load::frames::{FrameInterval, FrameLoad, FrameTrial, GenerateRecord, ReceiveRecord, StreamGot};
use narrows_model::load::frames_report::{
    FrameRate, FramesLost, FramesReceived, FramesReport, FramesSent, ReceivedInterval, SCHEMA, SentInterval,
};
use narrows_model::words::figures::float;

/// Frame size and link speed, which turn frames into bits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// Mean frame size with FCS where the samples do not have it; `None` if unknown.
    pub frame_bytes: Option<f64>,
    /// Bits per second on the wire; `None` if unknown.
    pub link_bps: Option<u64>,
}

impl Scale {
    fn bytes(self) -> f64 {
        self.frame_bytes.filter(|bytes| bytes.is_finite()).unwrap_or(0.0)
    }
}

/// One interval of a generator. `before` is the sample at its begin (`None` at the start), `now` the one at its end.
pub fn sent_interval(before: Option<FrameInterval>, now: FrameInterval, scale: Scale) -> SentInterval {
    intervals::sent(before.unwrap_or_default(), now, scale.bytes(), scale.link_bps)
}

/// One interval of a receiver, from the same samples.
pub fn received_interval(before: Option<FrameInterval>, now: FrameInterval, scale: Scale) -> ReceivedInterval {
    intervals::received(before.unwrap_or_default(), now, scale.bytes(), scale.link_bps)
}

/// The view of a generator. `link_bps`: the link's bit/s on the wire, if known.
pub fn generate(record: &GenerateRecord, link_bps: Option<u64>) -> FramesReport {
    FramesReport { sent: Some(sent(record, link_bps)), ..empty(link_bps) }
}

pub fn receive(record: &ReceiveRecord, link_bps: Option<u64>) -> FramesReport {
    FramesReport { received: Some(received(record, link_bps)), ..empty(link_bps) }
}

/// The view of both, over the same time.
pub fn trial(trial: &FrameTrial, link_bps: Option<u64>) -> FramesReport {
    let frames = trial.lost();
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
