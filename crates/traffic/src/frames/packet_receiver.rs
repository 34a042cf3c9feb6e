//! Frames counted by a packet socket: works on every device, and misses some where many come.

use super::clock as clock_of_stamps;
use super::counter::{Counter, Seen};
use super::device::Device;
use super::flows::{FlowSeen, StreamSeen};
use crate::common::sequence_window::Window;
use narrows_model::load::frames::{FCS_BYTES, FrameInterval, GotSoFar, ReceivePlan};
use narrows_stats::Histogram;
use narrows_sys::packet_io::{BATCH, PacketReader};
use narrows_sys::{Result, clock, cpu};
use narrows_wire::frame::{FlowKey, Seen as Frame};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

const ENETDOWN: i32 = 100;
const FLOWS_MOST: usize = 65_536;

/// What the reading thread knows.
#[derive(Default)]
struct Totals {
    streams: BTreeMap<u16, Stream>,
    foreign: u64,
    missed: u64,
    bytes: u64,
    first_ns: u64,
    last_ns: u64,
    latency: Histogram,
    other_clocks: u64,
    gaps: Histogram,
    flows: HashMap<(u16, FlowKey), FlowSeen>,
    flows_left_out: u64,
}

struct Stream {
    received: u64,
    /// How often its numbers restarted.
    restarts: u64,
    window: Window,
}

/// What is watched for, beside the frames themselves.
#[derive(Debug, Clone, Copy)]
struct Watch {
    per_flow: bool,
    gaps: bool,
    clock: u16,
}

/// Reads a device until it is dropped.
pub(super) struct PacketReceiver {
    totals: Arc<Mutex<Totals>>,
    frames: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl PacketReceiver {
    pub(super) fn start(plan: &ReceivePlan, device: &Device) -> std::result::Result<Self, String> {
        let mut reader = PacketReader::open(device.index).map_err(|error| error.to_string())?;
        let totals = Arc::new(Mutex::new(Totals::default()));
        let frames = Arc::new(AtomicU64::new(0));
        let over = Arc::new(AtomicBool::new(false));
        let (theirs, count, end) = (Arc::clone(&totals), Arc::clone(&frames), Arc::clone(&over));
        let watch = Watch { per_flow: plan.per_flow, gaps: plan.gaps, clock: clock_of_stamps::id() };
        let body = move || {
            cpu::name_this_thread("frames-receive");
            while !end.load(Ordering::Relaxed) {
                let mut seen = Vec::with_capacity(BATCH);
                let got =
                    reader.receive(Duration::from_millis(50), |bytes, length| seen.push((Frame::parse(bytes), length)));
                match got {
                    // It may come up again.
                    Err(error) if error.errno() == Some(ENETDOWN) => continue,
                    Err(_) => return, // what was counted stays
                    Ok(_) => {}
                }
                let now = clock::monotonic_ns();
                let missed = reader.dropped().unwrap_or(0);
                let Ok(mut totals) = theirs.lock() else { return };
                totals.missed += missed;
                for (frame, length) in seen {
                    totals.take(frame, length as u64, now, watch);
                }
                count.store(totals.streams.values().map(|stream| stream.received).sum(), Ordering::Relaxed);
            }
        };
        let thread = std::thread::Builder::new().spawn(body).map_err(|error| error.to_string())?;
        Ok(Self { totals, frames, over, thread: Some(thread) })
    }

    fn totals(&self) -> MutexGuard<'_, Totals> {
        match self.totals.lock() {
            Ok(totals) => totals,
            Err(broken) => broken.into_inner(),
        }
    }
}

impl Totals {
    fn take(&mut self, frame: Option<Frame>, length: u64, now: u64, watch: Watch) {
        let Some(frame) = frame else {
            self.foreign += 1;
            return;
        };
        let signature = frame.signature;
        let new = || Stream { received: 0, restarts: 0, window: Window::new() };
        let stream = self.streams.entry(signature.stream).or_insert_with(new);
        // A copy of the first frame would be closer to it.
        let anew = signature.sequence == 0 && stream.window.missing() + stream.window.distinct() >= 8;
        let copies = stream.window.duplicates();
        if !stream.window.arrive(signature.sequence) {
            self.foreign += 1; // no generator is so far ahead
            return;
        }
        stream.received += 1;
        stream.restarts += u64::from(anew);
        let copy = stream.window.duplicates() > copies;
        self.bytes += length + u64::from(FCS_BYTES);
        if watch.gaps && self.last_ns > 0 {
            self.gaps.record(now.saturating_sub(self.last_ns));
        }
        if self.first_ns == 0 {
            self.first_ns = now;
        }
        self.last_ns = now;
        match signature.latency_ns(now) {
            Some(latency) if signature.clock == watch.clock => {
                self.latency.record(u64::try_from(latency).unwrap_or(0));
            }
            Some(_) => self.other_clocks += 1,
            None => {}
        }
        if watch.per_flow {
            let key = (signature.stream, frame.flow);
            let room = self.flows.len() < FLOWS_MOST;
            match self.flows.get_mut(&key) {
                Some(flow) => flow.arrive(signature.sequence, copy),
                None if room => drop(self.flows.insert(key, first(signature.stream, &frame.flow, signature.sequence))),
                None => self.flows_left_out += 1,
            }
        }
    }
}

fn first(stream: u16, flow: &FlowKey, sequence: u64) -> FlowSeen {
    let source = SocketAddr::new(flow.source, flow.source_port);
    let destination = SocketAddr::new(flow.destination, flow.destination_port);
    let mut seen = FlowSeen::new(stream, source, destination);
    seen.arrive(sequence, false);
    seen
}

impl Counter for PacketReceiver {
    fn frames(&mut self) -> Result<u64> {
        Ok(self.frames.load(Ordering::Relaxed))
    }

    fn sample(&mut self, at_us: u64) -> Result<FrameInterval> {
        let totals = self.totals();
        let mut got = GotSoFar {
            foreign: totals.foreign,
            bytes: totals.bytes,
            missed: Some(totals.missed),
            ..GotSoFar::default()
        };
        let mut frames = 0;
        for Stream { received, window, .. } in totals.streams.values() {
            frames += received;
            got.numbers += window.missing() + window.distinct();
            got.duplicates += window.duplicates();
            got.reordered += window.reordered();
        }
        Ok(FrameInterval { at_us, frames, sent: None, got: Some(got) })
    }

    fn read(&mut self, per_flow: bool) -> Result<Seen> {
        let totals = self.totals();
        let mut seen = Seen {
            foreign: totals.foreign,
            missed: Some(totals.missed),
            bytes: totals.bytes,
            first_ns: totals.first_ns,
            last_ns: totals.last_ns,
            other_clocks: totals.other_clocks,
            flows_left_out: totals.flows_left_out,
            ..Seen::default()
        };
        let stream = |(stream, Stream { received, restarts, window }): (&u16, &Stream)| StreamSeen {
            stream: *stream,
            received: *received,
            duplicates: window.duplicates(),
            reordered: window.reordered(),
            restarts: *restarts,
            next: window.missing() + window.distinct(),
        };
        seen.streams = totals.streams.iter().map(stream).collect();
        seen.latency_ns = totals.latency.max().map(|_| totals.latency.distribution());
        seen.gaps_ns = totals.gaps.max().map(|_| totals.gaps.distribution());
        if per_flow {
            seen.flows = totals.flows.values().copied().collect();
        }
        Ok(seen)
    }
}

impl Drop for PacketReceiver {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
