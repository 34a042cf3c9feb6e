//! A generator: checks the interface, chooses the mode, runs the workers.

use super::broadcast::split;
use super::coordinator::{self, Done, Ended};
use super::device::{Device, choose};
use super::error::FrameError;
use super::pace::{self, FRACTION, Share};
use super::samples::Samples;
use super::tally::Counts;
use super::worker::Crew;
use super::{packet, xsk};
use crate::Stop;
use narrows_model::load::frames::{FCS_BYTES, FrameInterval, GeneratePlan, GenerateRecord, SendMode, StreamSent};
use narrows_wire::frame::Flows;
use std::time::Duration;

/// How a mode makes its crew; or a sentence why it cannot.
type Prepare = fn(&GeneratePlan, &Device, &[Share]) -> Result<Crew, String>;

const MODES: &[(SendMode, Prepare)] =
    &[(SendMode::LiveFrames, live), (SendMode::AfXdp, xsk::prepare), (SendMode::AfPacket, packet::prepare)];

#[cfg(feature = "xdp")]
fn live(plan: &GeneratePlan, device: &Device, shares: &[Share]) -> Result<Crew, String> {
    super::live::prepare(plan, device, shares)
}

#[cfg(not(feature = "xdp"))]
fn live(_: &GeneratePlan, _: &Device, _: &[Share]) -> Result<Crew, String> {
    Err("this build lacks the feature xdp".to_owned())
}

/// Sends the frames of the plan. `on_sample` is called once per interval with the totals so far.
/// Errors: the plan is unsound, the device is not there, down, or its MTU too small, or no mode works on it.
pub fn generate(
    plan: &GeneratePlan,
    stop: &Stop,
    mut on_sample: impl FnMut(FrameInterval),
) -> Result<GenerateRecord, FrameError> {
    plan.check().map_err(FrameError::Plan)?;
    let device = Device::find(&plan.device)?;
    fit(plan, &device)?;
    let shares = pace::shares(plan, Flows::of(&plan.format).count());
    let prepare = |prepare: &Prepare| prepare(plan, &device, &shares);
    let (mode, crew, not_better) = choose(&plan.device, MODES, plan.mode, SendMode::word, prepare)?;
    let samples = Samples::new(&device, &shares, &plan.format.sizes);
    let mut done = coordinator::run(crew, &samples, plan.interval_ms, shortest(&shares), stop, &mut on_sample)?;
    let refused = samples.refused(&done.counts);
    let streams = streams(&shares, &done, plan.broadcast_every);
    let due = streams.iter().map(|stream| stream.due).sum();
    let last = samples.sample(done.end_us, &done.counts, due, refused);
    // A sample without a change since the last one is left out.
    let same = |it: &FrameInterval| (it.frames, it.unsent()) == (last.frames, last.unsent());
    if !done.intervals.last().is_some_and(same) {
        on_sample(last);
        done.intervals.push(last);
    }
    Ok(record(plan, mode, not_better, streams, done, refused))
}

/// The minimum time that the workers take.
fn shortest(shares: &[Share]) -> Duration {
    let of = |share: &Share| {
        let of_limit = (u128::from(share.limit) * u128::from(share.interval)) >> FRACTION;
        Duration::from_nanos(u64::try_from(of_limit).unwrap_or(u64::MAX).min(share.duration_ns))
    };
    shares.iter().map(of).max().unwrap_or_default()
}

fn fit(plan: &GeneratePlan, device: &Device) -> Result<(), FrameError> {
    let fail = |why: String| Err(FrameError::device(&plan.device, why));
    if !device.up {
        return fail("it is down; set it up first".to_owned());
    }
    if !device.carrier {
        return fail("no link; check the cable and the peer, or wait with --wait".to_owned());
    }
    let tag = if plan.format.vlan.is_some() { 4 } else { 0 };
    let largest = device.mtu + 14 + tag + FCS_BYTES;
    if plan.format.largest() > largest {
        return fail(format!(
            "MTU {} allows frames of at most {largest} bytes, not {}; raise the MTU of both ends, or send smaller \
            frames",
            device.mtu,
            plan.format.largest()
        ));
    }
    Ok(())
}

/// `every`: one frame in this many is broadcast.
fn streams(shares: &[Share], done: &Done, every: u32) -> Vec<StreamSent> {
    let complete = matches!(done.ended, Ended::AsPlanned);
    let stream = |(share, counts): (&Share, &Counts)| {
        let seen = counts.handed + counts.skipped;
        // A worker that failed at the very end has not polled for all that was due.
        let due = share.due().filter(|_| complete).map_or(seen, |due| due.max(seen));
        StreamSent { stream: share.stream, due, handed: counts.handed }
    };
    split(shares.iter().zip(&done.counts).map(stream).collect(), every)
}

fn record(
    plan: &GeneratePlan,
    mode: SendMode,
    not_better: Vec<String>,
    streams: Vec<StreamSent>,
    done: Done,
    refused: Option<u64>,
) -> GenerateRecord {
    let first = done.counts.iter().map(|counts| counts.first_ns).filter(|at| *at > 0).min().unwrap_or(0);
    let last = done.counts.iter().map(|counts| counts.last_ns).max().unwrap_or(0);
    GenerateRecord {
        plan: plan.clone(),
        mode,
        not_better,
        streams,
        refused,
        first_ns: (first > 0).then_some(first),
        elapsed_ns: last.saturating_sub(first),
        intervals: done.intervals,
        ended: match done.ended {
            Ended::AsPlanned => None,
            Ended::Stopped => Some("it was stopped".to_owned()),
            Ended::Failed(why) => Some(why),
        },
    }
}
