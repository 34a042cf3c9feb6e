//! A receiver: the mode chosen, counted while it lives, read at the end.

use super::clock as clock_of_stamps;
use super::counter::Counter;
use super::device::{Device, choose};
use super::error::FrameError;
use super::flows::{self, StreamSeen};
use super::packet_receiver::PacketReceiver;
use crate::Stop;
use narrows_model::load::frames::{FrameInterval, ReceiveMode, ReceivePlan, ReceiveRecord, StampClock, StreamGot};
use narrows_sys::{Result, clock};
use std::time::{Duration, Instant};

type Start = fn(&ReceivePlan, &Device) -> std::result::Result<Box<dyn Counter>, String>;

const MODES: &[(ReceiveMode, Start)] = &[
    (ReceiveMode::XdpNative, xdp::<true>),
    (ReceiveMode::XdpGeneric, xdp::<false>),
    (ReceiveMode::AfPacket, |plan, device| Ok(Box::new(PacketReceiver::start(plan, device)?))),
];

#[cfg(feature = "xdp")]
fn xdp<const NATIVE: bool>(plan: &ReceivePlan, device: &Device) -> std::result::Result<Box<dyn Counter>, String> {
    use narrows_sys::bpf::XdpMode;
    let mode = if NATIVE { XdpMode::Native } else { XdpMode::Generic };
    Ok(Box::new(super::live::LiveReceiver::start(plan, device, mode)?))
}

#[cfg(not(feature = "xdp"))]
fn xdp<const NATIVE: bool>(_: &ReceivePlan, _: &Device) -> std::result::Result<Box<dyn Counter>, String> {
    Err("this build lacks the feature xdp".to_owned())
}

pub struct Receiver {
    plan: ReceivePlan,
    mode: ReceiveMode,
    not_better: Vec<String>,
    counter: Box<dyn Counter>,
    device_index: u32,
    clock_bound_ns: Option<u64>,
    started: Instant,
    began_ns: u64,
    intervals: Vec<FrameInterval>,
    ended: Option<String>,
}

impl std::fmt::Debug for Receiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Receiver").field("plan", &self.plan).field("mode", &self.mode).finish_non_exhaustive()
    }
}

/// How often counters are read while waiting.
const STEP: Duration = Duration::from_millis(10);
/// The time that a sample may take, and how often it is repeated if it took longer.
const TIMELY_US: u64 = 1_000;
const ATTEMPTS: u32 = 4;
/// How often the interface is checked.
const DEVICE_CHECK_US: u64 = 200_000;

impl Receiver {
    /// Begins to count.
    /// Errors: the device is not there or down, or no mode works on it.
    pub fn start(plan: &ReceivePlan) -> std::result::Result<Self, FrameError> {
        let device = Device::find(&plan.device)?;
        if !device.up {
            return Err(FrameError::device(&plan.device, "it is down; set it up first"));
        }
        // Before any frame needs a CPU.
        let clock_bound_ns = clock_of_stamps::bound_ns();
        let start = |start: &Start| start(plan, &device);
        let (mode, counter, not_better) = choose(&plan.device, MODES, plan.mode, ReceiveMode::word, start)?;
        Ok(Self {
            plan: plan.clone(),
            mode,
            not_better,
            counter,
            device_index: device.index,
            clock_bound_ns,
            started: clock::now(),
            began_ns: clock::monotonic_ns(),
            intervals: Vec::new(),
            ended: None,
        })
    }

    /// How frames are counted.
    pub const fn mode(&self) -> ReceiveMode {
        self.mode
    }

