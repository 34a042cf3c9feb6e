//! Frames through a packet socket: works on every device, and is the slowest.

use super::author::Author;
use super::error::FrameError;
use super::generator::{Crew, Device, Meter, Worker};
use super::pace::Share;
use super::receiver::{Counter, Seen, StreamSeen};
use super::tally::{Counts, Tally};
use crate::udp::window::Window;
use narrows_model::frames::{FCS_BYTES, FlowGot, GeneratePlan, ReceivePlan};
use narrows_stats::Histogram;
use narrows_sys::packet_io::{BATCH, PacketReader, PacketSender};
use narrows_sys::{Result, clock, cpu};
use narrows_wire::frame::Seen as Frame;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a worker works before it looks around.
const SLICE_NS: u64 = 20_000_000;
const FLOWS_MOST: usize = 65_536;

struct Sender {
    socket: PacketSender,
    author: Author,
    buffers: Vec<Vec<u8>>,
    tally: Arc<Tally>,
}

impl Meter for Arc<Tally> {
    fn counts(&self) -> Counts {
        self.get()
    }

    fn ready(&self) -> bool {
        self.is_ready()
    }

    fn start(&self, at_ns: u64) -> Result<()> {
        self.start_at(at_ns);
        Ok(())
    }
}

impl Worker for Sender {
    fn work(&mut self) -> std::result::Result<bool, FrameError> {
        let until = clock::monotonic_ns() + SLICE_NS;
        loop {
            let now = clock::monotonic_ns();
            let Some(due) = self.author.due(now) else {
                self.tally.set(self.author.counts);
                return Ok(false);
            };
            if now >= until {
                self.tally.set(self.author.counts);
                return Ok(true);
            }
            if due == 0 {
                self.author.rest(now);
                continue;
            }
            let count = usize::try_from(due).unwrap_or(BATCH).min(BATCH);
            let mut lengths = [0; BATCH];
            for (ahead, (buffer, length)) in (0_u64..).zip(self.buffers.iter_mut().zip(&mut lengths)).take(count) {
                *length = self.author.write(ahead, now, buffer);
            }
            let frames = self.buffers.iter().zip(&lengths).take(count).map(|(buffer, length)| &buffer[..*length]);
            let taken = self.socket.send(frames)?;
            self.author.sent(taken as u64, clock::monotonic_ns());
        }
    }
}

pub(super) fn prepare(plan: &GeneratePlan, device: &Device, shares: &[Share]) -> std::result::Result<Crew, String> {
    let open = |_: &Share| PacketSender::open(device.index).map_err(|error| error.to_string());
    let sockets = shares.iter().map(open).collect::<std::result::Result<Vec<_>, _>>()?;
    let largest = plan.format.largest() as usize;
    let workers = sockets.into_iter().zip(shares).map(|(socket, share)| {
        let tally = Arc::new(Tally::default());
        let author = Author::new(plan, *share, Arc::clone(&tally));
        let sender = Sender { socket, author, buffers: vec![vec![0; largest]; BATCH], tally: Arc::clone(&tally) };
        (Box::new(sender) as Box<dyn Worker>, Arc::new(tally) as Arc<dyn Meter>)
    });
    Ok(Crew { workers: workers.collect() })
}

/// What the reading thread knows.
#[derive(Default)]
struct Book {
    streams: BTreeMap<u16, (u64, Option<Window>)>,
    foreign: u64,
    bytes: u64,
    first_ns: u64,
    last_ns: u64,
    latency: Histogram,
    gaps: Histogram,
    flows: BTreeMap<(String, String), u64>,
    flows_left_out: u64,
}

