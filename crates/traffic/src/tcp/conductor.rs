//! The sampling thread: it opens the gate, looks at all streams at the scheduled instants, sees to it that the trial ends, and
//! writes the record.

use crate::counters::Counters;
use crate::engine::{CALL_LIMIT, GRACE};
use crate::outcome::{Outcome, Timing};
use crate::progress::{Progress, StreamProgress};
use crate::sample;
use crate::schedule::{Keep, Schedule};
use crate::worker::{Event, Shared};
use narrows_model::{CpuTimes, HostSample, Limit, TcpPlan, TcpSample, TcpStreamRecord};
use narrows_sys::{clock, tcp};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How often the conductor looks at what may end the trial.
const LOOK: Duration = Duration::from_millis(20);
/// Near the planned end calls are kept this short, so that a blocked sender ends in time …
const LAST_CALL_LIMIT: Duration = Duration::from_millis(5);
/// … from so long before it on: all calls that began earlier are over by then.
const LAST_CALLS_US: u64 = 2 * CALL_LIMIT.as_micros() as u64;
/// So long after a loss the word that the trial was stopped may still come.
const WORD_TO_STOP: Duration = Duration::from_millis(250);
/// After the planned end a receiver waits only so long without any byte.
const IDLE_AFTER_END_US: u64 = 300_000;

/// One stream as the conductor holds it.
struct Live<'a> {
    record: TcpStreamRecord,
    /// Until the stream ended.
    socket: Option<Arc<TcpStream>>,
    counters: &'a Counters,
    sends: bool,
    last: TcpSample,
}

/// See the module.
pub(crate) struct Conductor<'a> {
    shared: &'a Shared<'a>,
    streams: Vec<Live<'a>>,
    host: Vec<HostSample>,
    cpu_times: &'a (dyn Fn() -> Vec<CpuTimes> + Sync),
    remarks: Vec<String>,
    /// The remarks on streams whose peer was gone too early.
    losses: Vec<String>,
    keep: Keep,
    start: Instant,
    /// The planned end, where there is one.
    end_us: Option<u64>,
    last_calls: bool,
    /// What the receivers had when they last moved, and when that was.
    received: (u64, u64),
}

impl<'a> Conductor<'a> {
    /// One for streams whose threads wait at the gate; the lists go by position.
    pub(crate) fn new(
        shared: &'a Shared<'a>,
        records: Vec<TcpStreamRecord>,
        sockets: Vec<Arc<TcpStream>>,
        counters: &'a [Counters],
        cpu_times: &'a (dyn Fn() -> Vec<CpuTimes> + Sync),
        remarks: Vec<String>,
    ) -> Self {
        let streams: Vec<Live<'a>> = records
            .into_iter()
            .zip(sockets)
            .zip(counters)
            .map(|((record, socket), counters)| Live {
                sends: record.flow.sender() == shared.place,
                record,
                socket: Some(socket),
                counters,
                last: TcpSample::default(),
            })
            .collect();
        let end_us = match shared.plan.limit {
            Limit::DurationMs(ms) => Some(ms * 1000),
            Limit::BytesPerStream(_) => None,
        };
        Self {
            keep: Keep::new(streams.len()),
            shared,
            streams,
            host: Vec::new(),
            cpu_times,
            remarks,
            losses: Vec::new(),
            start: clock::now(),
            end_us,
            last_calls: false,
            received: (0, 0),
        }
    }

