//! The loop of a sender: bursts when the pacer says so, in as few calls as the kernel allows.

use super::departures::Departures;
use super::feedback::Feedback;
use super::load::Load;
use super::pacer::{Due, Pacer};
use super::priority::Priority;
use super::size;
use super::stream::Dialect;
use super::worker::{ERRORS, Worker};
use crate::common::fill::fill;
use narrows_model::{Batching, Place, Unsent};
use narrows_sys::nanos::{self, EvenClock};
use narrows_sys::udp::send::{MESSAGE_BYTES, SEGMENTS};
use narrows_sys::udp::{Outgoing, SendBatch, TOO_BIG, socket};
use narrows_wire::iperf3::datagram;
use narrows_wire::probe::{HEADER_BYTES, Header, Kind};
use std::io;

/// Messages in one call.
const MESSAGES: usize = 64;
/// Bytes in one call: what it copies should still be in the cache.
const CALL_BYTES: usize = 256 << 10;
/// A burst takes about this long at the rate, so that a thread can sleep between two of them.
const BURST_NS: f64 = 100_000.0;
/// A shorter wait is not slept: the timer would cost as much.
const SPIN_NS: u64 = 15_000;
/// The maximum of one sleep, so that a stop takes effect.
const SLEEP_NS: u64 = 50_000_000;
/// After an error a sender without a rate does not try again at once.
const PAUSE_NS: u64 = 100_000;

/// The state of the loop.
pub(crate) struct Sending<'a> {
    worker: &'a Worker<'a>,
    sizes: Vec<u32>,
    /// The next datagram's place in the cycle of sizes.
    at: usize,
    pub(super) next: u64,
    buffer: Vec<u8>,
    messages: Vec<Outgoing>,
    /// Datagrams of each message.
    counts: Vec<u64>,
    batch: SendBatch,
    /// The largest datagram that may be part of a run; 0: none may.
    segment_max: u32,
    pub(super) departures: Departures,
    clock: EvenClock,
    /// On a server: feedback from the receiver.
    pub(super) feedback: Option<Feedback<'a>>,
    pub(super) segmented: bool,
    pub(super) remark: Option<String>,
}

impl<'a> Sending<'a> {
    pub(super) fn new(worker: &'a Worker<'a>, sizes: Vec<u32>) -> Self {
        let largest = size::largest(&sizes) as usize;
        let mut buffer = vec![0; CALL_BYTES.max(largest)];
        fill(&mut buffer);
        let overhead = socket::header_bytes(&worker.stream.peer);
        let segment_max = match worker.plan.segmentation {
            Batching::Off => 0,
            // What needs fragments cannot be part of a run.
            Batching::Auto | Batching::On => {
                worker.stream.path_mtu_bytes.map_or(u32::from(u16::MAX), |mtu| mtu.saturating_sub(overhead))
            }
        };
        Self {
            worker,
            sizes,
            at: 0,
            next: 0,
            buffer,
            messages: Vec::with_capacity(MESSAGES),
            counts: Vec::with_capacity(MESSAGES),
            batch: SendBatch::new(MESSAGES),
            segment_max,
            departures: Departures::default(),
            clock: EvenClock::begin(),
            feedback: (worker.place == Place::Server && worker.stream.dialect == Dialect::Probe)
                .then(|| Feedback::new(worker.stream)),
            segmented: false,
            remark: None,
        }
    }

