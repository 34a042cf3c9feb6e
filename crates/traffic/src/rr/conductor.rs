//! The sampling thread of a request/response trial: it opens the gate, looks at all streams at the scheduled instants, sees to
//! it that the trial ends, and writes the record.

use super::answer::Answers;
use super::outcome::{Leaves, Outcome};
use super::tally::Tally;
use super::{RrProgress, RrStreamProgress, Shared};
use crate::engine::GRACE;
use crate::outcome::Timing;
use crate::schedule::{Keep, Schedule};
use narrows_model::{CpuTimes, HostSample, Limit, Place, RrPlan, RrSample, RrStreamRecord, TcpPlan};
use narrows_sys::clock;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How often the conductor looks at what may end the trial.
const LOOK: Duration = Duration::from_millis(20);
/// So long after a loss the word that the trial was stopped may still come.
const WORD_TO_STOP: Duration = Duration::from_millis(250);
/// After the planned end a server waits only so long without any request.
const IDLE_AFTER_END_US: u64 = 300_000;

/// What a stream's thread tells.
#[derive(Debug)]
pub(super) enum Event {
    /// The first request came in.
    Moving(Instant),
    /// The thread is done with its stream.
    Ended {
        /// Of the stream, by position.
        index: usize,
        leaves: Box<Leaves>,
    },
}

/// Where a stream's counts are.
pub(super) enum Source<'a> {
    /// Its thread writes them.
    Thread(&'a Tally),
    /// The accept path does, for the stream at this position.
    Accept(&'a Answers, usize),
}

struct Live<'a> {
    record: RrStreamRecord,
    source: Source<'a>,
    running: bool,
    last: RrSample,
}

impl Live<'_> {
    fn look(&mut self, at_us: u64) -> RrSample {
        self.last = match self.source {
            Source::Thread(tally) => tally.sample(at_us, true),
            Source::Accept(answers, index) => answers.sample(index, at_us),
        };
        self.last
    }
}

/// See the module.
pub(super) struct Conductor<'a> {
    shared: &'a Shared<'a>,
    lives: Vec<Live<'a>>,
    answers: Option<&'a Answers>,
    host: Vec<HostSample>,
    cpu_times: &'a (dyn Fn() -> Vec<CpuTimes> + Sync),
    remarks: Vec<String>,
    /// The remarks on streams whose peer was gone too early.
    losses: Vec<String>,
    keep: Keep,
    start: Instant,
    end_us: u64,
    /// What the server had answered when that last changed, and when that was.
    answered: (u64, u64),
}