    /// Runs the trial to its end. `sends`: this end moves the first byte, so its clock starts when the gate opens.
    pub(crate) fn run(
        mut self,
        inbox: &Receiver<Event>,
        sends: bool,
        on_progress: &mut dyn FnMut(Progress),
    ) -> (Vec<TcpStreamRecord>, Vec<HostSample>, Vec<String>) {
        self.look_at_all(0);
        self.start = clock::now();
        let _ = self.shared.gate.set(self.start);
        if !sends {
            self.await_first_byte(inbox);
        }
        let schedule = Schedule::new(self.shared.plan);
        let mut due = schedule.next(0);
        while self.is_running() {
            let now = clock::micros_since(self.start);
            if now >= due.0 {
                self.look_at_all(now);
                if due.1 {
                    on_progress(self.progress(now, false));
                }
                due = schedule.next(now);
            }
            self.watch_the_end(now);
            let left = Duration::from_micros(due.0.saturating_sub(clock::micros_since(self.start)));
            match inbox.recv_timeout(left.min(LOOK)) {
                Ok(Event::Ended { index, outcome, method }) => self.end_stream(index, &outcome, method),
                Ok(Event::Moving(_)) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let now = clock::micros_since(self.start);
        self.host.push(HostSample { at_us: now, cpus: (self.cpu_times)() });
        on_progress(self.progress(now, true));
        if !self.losses.is_empty() && !self.is_told_to_stop() {
            self.remarks.append(&mut self.losses);
        }
        if self.keep.step() > 1 {
            self.remarks.push(format!("long trial: one in {} samples was kept", self.keep.step()));
        }
        (self.streams.into_iter().map(|live| live.record).collect(), self.host, self.remarks)
    }

    /// An end that only receives starts its clock with the first byte.
    fn await_first_byte(&mut self, inbox: &Receiver<Event>) {
        while self.is_running() {
            match inbox.recv_timeout(LOOK) {
                Ok(Event::Moving(at)) => {
                    self.start = at;
                    return;
                }
                Ok(Event::Ended { index, outcome, method }) => self.end_stream(index, &outcome, method),
                Err(RecvTimeoutError::Timeout) => self.watch_the_end(clock::micros_since(self.start)),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn is_running(&self) -> bool {
        self.streams.iter().any(|live| live.socket.is_some())
    }

    /// Whether the trial was stopped by its user. A peer that was told so first closes first, so the word may be on its way.
    fn is_told_to_stop(&self) -> bool {
        let asked = clock::now();
        while !self.shared.stop.is_set() && asked.elapsed() < WORD_TO_STOP {
            clock::sleep(Duration::from_millis(5));
        }
        self.shared.stop.is_set()
    }

    /// A sample of each running stream and of the host.
    fn look_at_all(&mut self, at_us: u64) {
        let wanted = self.keep.wanted();
        for live in &mut self.streams {
            let Some(socket) = &live.socket else { continue };
            live.last = sample::take(at_us, socket, live.counters);
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
                    let last = live.socket.is_none().then(|| live.record.samples.pop()).flatten();
                    Keep::thin(&mut live.record.samples);
                    live.record.samples.extend(last);
                }
            }
        }
    }

    /// The last sample of a stream, the remark on it, and its close.
    fn end_stream(&mut self, index: usize, outcome: &Outcome, method: &'static str) {
        let ended_us = clock::micros_since(self.start);
        let Some(live) = self.streams.get_mut(index) else { return };
        let Some(socket) = live.socket.take() else { return };
        live.last = sample::take(ended_us, &socket, live.counters);
        live.record.samples.push(live.last.clone());
        live.record.method = method.to_owned();
        let timing = Timing { end_us: self.end_us, ended_us };
        let id = live.record.id;
        let remark =
            if live.sends { outcome.remark_on_sender(id, timing) } else { outcome.remark_on_receiver(id, timing) };
        if matches!(outcome, Outcome::Closed | Outcome::Broken(_)) {
            self.losses.extend(remark);
        } else {
            self.remarks.extend(remark);
        }
        if live.sends && self.shared.payload.as_ref().is_some_and(|payload| payload.method() != method) {
            self.remarks.push(format!("stream {id}: zero copy is not possible on this socket; it sent copies"));
        }
        // A stream of bytes that is complete has nothing queued and closes in order.
        let in_order = self.end_us.is_none() && matches!(outcome, Outcome::Complete);
        if live.sends && !in_order {
            // A failure leaves an ordinary close.
            let _ = tcp::abort_on_close(&socket);
        }
    }

    /// Ends what does not end by itself.
    fn watch_the_end(&mut self, now: u64) {
        let Some(end) = self.end_us else {
            if now > TcpPlan::LONGEST_MS * 1000 {
                self.shared.over.stop();
            }
            return;
        };
        if !self.last_calls && now + LAST_CALLS_US >= end {
            self.last_calls = true;
            for live in self.streams.iter().filter(|live| live.sends) {
                if let Some(socket) = &live.socket {
                    // Without it the sender ends one call limit late.
                    let _ = tcp::set_call_limit(socket, LAST_CALL_LIMIT);
                }
            }
        }
        if now < end {
            return;
        }
        let received = self.streams.iter().filter(|live| !live.sends).map(|live| live.counters.bytes()).sum();
        if self.received.0 != received || self.received.1 < end {
            self.received = (received, now);
        }
        let grace_us = u64::try_from(GRACE.as_micros()).unwrap_or(u64::MAX);
        if now >= end + grace_us || now - self.received.1 >= IDLE_AFTER_END_US {
            self.shared.over.stop();
        }
    }

    fn progress(&self, at_us: u64, done: bool) -> Progress {
        let streams = self.streams.iter().map(|live| StreamProgress {
            id: live.record.id,
            flow: live.record.flow,
            sample: live.last.clone(),
        });
        Progress { at_us, streams: streams.collect(), done }
    }
}