    /// Sends by a schedule; how many it held, and how many of them were skipped.
    pub(super) fn paced(&mut self, costs_ns: &[f64], load: &Load) -> (u64, u64) {
        let mean_ns = load.mean_cost_ns().unwrap_or(1.0);
        let burst = self.worker.plan.burst_datagrams.unwrap_or_else(|| Self::default_burst(mean_ns, load.mean_bytes));
        let streams = f64::from(self.worker.plan.streams.max(1));
        let offset_ns = f64::from(self.worker.turn) * mean_ns * f64::from(burst) / streams;
        let length_ns = self.worker.plan.duration_ms * 1_000_000;
        let mut pacer = Pacer::new(costs_ns, burst, offset_ns, length_ns);
        let mut priority = Priority::request(0, self.worker.stream.real_time);
        let start = nanos::monotonic();
        let mut now = 0;
        while !self.is_over() {
            let mut slept = 0;
            match pacer.poll(now) {
                Due::Now(count) => {
                    self.burst(u64::from(count));
                    pacer.left(nanos::monotonic().saturating_sub(start));
                }
                Due::At(at) => slept = wait(start, at),
                Due::Over => break,
            }
            now = nanos::monotonic().saturating_sub(start);
            priority.waited(now, slept);
        }
        (pacer.intended(now), pacer.skipped())
    }

    /// Whether the trial is over, or the receiver of a server's load is gone.
    fn is_over(&mut self) -> bool {
        self.worker.control.is_over() || self.feedback.as_mut().is_some_and(|feedback| feedback.lost().is_some())
    }

    /// As many as leave in a tenth of a millisecond, but no more than one message takes.
    fn default_burst(mean_ns: f64, mean_bytes: f64) -> u32 {
        (BURST_NS / mean_ns).min(at_once(mean_bytes)).max(1.0) as u32
    }

    /// Sends as fast as the socket takes it.
    pub(super) fn unpaced(&mut self, mean_bytes: f64) -> (u64, u64) {
        let end = nanos::monotonic() + self.worker.plan.duration_ms * 1_000_000;
        let most = self.worker.plan.burst_datagrams.unwrap_or(at_once(mean_bytes) as u32);
        while !self.is_over() && nanos::monotonic() < end {
            let errors = self.departures.errors;
            self.burst(u64::from(most));
            if self.departures.errors > errors {
                nanos::sleep_until(nanos::monotonic() + PAUSE_NS);
            }
        }
        (0, 0)
    }

    /// Sends this many datagrams back to back. Refused ones are unsent, and their numbers go to the next ones.
    fn burst(&mut self, mut left: u64) {
        while left > 0 {
            self.pack(left);
            let began = nanos::monotonic();
            match self.batch.send(&self.worker.stream.socket, &self.buffer, &self.messages) {
                Ok(taken) => {
                    let taken = taken.min(self.messages.len());
                    let datagrams: u64 = self.counts[..taken].iter().sum();
                    let bytes: usize = self.messages[..taken].iter().map(|message| message.bytes).sum();
                    self.segmented |= self.messages[..taken].iter().any(|message| message.segment_bytes > 0);
                    self.departures.left(datagrams, bytes as u64, began, nanos::monotonic());
                    self.advance(datagrams);
                    self.next += datagrams;
                    left -= datagrams;
                }
                Err(error) => left -= self.refused(&error, left),
            }
            let departures = &self.departures;
            self.worker.counters.set(0, [departures.datagrams, departures.bytes, departures.calls]);
            if left > 0 && self.worker.control.is_over() {
                return;
            }
        }
    }

    /// Handles an error of the first message; how many datagrams are unsent because of it.
    fn refused(&mut self, error: &io::Error, left: u64) -> u64 {
        if error.kind() == io::ErrorKind::Interrupted {
            return 0;
        }
        let first = self.counts.first().copied().unwrap_or(1);
        let by_run = self.messages.first().is_some_and(|message| message.segment_bytes > 0);
        // This kernel, device or route does not segment: from now on each datagram is sent by itself.
        if by_run && is_segmentation_error(error) {
            self.segment_max = 0;
            self.departures.retried();
            self.remark = Some(format!("UDP_SEGMENT is not possible: {error}; datagrams were sent one by one"));
            return 0;
        }
        if let (io::ErrorKind::ConnectionRefused, Some(feedback)) = (error.kind(), &mut self.feedback) {
            feedback.refused();
        }
        type Reason = fn(&mut Unsent) -> &mut u64;
        let (unsent, reason): (u64, Reason) = match error.kind() {
            // The wait for room took longer than the burst may.
            io::ErrorKind::WouldBlock => (left, |unsent| &mut unsent.would_block),
            io::ErrorKind::PermissionDenied => (first, |unsent| &mut unsent.not_permitted),
            io::ErrorKind::ConnectionRefused => (first, |unsent| &mut unsent.refused),
            _ if error.raw_os_error() == Some(TOO_BIG) => (first, |unsent| &mut unsent.too_big),
            _ if error.raw_os_error() == Some(narrows_sys::udp::NO_BUFFERS) => (first, |unsent| &mut unsent.no_buffers),
            _ => (first, |unsent| &mut unsent.other),
        };
        self.departures.failed(unsent, reason);
        self.advance(unsent);
        let departures = &self.departures;
        self.worker.counters.set(ERRORS, [departures.errors, departures.unsent.total()]);
        unsent
    }

