//! The loop of a receiver: many datagrams a call, only their beginnings where it can, and each of them counted.

use super::answerer;
use super::arrivals::Arrivals;
use super::buffers::SEND_LIMIT;
use super::nap::Nap;
use super::priority::Priority;
use super::stream::Dialect;
use super::worker::{LOST, Left, Worker};
use crate::common::outcome::Outcome;
use crate::common::sequence_window::Window;
use narrows_model::{Batching, Place, UdpReceived};
use narrows_sys::nanos::EvenClock;
use narrows_sys::udp::{ReceiveBatch, socket};
use narrows_sys::{clock, nanos, tcp, thread};
use narrows_wire::iperf3::datagram;
use narrows_wire::probe::{Header, Kind, go};
use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Messages in a call, where only their beginnings are taken.
const HEADS: usize = 128;
/// Room for a beginning: a header, a whole hello.
const HEAD_BYTES: usize = 64;
/// Messages in a call, where each may be a run of datagrams and is taken whole: all headers are needed.
const RUNS: usize = 16;
const RUN_BYTES: usize = 65_536;
/// After this many messages without a run the path is taken to coalesce nothing.
const WITHOUT_RUN: u64 = 512;
/// No wait lasts longer, so that a stop takes effect.
const WAIT: Duration = Duration::from_millis(20);
/// After the sender's end message, overtaken datagrams may still arrive for this time.
const STRAGGLERS_NS: u64 = 200_000_000;
/// After the planned end a receiver without the sender's end message waits this time for data.
const IDLE_NS: u64 = 300_000_000;
/// How often the client repeats that it is ready, until data comes …
const GO_EVERY_NS: u64 = 100_000_000;
/// … and from then on, as feedback for [`super::feedback`].
const FEEDBACK_EVERY_NS: u64 = 50_000_000;

/// How messages are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Runs,
    /// Runs are off, but some may still be queued.
    LastRuns,
    Heads,
}

impl Mode {
    fn batch(self) -> ReceiveBatch {
        match self {
            Self::Runs | Self::LastRuns => ReceiveBatch::new(RUNS, RUN_BYTES),
            Self::Heads => ReceiveBatch::new(HEADS, HEAD_BYTES),
        }
    }
}

/// Receives until the sender's end message, or until none can be expected any more; `moving` is called with the first datagram.
pub(super) fn run(worker: &Worker<'_>, moving: impl FnOnce(Instant)) -> Left {
    thread::exact_timers();
    let mut receiving = Receiving::new(worker);
    let outcome = match receiving.prepare() {
        Ok(()) => receiving.take_all(moving),
        Err(error) => broken(&error),
    };
    // The socket was made for this trial: whatever it dropped was of this trial.
    let drops = tcp::memory(&worker.stream.socket).map(|memory| u64::from(memory.drops)).ok();
    receiving.finish(outcome, drops)
}

fn broken(error: &io::Error) -> Outcome {
    Outcome::Incomplete(format!("the socket failed: {error}"))
}

/// The state of the loop.
struct Receiving<'a> {
    worker: &'a Worker<'a>,
    mode: Mode,
    /// Whether the socket accepted runs at first.
    began_with_runs: bool,
    window: Window,
    arrivals: Arrivals,
    datagrams: u64,
    bytes: u64,
    calls: u64,
    messages: u64,
    runs: u64,
    foreign: u64,
    largest: usize,
    by_kernel: bool,
    clock: EvenClock,
    /// When the first datagram was seen, and the last message; monotonic, ns.
    first_ns: Option<u64>,
    seen_ns: u64,
    /// When the last one came.
    data_ns: u64,
    /// The total in the sender's end message, and when it came.
    fin: Option<(u64, u64)>,
}

impl<'a> Receiving<'a> {
    fn new(worker: &'a Worker<'a>) -> Self {
        let runs =
            worker.plan.coalescing != Batching::Off && socket::set_coalescing(&worker.stream.socket, true).is_ok();
        Self {
            worker,
            mode: if runs { Mode::Runs } else { Mode::Heads },
            began_with_runs: runs,
            window: Window::new(),
            arrivals: Arrivals::default(),
            datagrams: 0,
            bytes: 0,
            calls: 0,
            messages: 0,
            runs: 0,
            foreign: 0,
            largest: 0,
            by_kernel: false,
            clock: EvenClock::begin(),
            first_ns: None,
            seen_ns: nanos::monotonic(),
            data_ns: nanos::monotonic(),
            fin: None,
        }
    }

    fn prepare(&mut self) -> io::Result<()> {
        let own = &self.worker.stream.socket;
        own.set_read_timeout(Some(WAIT))?;
        own.set_write_timeout(Some(SEND_LIMIT))?;
        // Without stamps the thread's own clock is used, and the record says so.
        let _ = socket::set_receive_stamps(own, true);
        Ok(())
    }