    /// Waits until the plan's duration or idle time is over, the interface is gone, or `stop` is raised. `on_sample` is called once
    /// per interval with the totals so far.
    pub fn wait(
        &mut self,
        stop: &Stop,
        mut on_sample: impl FnMut(FrameInterval),
    ) -> std::result::Result<(), FrameError> {
        let (mut last, mut since_us) = (0, 0);
        let mut next_check_us = DEVICE_CHECK_US;
        let mut next_us = self.plan.interval_ms * 1000;
        loop {
            clock::sleep(STEP);
            let at_us = clock::micros_since(self.started);
            let frames = self.counter.frames()?;
            if frames != last {
                (last, since_us) = (frames, at_us);
            }
            if at_us >= next_us {
                self.take_sample(&mut on_sample)?;
                next_us = (at_us / (self.plan.interval_ms * 1000) + 1) * self.plan.interval_ms * 1000;
            }
            if at_us >= next_check_us {
                next_check_us = at_us + DEVICE_CHECK_US;
                self.ended = Device::gone(&self.plan.device, self.device_index);
            }
            let silent = self.plan.idle_ms.is_some_and(|idle| frames > 0 && at_us - since_us >= idle * 1000);
            if stop.is_set() || self.ended.is_some() || silent || at_us >= self.plan.duration_ms * 1000 {
                // What arrived since the last sample, too.
                if self.intervals.last().is_none_or(|it| it.frames != frames) {
                    self.take_sample(&mut on_sample)?;
                }
                return Ok(());
            }
        }
    }

    fn take_sample(&mut self, on_sample: &mut impl FnMut(FrameInterval)) -> Result<()> {
        let seen = self.timely_sample()?;
        on_sample(seen);
        self.intervals.push(seen);
        Ok(())
    }

    /// A sample whose counts match its time: a thread preempted between clock and counters reads counts of a later time.
    fn timely_sample(&mut self) -> Result<FrameInterval> {
        let mut best: Option<(u64, FrameInterval)> = None;
        for _ in 0..ATTEMPTS {
            let at_us = clock::micros_since(self.started);
            let seen = self.counter.sample(at_us)?;
            let took_us = clock::micros_since(self.started).saturating_sub(at_us);
            if best.is_none_or(|(least, _)| took_us < least) {
                best = Some((took_us, seen));
            }
            if took_us <= TIMELY_US {
                break;
            }
        }
        match best {
            Some((_, seen)) => Ok(seen),
            None => self.counter.sample(clock::micros_since(self.started)),
        }
    }

    /// Frames counted so far.
    pub fn frames(&mut self) -> std::result::Result<u64, FrameError> {
        Ok(self.counter.frames()?)
    }

    /// Reads everything and stops to count.
    pub fn finish(mut self) -> std::result::Result<ReceiveRecord, FrameError> {
        let last = self.counter.sample(clock::micros_since(self.started))?;
        let seen = self.counter.read(self.plan.per_flow)?;
        let same = |it: &FrameInterval| (it.frames, it.got) == (last.frames, last.got);
        if !self.intervals.last().is_some_and(same) {
            self.intervals.push(last);
        }
        let (flows, flows_silent) = flows::settle(&seen.flows, &seen.streams, seen.flows_left_out > 0);
        let stream = |stream: &StreamSeen| StreamGot {
            stream: stream.stream,
            received: stream.received,
            duplicates: stream.duplicates,
            reordered: stream.reordered,
            restarts: stream.restarts,
            highest: stream.next.saturating_sub(1),
        };
        Ok(ReceiveRecord {
            plan: self.plan,
            mode: self.mode,
            not_better: self.not_better,
            streams: seen.streams.iter().map(stream).collect(),
            foreign: seen.foreign,
            missed: seen.missed,
            bytes: seen.bytes,
            began_ns: Some(self.began_ns),
            first_ns: (seen.first_ns > 0).then_some(seen.first_ns),
            elapsed_ns: seen.last_ns.saturating_sub(seen.first_ns),
            intervals: self.intervals,
            latency_ns: seen.latency_ns,
            stamp_clock: Some(StampClock { bound_ns: self.clock_bound_ns, of_others: seen.other_clocks }),
            gaps_ns: seen.gaps_ns,
            flows,
            flows_left_out: seen.flows_left_out,
            flows_silent,
            ended: self.ended,
        })
    }
}