    /// Header timestamp: for narrows, wall-clock time based on the start; for iperf3, the monotonic clock.
    fn now_ns(&self) -> u64 {
        if self.worker.stream.dialect == Dialect::Probe { self.clock.now() } else { nanos::monotonic() }
    }

    fn advance(&mut self, datagrams: u64) {
        let cycle = self.sizes.len() as u64;
        self.at = ((self.at as u64 + datagrams) % cycle) as usize;
    }

    /// Fills the buffer with the next datagrams, as many as one call takes; neighbours of one size become a run.
    fn pack(&mut self, left: u64) {
        self.messages.clear();
        self.counts.clear();
        let (stream, time_ns) = (self.worker.stream.number, self.now_ns());
        let (mut from, mut sequence, mut at) = (0, self.next, self.at);
        let end = self.next + left;
        while sequence < end && self.messages.len() < MESSAGES {
            let bytes = self.sizes[at] as usize;
            let joins = self.messages.last().zip(self.counts.last()).is_some_and(|(run, count)| {
                bytes as u32 <= self.segment_max
                    && run.bytes as u64 == bytes as u64 * count
                    && *count < SEGMENTS as u64
                    && run.bytes + bytes <= MESSAGE_BYTES
            });
            if from + bytes > self.buffer.len()
                || (!joins && !self.messages.is_empty() && self.segment_max > 0 && self.sizes.len() == 1)
            {
                break;
            }
            match self.worker.stream.dialect {
                Dialect::Probe => {
                    let header = Header { kind: Kind::Data, stream, sequence, time_ns };
                    self.buffer[from..from + HEADER_BYTES].copy_from_slice(&header.encode());
                }
                Dialect::Iperf3 { wide } => {
                    let header = datagram::Header { sent_us: time_ns / 1000, sequence: sequence + 1 };
                    header.encode(wide, &mut self.buffer[from..]);
                }
            }
            match (self.messages.last_mut().filter(|_| joins), self.counts.last_mut()) {
                (Some(run), Some(count)) => {
                    run.bytes += bytes;
                    run.segment_bytes = bytes as u16;
                    *count += 1;
                }
                _ => {
                    self.messages.push(Outgoing { from, bytes, segment_bytes: 0 });
                    self.counts.push(1);
                }
            }
            from += bytes;
            sequence += 1;
            at = if at + 1 == self.sizes.len() { 0 } else { at + 1 };
        }
    }
}

/// Datagrams that one message takes, on average.
fn at_once(mean_bytes: f64) -> f64 {
    let most = (SEGMENTS as f64).min(MESSAGE_BYTES as f64 / mean_bytes.max(1.0));
    most.max(1.0)
}

/// Errors by which kernels refuse segmentation: an old kernel, a device without checksums, IPsec on the route.
fn is_segmentation_error(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(narrows_sys::udp::is_no_segmentation)
}

/// Waits until an instant after `start`, but no longer than a stop may take; how long it slept.
fn wait(start: u64, at: u64) -> u64 {
    let until = start + at;
    let now = nanos::monotonic();
    if until.saturating_sub(now) > SPIN_NS {
        let until = until.min(now + SLEEP_NS);
        nanos::sleep_until(until);
        return until - now;
    }
    while nanos::monotonic() < until {
        std::hint::spin_loop();
    }
    0
}