    fn take_all(&mut self, moving: impl FnOnce(Instant)) -> Outcome {
        let own = &self.worker.stream.socket;
        let mut moving = Some(moving);
        let mut batch = self.mode.batch();
        let buffer = self.worker.stream.buffers.receive.unwrap_or(0);
        let mut nap = Nap::new(HEADS, buffer, nanos::monotonic());
        let mut priority = Priority::request(nanos::monotonic(), self.worker.stream.real_time);
        let mut go_ns = 0;
        let mut wait = true;
        // Since when it waits.
        let mut waiting_ns = nanos::monotonic();
        loop {
            if self.worker.control.is_over() {
                let stopped = self.worker.control.stop.is_set();
                return if stopped { Outcome::Stopped } else { self.ended() };
            }
            if self.worker.place == Place::Client && self.worker.stream.dialect == Dialect::Probe {
                let now = nanos::monotonic();
                let every_ns = if self.first_ns.is_none() { GO_EVERY_NS } else { FEEDBACK_EVERY_NS };
                if now.saturating_sub(go_ns) >= every_ns {
                    go_ns = now;
                    // Repeated, whatever happens to this one.
                    let _ = own.send(&go(self.worker.stream.number, self.worker.stream.datagram_bytes));
                }
            }
            match batch.receive(own, wait) {
                Ok(taken) => {
                    self.calls += 1;
                    self.worker.stream.heard.fetch_add(1, Ordering::Relaxed);
                    self.count_all(&batch, taken);
                    if self.first_ns.is_some()
                        && let Some(moving) = moving.take()
                    {
                        moving(clock::now());
                    }
                    self.publish();
                    if self.is_complete() {
                        return Outcome::Complete;
                    }
                    priority.waited(self.seen_ns, if wait { self.seen_ns.saturating_sub(waiting_ns) } else { 0 });
                    wait = false;
                    // A full batch: more is there.
                    if taken == batch.most() {
                        continue;
                    }
                    if self.choose_mode() {
                        batch = self.mode.batch();
                    }
                    match nap.after(self.seen_ns, self.datagrams, self.bytes) {
                        Some(ns) => {
                            nanos::sleep_until(self.seen_ns + ns);
                            priority.waited(nanos::monotonic(), ns);
                        }
                        None => (wait, waiting_ns) = (true, self.seen_ns),
                    }
                }
                Err(error) => {
                    match error.kind() {
                        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::ConnectionRefused => {}
                        _ => return broken(&error),
                    }
                    self.calls += 1;
                    if !wait {
                        nap.idle();
                        (wait, waiting_ns) = (true, nanos::monotonic());
                    }
                    if let Some(outcome) = self.is_silent() {
                        return outcome;
                    }
                }
            }
        }
    }

    /// Whether all that the sender sent is here.
    fn is_complete(&self) -> bool {
        self.fin.is_some_and(|(total, _)| self.window.distinct() >= total)
    }

    /// Whether nothing more is to be expected; how the stream ended then.
    fn is_silent(&self) -> Option<Outcome> {
        let now = nanos::monotonic();
        if let Some((_, at)) = self.fin {
            return (now.saturating_sub(at) >= STRAGGLERS_NS).then_some(Outcome::Complete);
        }
        let end = self.first_ns? + self.worker.plan.duration_ms * 1_000_000;
        (now >= end + IDLE_NS && now.saturating_sub(self.seen_ns) >= IDLE_NS).then(no_fin)
    }

    /// The outcome where the sampler ended the trial.
    fn ended(&self) -> Outcome {
        match (self.fin, self.first_ns) {
            (Some(_), _) => Outcome::Complete,
            (None, None) => Outcome::Incomplete("no datagram arrived".to_owned()),
            (None, Some(_)) => no_fin(),
        }
    }

    /// The queue is empty now: if this path coalesces nothing, beginnings are enough. Runs are switched off first, and those
    /// that were queued until then are gone when the queue is empty once more. True when the batch must be another one.
    fn choose_mode(&mut self) -> bool {
        let auto = self.worker.plan.coalescing == Batching::Auto;
        match self.mode {
            Mode::Runs if auto && self.runs == 0 && self.messages >= WITHOUT_RUN => {
                if socket::set_coalescing(&self.worker.stream.socket, false).is_ok() {
                    self.mode = Mode::LastRuns;
                }
                false
            }
            Mode::LastRuns => {
                self.mode = Mode::Heads;
                true
            }
            Mode::Runs | Mode::Heads => false,
        }
    }