/// Reads a device until it is dropped.
pub(super) struct PacketReceiver {
    book: Arc<Mutex<Book>>,
    frames: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl PacketReceiver {
    pub(super) fn start(plan: &ReceivePlan, device: &Device) -> std::result::Result<Self, String> {
        let mut reader = PacketReader::open(device.index).map_err(|error| error.to_string())?;
        let book = Arc::new(Mutex::new(Book::default()));
        let frames = Arc::new(AtomicU64::new(0));
        let over = Arc::new(AtomicBool::new(false));
        let (theirs, count, end) = (Arc::clone(&book), Arc::clone(&frames), Arc::clone(&over));
        let (per_flow, gaps) = (plan.per_flow, plan.gaps);
        let body = move || {
            cpu::name_this_thread("frames-receive");
            while !end.load(Ordering::Relaxed) {
                let mut seen = Vec::with_capacity(BATCH);
                let got =
                    reader.receive(Duration::from_millis(50), |bytes, length| seen.push((Frame::parse(bytes), length)));
                if got.is_err() {
                    return; // the device is gone; what was counted stays
                }
                let now = clock::monotonic_ns();
                let Ok(mut book) = theirs.lock() else { return };
                for (frame, length) in seen {
                    book.take(frame, length as u64, now, per_flow, gaps);
                }
                count.store(book.streams.values().map(|(received, _)| received).sum(), Ordering::Relaxed);
            }
        };
        let thread = std::thread::Builder::new().spawn(body).map_err(|error| error.to_string())?;
        Ok(Self { book, frames, over, thread: Some(thread) })
    }
}

impl Book {
    fn take(&mut self, frame: Option<Frame>, length: u64, now: u64, per_flow: bool, gaps: bool) {
        let Some(frame) = frame else {
            self.foreign += 1;
            return;
        };
        let room = self.streams.len() < 64;
        let known = self.streams.contains_key(&frame.signature.stream);
        if !known && !room {
            self.foreign += 1;
            return;
        }
        let (received, window) = self.streams.entry(frame.signature.stream).or_insert_with(|| (0, Some(Window::new())));
        *received += 1;
        if let Some(window) = window {
            window.arrive(frame.signature.sequence);
        }
        self.bytes += length + u64::from(FCS_BYTES);
        if gaps && self.last_ns > 0 {
            self.gaps.record(now.saturating_sub(self.last_ns));
        }
        if self.first_ns == 0 {
            self.first_ns = now;
        }
        self.last_ns = now;
        if let Some(latency) = frame.signature.latency_ns(now) {
            self.latency.record(u64::try_from(latency).unwrap_or(0));
        }
        if per_flow {
            let flow = frame.flow;
            let end = |address, port| std::net::SocketAddr::new(address, port).to_string();
            let key = (end(flow.source, flow.source_port), end(flow.destination, flow.destination_port));
            let room = self.flows.len() < FLOWS_MOST;
            match self.flows.get_mut(&key) {
                Some(count) => *count += 1,
                None if room => drop(self.flows.insert(key, 1)),
                None => self.flows_left_out += 1,
            }
        }
    }
}

impl Counter for PacketReceiver {
    fn frames(&mut self) -> Result<u64> {
        Ok(self.frames.load(Ordering::Relaxed))
    }

    fn read(&mut self, per_flow: bool) -> Result<Seen> {
        let mut book = match self.book.lock() {
            Ok(book) => book,
            Err(broken) => broken.into_inner(),
        };
        let mut seen = Seen {
            foreign: book.foreign,
            bytes: book.bytes,
            first_ns: book.first_ns,
            last_ns: book.last_ns,
            flows_left_out: book.flows_left_out,
            ..Seen::default()
        };
        for (stream, (received, window)) in &mut book.streams {
            let counted = window.take().unwrap_or_else(Window::new).finish(None);
            seen.streams.push(StreamSeen {
                stream: *stream,
                received: *received,
                duplicates: counted.duplicates,
                reordered: counted.reordered,
                next: counted.next,
            });
        }
        seen.latency_ns = book.latency.max().map(|_| book.latency.distribution());
        seen.gaps_ns = book.gaps.max().map(|_| book.gaps.distribution());
        if per_flow {
            let flow = |((source, destination), received): (&(String, String), &u64)| FlowGot {
                source: source.clone(),
                destination: destination.clone(),
                received: *received,
            };
            seen.flows = book.flows.iter().map(flow).collect();
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
