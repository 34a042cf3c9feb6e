//! A generator: the device looked at, the mode chosen, the workers run.

use super::broadcast::set_apart;
use super::conductor::{self, Done, Ended};
use super::error::FrameError;
use super::looks::Looks;
use super::pace::{self, FRACTION, Share};
use super::tally::Counts;
use super::{packet, xsk};
use crate::Stop;
use narrows_model::load::frames::{FCS_BYTES, FrameInterval, GeneratePlan, GenerateRecord, SendMode, StreamSent};
#[cfg(feature = "xdp")]
use narrows_sys::netdev::{self, XdpFeatures};
use narrows_sys::rtnl::Links;
use narrows_wire::frame::Flows;
use std::time::Duration;

const ENODEV: i32 = 19;

/// The device that frames leave by.
#[derive(Debug, Clone)]
pub(super) struct Device {
    pub(super) name: String,
    pub(super) index: u32,
    pub(super) mtu: u32,
    pub(super) up: bool,
    pub(super) carrier: bool,
    /// `None` where the kernel does not tell.
    #[cfg(feature = "xdp")]
    pub(super) features: Option<XdpFeatures>,
}

impl Device {
    pub(super) fn find(name: &str) -> Result<Self, FrameError> {
        let link = Links::open().and_then(|mut links| links.get(name));
        let link = link.map_err(|error| FrameError::device(name, error.to_string()))?;
        Ok(Self {
            name: name.to_owned(),
            index: link.index,
            mtu: link.mtu,
            up: link.up,
            carrier: link.carrier,
            #[cfg(feature = "xdp")]
            features: netdev::xdp_features(link.index).ok().flatten(),
        })
    }

    /// Why nothing leaves or comes by the device with this name and number any more, where that is so.
    pub(super) fn gone(name: &str, index: u32) -> Option<String> {
        match Links::open().and_then(|mut links| links.get(name)) {
            Ok(link) if link.index == index => None,
            Ok(_) => Some(format!("device {name} is gone, and another one has its name")),
            Err(error) if error.source.errno() == Some(ENODEV) => Some(format!("device {name} is gone")),
            // What the kernel does not tell now it may tell later.
            Err(_) => None,
        }
    }

    /// Likewise, of one that shall send: also where it was set down.
    pub(super) fn out_of_order(&self) -> Option<String> {
        let down = || Links::open().and_then(|mut links| links.get(&self.name)).is_ok_and(|link| !link.up);
        Self::gone(&self.name, self.index)
            .or_else(|| down().then(|| format!("device {} was set down", self.name)))
            .map(|why| format!("{why}; what was handed to it last may not have left"))
    }

    /// Frames to send that it dropped, by its own counter.
    pub(super) fn dropped(&self) -> Option<u64> {
        Links::open().and_then(|mut links| links.get(&self.name)).map(|link| link.tx_dropped).ok()
    }
}

/// One worker in whatever mode; it lives on the thread that runs it.
pub(super) trait Worker: Send {
    /// Sends for a moment, or until its thread is interrupted; whether anything is left to send.
    fn work(&mut self) -> Result<bool, FrameError>;
}

/// What it has done, told to other threads.
pub(super) trait Meter: Send + Sync {
    fn counts(&self) -> Counts;

    /// Whether nothing is left to send though the worker may still be in a call: then its thread is interrupted.
    fn done(&self) -> bool {
        false
    }

    /// Whether it is on its CPU and waits for nothing but the start.
    fn ready(&self) -> bool;

    /// Tells it when sending begins, `CLOCK_MONOTONIC`.
    fn start(&self, at_ns: u64) -> narrows_sys::Result<()>;
}

/// Workers, each with its meter.
pub(super) struct Crew {
    pub(super) workers: Vec<(Box<dyn Worker>, std::sync::Arc<dyn Meter>)>,
}

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
    Err("this program was built without the feature xdp".to_owned())
}

/// Sends the frames of the plan. `look` is called once an interval with what was handed over so far.
///
/// # Errors
/// The plan is unsound, the device is not there, down, or its MTU too small, or no mode works on it.
pub fn generate(
    plan: &GeneratePlan,
    stop: &Stop,
    mut look: impl FnMut(FrameInterval),
) -> Result<GenerateRecord, FrameError> {
    plan.check().map_err(FrameError::Plan)?;
    let device = Device::find(&plan.device)?;
    fit(plan, &device)?;
    let shares = pace::shares(plan, Flows::of(&plan.format).count());
    let mut not_better = Vec::new();
    for (mode, prepare) in MODES {
        if plan.mode.is_some_and(|wanted| wanted != *mode) {
            continue;
        }
        match prepare(plan, &device, &shares) {
            Ok(crew) => {
                let looks = Looks::new(&device, &shares, &plan.format.sizes);
                let mut done = conductor::run(crew, &looks, plan.interval_ms, shortest(&shares), stop, &mut look)?;
                let refused = looks.refused(&done.counts);
                let streams = streams(&shares, &done, plan.broadcast_every);
                let due = streams.iter().map(|stream| stream.due).sum();
                let last = looks.look(done.end_us, &done.counts, due, refused);
                // A look in which nothing happened since the one before is none.
                let told = |it: &FrameInterval| (it.frames, it.unsent()) == (last.frames, last.unsent());
                if !done.intervals.last().is_some_and(told) {
                    look(last);
                    done.intervals.push(last);
                }
                return Ok(record(plan, *mode, not_better, streams, done, refused));
            }
            Err(why) => not_better.push(format!("{}: {why}", mode.word())),
        }
    }
    Err(FrameError::NoMode { device: plan.device.clone(), why: not_better })
}

/// How long the workers take at least.
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
        return fail("it has no link; check the cable and the other end, or wait with --wait".to_owned());
    }
    let tag = if plan.format.vlan.is_some() { 4 } else { 0 };
    let largest = device.mtu + 14 + tag + FCS_BYTES;
    if plan.format.largest() > largest {
        return fail(format!(
            "its MTU of {} carries frames of at most {largest} bytes, not {}; raise the MTU of both ends or send smaller frames",
            device.mtu,
            plan.format.largest()
        ));
    }
    Ok(())
}

/// `every`: so-manyth frames that go to all stations.
fn streams(shares: &[Share], done: &Done, every: u32) -> Vec<StreamSent> {
    let complete = matches!(done.ended, Ended::AsPlanned);
    let stream = |(share, counts): (&Share, &Counts)| {
        let seen = counts.handed + counts.skipped;
        // A worker that failed at the very end has not looked at all that was due.
        let due = share.due().filter(|_| complete).map_or(seen, |due| due.max(seen));
        StreamSent { stream: share.stream, due, handed: counts.handed }
    };
    set_apart(shares.iter().zip(&done.counts).map(stream).collect(), every)
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