    fn count_all(&mut self, batch: &ReceiveBatch, taken: usize) {
        let stamps = self.clock.stamps();
        let before = self.datagrams;
        for message in (0..taken).filter_map(|index| batch.message(index)) {
            self.messages += 1;
            self.by_kernel |= message.stamp_ns.is_some();
            let received_ns = stamps.at(message.stamp_ns);
            match message.segment_bytes {
                None => self.count(message.bytes, message.length, received_ns),
                Some(size) => {
                    self.runs += 1;
                    for datagram in message.bytes.chunks(size) {
                        self.count(datagram, datagram.len(), received_ns);
                    }
                }
            }
        }
        self.seen_ns = nanos::monotonic();
        if self.datagrams > before {
            self.data_ns = self.seen_ns;
            self.first_ns.get_or_insert(self.seen_ns);
        }
    }

    #[inline]
    fn count(&mut self, bytes: &[u8], length: usize, received_ns: u64) {
        if let Dialect::Iperf3 { wide } = self.worker.stream.dialect {
            return match datagram::Header::decode(wide, bytes) {
                Some(header) if header.sequence > 0 && self.window.arrive(header.sequence - 1) => {
                    self.take(length, header.sent_us.saturating_mul(1000), received_ns);
                }
                _ => self.foreign += length as u64,
            };
        }
        match Header::decode(bytes) {
            Ok(header) if header.stream == self.worker.stream.number => match header.kind {
                Kind::Data if self.window.arrive(header.sequence) => self.take(length, header.time_ns, received_ns),
                Kind::Fin => self.confirm(header),
                Kind::Hello => {
                    let stream = self.worker.stream;
                    answerer::answer(&stream.socket, &stream.key, stream.cookie, bytes, length);
                }
                Kind::Ok => {}
                _ => self.foreign += length as u64,
            },
            _ => self.foreign += length as u64,
        }
    }

    #[inline]
    fn take(&mut self, length: usize, sent_ns: u64, received_ns: u64) {
        self.datagrams += 1;
        self.bytes += length as u64;
        self.largest = self.largest.max(length);
        self.arrivals.arrive(sent_ns, received_ns);
    }

    /// Confirms the sender's end message, each time that it comes.
    fn confirm(&mut self, fin: Header) {
        let (total, _) = *self.fin.get_or_insert((fin.sequence, nanos::monotonic()));
        let answer = Header { kind: Kind::FinAck, sequence: total, time_ns: self.clock.now(), ..fin };
        // If this is lost, the sender repeats it.
        let _ = self.worker.stream.socket.send(&answer.encode());
    }

    fn publish(&self) {
        self.worker.counters.set(0, [self.datagrams, self.bytes, self.calls]);
        let window = &self.window;
        let order = [window.missing(), window.duplicates(), window.reordered(), self.arrivals.jitter_ns().to_bits()];
        self.worker.counters.set(LOST, order);
    }

    fn finish(self, outcome: Outcome, socket_drops: Option<u64>) -> Left {
        let counted = self.window.finish(self.fin.map(|(total, _)| total));
        let runs = self.runs > 0;
        let remark = if runs && socket_drops.is_some_and(|drops| drops > 0) {
            Some("the socket counts drops per GRO batch, not per datagram")
        } else if !runs && self.worker.plan.coalescing == Batching::On && self.messages > WITHOUT_RUN {
            Some("the kernel coalesced no datagrams (UDP_GRO)")
        } else {
            None
        };
        let remark = remark.map(str::to_owned);
        let received = UdpReceived {
            datagrams: self.datagrams,
            bytes: self.bytes,
            calls: self.calls,
            distinct: counted.distinct,
            duplicates: counted.duplicates,
            lost: counted.lost,
            uncounted: 0,
            reordered: counted.reordered,
            reorder_extent_max: counted.extent_max,
            late: counted.late,
            loss_bursts: counted.bursts,
            loss_burst_max: counted.burst_max,
            foreign: self.foreign,
            socket_drops,
            next_sequence: counted.next,
            jitter_ns: self.arrivals.jitter_ns(),
            active_ns: self.arrivals.active_ns(),
            stamps: if self.by_kernel { "kernel" } else { "user" }.to_owned(),
            gaps_ns: self.arrivals.gaps().distribution(),
            delay_variation_ns: self.arrivals.delays().distribution(),
            min_clock_difference_ns: self.arrivals.smallest_ns(),
            delay_growth_ns: self.arrivals.growth_ns(),
        };
        let datagram_bytes = u32::try_from(self.largest).ok().filter(|bytes| *bytes > 0);
        // Runs that were dropped before the socket was set to single datagrams were never seen, but are in its count.
        let method = match (runs, self.began_with_runs && socket_drops.is_some_and(|drops| drops > 0)) {
            (true, _) => "recvmmsg+gro",
            (false, true) => "recvmmsg, at first +gro",
            (false, false) => "recvmmsg",
        };
        let waited = Duration::from_nanos(nanos::monotonic().saturating_sub(self.data_ns));
        Left { outcome, waited, datagram_bytes, method, remark, sent: None, received: Some(received) }
    }
}

fn no_fin() -> Outcome {
    let what = "the sender's end mark was lost; losses after the last datagram received are not counted here";
    Outcome::Incomplete(what.to_owned())
}
