//! The sampling thread: it opens the gate, looks at all streams at the scheduled instants, sees to it that the trial ends, and
//! writes the record.

use super::counters::Counters;
use super::engine::GRACE;
use super::outcome::Outcome;
use super::progress::{UdpProgress, UdpStreamProgress};
use super::stream::UdpStream;
use super::worker::{Event, Left, Shared};
use crate::schedule::{Keep, Schedule};
use narrows_model::{CpuTimes, DatagramSizes, HostSample, UdpSample, UdpStreamRecord};
use narrows_sys::udp::socket::header_bytes;
use narrows_sys::{clock, tcp};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How often the conductor looks at what may end the trial.
const LOOK: Duration = Duration::from_millis(20);

/// One stream as the conductor holds it.
struct Live<'a> {
    record: UdpStreamRecord,
    stream: &'a UdpStream,
    counters: &'a Counters,
    sends: bool,
    ended: bool,
    last: UdpSample,
}

impl Live<'_> {
    fn look(&mut self, at_us: u64) {
        self.last = self.counters.sample(at_us, tcp::memory(&self.stream.socket).ok(), !self.sends);
    }
}

/// See the module.
pub(crate) struct Conductor<'a> {
    shared: &'a Shared<'a>,
    streams: Vec<Live<'a>>,
    host: Vec<HostSample>,
    cpu_times: &'a (dyn Fn() -> Vec<CpuTimes> + Sync),
    remarks: Vec<String>,
    keep: Keep,
    start: Instant,
    /// Whether any stream moved.
    moving: bool,
}

impl<'a> Conductor<'a> {
    /// One for streams whose threads wait at the gate; the lists go by position.
    pub(crate) fn new(
        shared: &'a Shared<'a>,
        records: Vec<UdpStreamRecord>,
        streams: &'a [UdpStream],
        counters: &'a [Counters],
        cpu_times: &'a (dyn Fn() -> Vec<CpuTimes> + Sync),
        remarks: Vec<String>,
    ) -> Self {
        let live = records.into_iter().zip(streams).zip(counters).map(|((record, stream), counters)| Live {
            sends: stream.sends(shared.place),
            record,
            stream,
            counters,
            ended: false,
            last: UdpSample::default(),
        });
        Self {
            keep: Keep::new(streams.len()),
            streams: live.collect(),
            shared,
            host: Vec::new(),
            cpu_times,
            remarks,
            start: clock::now(),
            moving: false,
        }
    }

    /// Runs the trial to its end. The clock starts with the first datagram that leaves or comes in.
    pub(crate) fn run(
        mut self,
        inbox: &Receiver<Event>,
        on_progress: &mut dyn FnMut(UdpProgress),
    ) -> (Vec<UdpStreamRecord>, Vec<HostSample>, Vec<String>) {
        self.look_at_all(0);
        self.start = clock::now();
        let _ = self.shared.gate.set(());
        let plan = self.shared.plan;
        let schedule = Schedule::of(plan.interval_ms, plan.omit_ms, Some(plan.duration_ms));
        let mut due = schedule.next(0);
        while self.is_running() {
            let now = clock::micros_since(self.start);
            if self.moving && now >= due.0 {
                self.look_at_all(now);
                if due.1 {
                    on_progress(self.progress(now, false));
                }
                due = schedule.next(now);
            }
            self.watch_the_end(now);
            let left = Duration::from_micros(due.0.saturating_sub(clock::micros_since(self.start)));
            match inbox.recv_timeout(if self.moving { left.min(LOOK) } else { LOOK }) {
                Ok(Event::Ended { index, outcome, left }) => self.end_stream(index, &outcome, *left),
                Ok(Event::Moving(at)) if !self.moving => (self.moving, self.start) = (true, at),
                Ok(Event::Moving(_)) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let now = clock::micros_since(self.start);
        self.host.push(HostSample { at_us: now, cpus: (self.cpu_times)() });
        on_progress(self.progress(now, true));
        if self.keep.step() > 1 {
            self.remarks.push(format!("long trial: one in {} samples was kept", self.keep.step()));
        }
        (self.streams.into_iter().map(|live| live.record).collect(), self.host, self.remarks)
    }

    fn is_running(&self) -> bool {
        self.streams.iter().any(|live| !live.ended)
    }

    /// A sample of each running stream and of the host.
    fn look_at_all(&mut self, at_us: u64) {
        let wanted = self.keep.wanted();
        for live in self.streams.iter_mut().filter(|live| !live.ended) {
            live.look(at_us);
            if wanted {
                live.record.samples.push(live.last.clone());
            }
        }
        if wanted {
            self.host.push(HostSample { at_us, cpus: (self.cpu_times)() });
            if self.keep.is_full(self.host.len()) {
                Keep::thin(&mut self.host);
                for live in &mut self.streams {
                    // One that ended keeps its last sample.
                    let last = live.ended.then(|| live.record.samples.pop()).flatten();
                    Keep::thin(&mut live.record.samples);
                    live.record.samples.extend(last);
                }
            }
        }
    }

    /// The last sample of a stream, its totals, and the remark on it.
    fn end_stream(&mut self, index: usize, outcome: &Outcome, left: Left) {
        let ended_us = clock::micros_since(self.start);
        let Some(live) = self.streams.get_mut(index).filter(|live| !live.ended) else { return };
        live.ended = true;
        live.look(ended_us);
        let id = live.record.id;
        let remark = match left {
            Left::Sent(sent) => {
                live.last.datagrams = sent.sent.datagrams;
                live.record.datagram_bytes = sent.datagram_bytes;
                if self.shared.plan.sizes == DatagramSizes::Largest {
                    live.record.path_mtu_bytes = Some(sent.datagram_bytes + header_bytes(&live.stream.peer));
                }
                live.record.method = sent.method.to_owned();
                live.record.sent = Some(sent.sent);
                sent.remark
            }
            Left::Received(received) => {
                // What is still missing now is lost, and what was sent last may be missing too.
                live.last.lost = received.received.lost;
                live.record.datagram_bytes = received.datagram_bytes.unwrap_or(live.record.datagram_bytes);
                live.record.method = received.method.to_owned();
                live.record.received = Some(received.received);
                received.remark
            }
        };
        live.record.samples.push(live.last.clone());
        self.remarks.extend(remark.map(|remark| format!("stream {id}: {remark}")));
        self.remarks.extend(outcome.remark(id));
    }

    /// Ends what does not end by itself: receivers to whom nothing comes.
    fn watch_the_end(&self, now_us: u64) {
        let grace_us = u64::try_from(GRACE.as_micros()).unwrap_or(u64::MAX);
        let receivers_only = self.streams.iter().filter(|live| !live.ended).all(|live| !live.sends);
        if receivers_only && now_us >= self.shared.plan.duration_ms * 1000 + grace_us {
            self.shared.over.stop();
        }
    }

    fn progress(&self, at_us: u64, done: bool) -> UdpProgress {
        let streams = self.streams.iter().map(|live| UdpStreamProgress {
            id: live.record.id,
            flow: live.record.flow,
            sample: live.last.clone(),
        });
        UdpProgress { at_us, streams: streams.collect(), done }
    }
}