impl<'a> Conductor<'a> {
    pub(super) fn new(
        shared: &'a Shared<'a>,
        streams: Vec<(RrStreamRecord, Source<'a>)>,
        answers: Option<&'a Answers>,
        cpu_times: &'a (dyn Fn() -> Vec<CpuTimes> + Sync),
        remarks: Vec<String>,
    ) -> Self {
        let lives: Vec<_> = streams
            .into_iter()
            .map(|(record, source)| Live { record, source, running: true, last: RrSample::default() })
            .collect();
        Self {
            keep: Keep::new(lives.len()),
            lives,
            answers,
            host: Vec::new(),
            cpu_times,
            remarks,
            losses: Vec::new(),
            start: clock::now(),
            end_us: shared.plan.duration_ms * 1000,
            answered: (0, 0),
            shared,
        }
    }

    /// Runs the trial to its end.
    pub(super) fn run(
        mut self,
        inbox: &Receiver<Event>,
        on_progress: &mut dyn FnMut(RrProgress),
    ) -> (Vec<RrStreamRecord>, Vec<HostSample>, Vec<String>) {
        self.look_at_all(0);
        self.start = clock::now();
        let _ = self.shared.gate.set(self.start);
        if self.shared.place == Place::Server {
            self.await_first_request(inbox);
        }
        let schedule = schedule(self.shared.plan);
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
            self.hear(inbox, left.min(LOOK));
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
        (self.lives.into_iter().map(|live| live.record).collect(), self.host, self.remarks)
    }

    /// Waits for news from a thread; the start of the clock, where it is that.
    fn hear(&mut self, inbox: &Receiver<Event>, limit: Duration) -> Option<Instant> {
        match inbox.recv_timeout(limit) {
            Ok(Event::Moving(at)) => return Some(at),
            Ok(Event::Ended { index, leaves }) => self.end_stream(index, *leaves),
            Err(RecvTimeoutError::Timeout) => {}
            // Only with connections that the accept path answers nobody holds the other end.
            Err(RecvTimeoutError::Disconnected) => clock::sleep(limit),
        }
        None
    }

    /// A server starts its clock with the first request.
    fn await_first_request(&mut self, inbox: &Receiver<Event>) {
        while self.is_running() {
            if let Some(at) = self.hear(inbox, LOOK).or_else(|| self.answers?.first()) {
                self.start = at;
                return;
            }
            self.watch_the_end(clock::micros_since(self.start));
        }
    }

    fn is_running(&self) -> bool {
        self.lives.iter().any(|live| live.running)
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
        for live in self.lives.iter_mut().filter(|live| live.running) {
            let sample = live.look(at_us);
            if wanted {
                live.record.samples.push(sample);
            }
        }
        if !wanted {
            return;
        }
        self.host.push(HostSample { at_us, cpus: (self.cpu_times)() });
        if self.keep.is_full(self.host.len()) {
            Keep::thin(&mut self.host);
            for live in &mut self.lives {
                // One that ended keeps its last sample.
                let last = (!live.running).then(|| live.record.samples.pop()).flatten();
                Keep::thin(&mut live.record.samples);
                live.record.samples.extend(last);
            }
        }
    }

    /// The last sample of a stream, what it leaves, and the remarks on it.
    fn end_stream(&mut self, index: usize, leaves: Leaves) {
        let ended_us = clock::micros_since(self.start);
        let Some(live) = self.lives.get_mut(index).filter(|live| live.running) else { return };
        live.running = false;
        let sample = live.look(ended_us);
        let record = &mut live.record;
        record.samples.push(sample);
        (record.transactions, record.failures) = (sample.transactions, sample.failures);
        record.latency_ns = leaves.latency.distribution();
        if leaves.connect.count() > 0 {
            record.connect_ns = leaves.connect.distribution();
        }
        if let Some(local) = leaves.local {
            record.local = local;
        }
        let (id, timing) = (record.id, Timing { end_us: Some(self.end_us), ended_us });
        let remark = leaves.outcome.remark(id, timing, self.shared.place == Place::Client);
        if leaves.outcome.is_loss() {
            self.losses.extend(remark);
        } else {
            self.remarks.extend(remark);
        }
        self.remarks.extend(leaves.notes.into_iter().map(|note| format!("stream {id}: {note}")));
    }

    /// Ends what does not end by itself.
    fn watch_the_end(&mut self, now: u64) {
        let answered = self.lives.iter().map(|live| match live.source {
            Source::Thread(tally) => tally.transactions(),
            Source::Accept(answers, index) => answers.sample(index, 0).transactions,
        });
        let answered = answered.sum();
        if self.answered.0 != answered || self.answered.1 < self.end_us {
            self.answered = (answered, now);
        }
        let grace_us = u64::try_from(GRACE.as_micros()).unwrap_or(u64::MAX);
        let idle = self.shared.place == Place::Server && now.saturating_sub(self.answered.1) >= IDLE_AFTER_END_US;
        // A requester ends a moment after the grace by itself, and says what is missing.
        let grace_us = if self.shared.place == Place::Server { grace_us } else { 2 * grace_us };
        if now >= self.end_us && (now >= self.end_us + grace_us || idle) {
            self.shared.over.stop();
        }
        if let Some(answers) = self.answers
            && (self.shared.over.is_set() || self.shared.stop.is_set())
        {
            answers.close();
            for index in 0..self.lives.len() {
                if let (Some(ends), Some(live)) = (answers.ends(index), self.lives.get_mut(index)) {
                    (live.record.local, live.record.remote) = ends;
                }
                self.end_stream(index, Leaves::of(Outcome::Complete, Vec::new()));
            }
        }
    }

    fn progress(&self, at_us: u64, done: bool) -> RrProgress {
        let streams = self.lives.iter().map(|live| RrStreamProgress { id: live.record.id, sample: live.last });
        RrProgress { at_us, streams: streams.collect(), done }
    }
}

/// The instants of the TCP engine.
fn schedule(plan: &RrPlan) -> Schedule {
    Schedule::new(&TcpPlan {
        limit: Limit::DurationMs(plan.duration_ms),
        omit_ms: plan.omit_ms,
        interval_ms: plan.interval_ms,
        ..TcpPlan::default()
    })
}
