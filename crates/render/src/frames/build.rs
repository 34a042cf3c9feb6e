//! The view of frames from their records.

use crate::figures::float;
use narrows_model::frames::{FrameInterval, FrameLoad, FrameTrial, GenerateRecord, ReceiveRecord};
use narrows_model::frames_report::{
    FrameRate, FramesInterval, FramesLost, FramesReceived, FramesReport, FramesSent, SCHEMA,
};

/// The view of a generator. `link_bps`: bits per second on the wire, where they are known.
#[must_use]
pub fn generate(record: &GenerateRecord, link_bps: Option<u64>) -> FramesReport {
    FramesReport { sent: Some(sent(record, link_bps)), ..empty(link_bps) }
}

/// The view of a receiver.
#[must_use]
pub fn receive(record: &ReceiveRecord, link_bps: Option<u64>) -> FramesReport {
    FramesReport { received: Some(received(record, link_bps)), ..empty(link_bps) }
}

/// The view of both over the same time.
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

fn sent(record: &GenerateRecord, link_bps: Option<u64>) -> FramesSent {
    let plan = &record.plan;
    let rate = FrameRate::new(record.sent_pps(), plan.format.mean_bytes(), link_bps);
    let of_asked = match plan.load {
        FrameLoad::FramesPerSecond(asked) if asked > 0.0 => Some(rate.pps / asked),
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
        intervals: intervals(&record.intervals, plan.format.mean_bytes(), link_bps),
        ended: record.ended.clone(),
    }
}

fn received(record: &ReceiveRecord, link_bps: Option<u64>) -> FramesReceived {
    let sum = |of: fn(&narrows_model::frames::StreamGot) -> u64| {
        record.streams.iter().fold(0u64, |sum, stream| sum.saturating_add(of(stream)))
    };
    let all = sum(|stream| stream.received);
    let frame_bytes = (all > 0).then(|| float(record.bytes) / float(all));
    FramesReceived {
        device: record.plan.device.clone(),
        mode: record.mode,
        not_better: record.not_better.clone(),
        received: record.distinct(),
        duplicates: sum(|stream| stream.duplicates),
        reordered: sum(|stream| stream.reordered),
        foreign: record.foreign,
        frame_bytes,
        elapsed_ns: record.elapsed_ns,
        rate: FrameRate::new(record.received_pps(), frame_bytes.unwrap_or(0.0), link_bps),
        latency_ns: record.latency_ns.clone(),
        gaps_ns: record.gaps_ns.clone(),
        streams: record.streams.clone(),
        flows: record.flows.clone(),
        flows_left_out: record.flows_left_out,
        intervals: intervals(&record.intervals, frame_bytes.unwrap_or(0.0), link_bps),
    }
}

fn intervals(cumulative: &[FrameInterval], frame_bytes: f64, link_bps: Option<u64>) -> Vec<FramesInterval> {
    let before = [FrameInterval::default()];
    before
        .iter()
        .chain(cumulative)
        .zip(cumulative)
        .map(|(from, to)| interval(*from, *to, frame_bytes, link_bps))
        .collect()
}

/// One interval from its two ends.
pub(super) fn interval(
    from: FrameInterval,
    to: FrameInterval,
    frame_bytes: f64,
    link_bps: Option<u64>,
) -> FramesInterval {
    let frames = to.frames.saturating_sub(from.frames);
    let us = to.at_us.saturating_sub(from.at_us);
    let pps = if us == 0 { 0.0 } else { float(frames) * 1e6 / float(us) };
    let seconds = |us: u64| float(us) / 1e6;
    FramesInterval {
        from_s: seconds(from.at_us),
        to_s: seconds(to.at_us),
        frames,
        rate: FrameRate::new(pps, frame_bytes, link_bps),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_differences() {
        let at = |at_us, frames| FrameInterval { at_us, frames };
        let of = intervals(&[at(1_000_000, 100), at(3_000_000, 400), at(3_000_000, 400)], 64.0, None);
        let seen: Vec<_> = of.iter().map(|it| (it.frames, it.rate.pps)).collect();
        assert_eq!(seen, [(100, 100.0), (300, 150.0), (0, 0.0)], "an interval without time has no rate");
        assert!((of[1].rate.wire_bps - 150.0 * 672.0).abs() < 1e-9);
    }
}
