//! The sampling thread of every engine: it opens the gate, samples all streams at the scheduled instants, and ends the trial.
//!
//! An engine gives its part as [`Streams`]: how a stream is sampled, what its thread leaves, and what ends the trial.

use super::error::TrafficError;
use super::keep::Keep;
use super::limits::GRACE;
use super::progress::{Progress, StreamProgress};
use super::schedule::Schedule;
use super::threads::{Control, Event, Work};
use super::timing::Timing;
use narrows_model::{CpuTimes, Flow, HostSample, TcpPlan};
use narrows_sys::clock;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

/// How often the sampler checks what may end the trial.
const CHECK_EVERY: Duration = Duration::from_millis(20);
/// After a lost peer, how long the sampler waits for the message that the trial was stopped.
const STOP_WAIT: Duration = Duration::from_millis(250);
/// After the planned end, how long a receiver waits without any data.
const IDLE_AFTER_END_US: u64 = 300_000;

/// What ends a trial whose threads do not end by themselves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndRule {
    /// Planned end, microseconds since the start; `None` where bytes end the trial.
    pub(crate) end_us: Option<u64>,
    /// How many times [`GRACE`] this end waits after the planned end.
    pub(crate) graces: u32,
    /// Whether it ends earlier when the streams took nothing for [`IDLE_AFTER_END_US`].
    pub(crate) when_idle: bool,
    /// Whether it waits for the senders of this end, however long they take.
    pub(crate) after_senders: bool,
}

/// What the record says about a stream that ended.
#[derive(Debug, Default)]
pub(crate) struct Remarks {
    /// Always said.
    pub(crate) remarks: Vec<String>,
    /// Said unless the user stopped the trial: the peer was lost too early.
    pub(crate) loss: Option<String>,
}

/// The streams of one end, as their engine knows them. `index` is a stream's position.
pub(crate) trait Streams {
    /// The counters of a stream at one instant.
    type Sample: Clone + Default;
    /// What a stream's thread leaves at its end.
    type Left: Send;

    /// Number and flow of each stream, by position.
    fn names(&self) -> Vec<(u32, Flow)>;

    /// Whether this end sends on the stream.
    fn sends(&self, index: usize) -> bool;

    /// The counters of a stream now.
    fn sample(&self, index: usize, at_us: u64) -> Self::Sample;

    /// Takes what an ended stream leaves; may correct its `last` sample.
    fn end(&mut self, index: usize, left: Self::Left, last: &mut Self::Sample, timing: Timing) -> Remarks;

    /// What ends the trial.
    fn rule(&self) -> EndRule;

    /// A total that grows while data arrives.
    fn arrived(&self) -> u64;

    /// When the first data came, where no thread reports it.
    fn first_arrival(&self) -> Option<Instant> {
        None
    }

    /// Called at each check with the time left until the planned end.
    fn approach_end(&mut self, _left_us: u64) {}

    /// Ends the streams that have no thread, once the trial is over; what each of them leaves.
    fn close(&mut self) -> Vec<Self::Left> {
        Vec::new()
    }
}

/// How one end is sampled.
pub(crate) struct Sampling<'a> {
    pub(crate) schedule: Schedule,
    pub(crate) cpu_times: &'a (dyn Fn() -> Vec<CpuTimes> + Sync),
    /// Whether the clock starts when the gate opens, and not with the first data.
    pub(crate) starts_at_gate: bool,
    /// What the record says so far.
    pub(crate) remarks: Vec<String>,
}

/// What one end has seen.
#[derive(Debug)]
pub(crate) struct Sampled<S> {
    /// The samples of each stream, by position.
    pub(crate) samples: Vec<Vec<S>>,
    pub(crate) host: Vec<HostSample>,
    pub(crate) remarks: Vec<String>,
}

/// Starts the threads of all streams, samples them until the trial is over, and joins them.
///
/// `beside` starts what runs beside the streams in the same scope; it gives what there is to remark.
pub(crate) fn run<'env, S: Streams>(
    control: &'env Control<'env>,
    works: Vec<Work<'env, S::Left>>,
    streams: &mut S,
    mut sampling: Sampling<'_>,
    on_progress: &mut dyn FnMut(Progress<S::Sample>),
    beside: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> Option<String>,
) -> Result<Sampled<S::Sample>, TrafficError>
where
    S::Left: 'env,
{
    let (outbox, inbox) = mpsc::channel();
    thread::scope(|scope| {
        // When all threads have ended the inbox is closed; without threads it stays open.
        let _open = works.is_empty().then(|| outbox.clone());
        for (index, work) in works.into_iter().enumerate() {
            work.start(scope, control, index, outbox.clone())?;
        }
        drop(outbox);
        sampling.remarks.extend(beside(scope));
        let sampled = Sampler::new(control, streams, sampling).run(&inbox, on_progress);
        control.over.stop();
        Ok(sampled)
    })
}

/// One stream as the sampler holds it.
struct Live<S> {
    id: u32,
    flow: Flow,
    sends: bool,
    running: bool,
    last: S,
    kept: Vec<S>,
}

struct Sampler<'a, S: Streams> {
    control: &'a Control<'a>,
    streams: &'a mut S,
    live: Vec<Live<S::Sample>>,
    sampling: Sampling<'a>,
    host: Vec<HostSample>,
    losses: Vec<String>,
    keep: Keep,
    start: Instant,
    /// Whether the clock runs.
    moving: bool,
    rule: EndRule,
    /// What had arrived when that last changed, and when that was.
    arrived: (u64, u64),
}

impl<'a, S: Streams> Sampler<'a, S> {
    fn new(control: &'a Control<'a>, streams: &'a mut S, sampling: Sampling<'a>) -> Self {
        let live: Vec<Live<S::Sample>> = (0..)
            .zip(streams.names())
            .map(|(index, (id, flow))| Live {
                id,
                flow,
                sends: streams.sends(index),
                running: true,
                last: S::Sample::default(),
                kept: Vec::new(),
            })
            .collect();
        Self {
            keep: Keep::new(live.len()),
            rule: streams.rule(),
            moving: sampling.starts_at_gate,
            control,
            streams,
            live,
            sampling,
            host: Vec::new(),
            losses: Vec::new(),
            start: clock::now(),
            arrived: (0, 0),
        }
    }

    fn run(
        mut self,
        inbox: &Receiver<Event<S::Left>>,
        on_progress: &mut dyn FnMut(Progress<S::Sample>),
    ) -> Sampled<S::Sample> {
        self.sample_all(0);
        self.start = clock::now();
        let _ = self.control.gate.set(self.start);
        let mut due = self.sampling.schedule.next(0);
        while self.is_running() {
            if !self.moving
                && let Some(at) = self.streams.first_arrival()
            {
                self.begin(at);
            }
            let now = clock::micros_since(self.start);
            if self.moving && now >= due.0 {
                self.sample_all(now);
                if due.1 {
                    on_progress(self.progress(now, false));
                }
                due = self.sampling.schedule.next(now);
            }
            self.watch_end(now);
            let left = Duration::from_micros(due.0.saturating_sub(clock::micros_since(self.start)));
            match inbox.recv_timeout(if self.moving { left.min(CHECK_EVERY) } else { CHECK_EVERY }) {
                Ok(Event::Ended { index, left }) => self.end_stream(index, left),
                Ok(Event::Moving(at)) => self.begin(at),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let now = clock::micros_since(self.start);
        self.host.push(HostSample { at_us: now, cpus: (self.sampling.cpu_times)() });
        on_progress(self.progress(now, true));
        let mut remarks = std::mem::take(&mut self.sampling.remarks);
        if !self.losses.is_empty() && !self.is_stopped() {
            remarks.append(&mut self.losses);
        }
        if self.keep.step() > 1 {
            remarks.push(format!("long trial: one in {} samples was kept", self.keep.step()));
        }
        Sampled { samples: self.live.into_iter().map(|live| live.kept).collect(), host: self.host, remarks }
    }

    /// Starts the clock of an end that waits for the first data.
    const fn begin(&mut self, at: Instant) {
        if !self.moving {
            (self.moving, self.start) = (true, at);
        }
    }

    fn is_running(&self) -> bool {
        self.live.iter().any(|live| live.running)
    }

    /// Whether the user stopped the trial. A peer that was stopped first closes first, so the message may be on its way.
    fn is_stopped(&self) -> bool {
        let asked = clock::now();
        while !self.control.stop.is_set() && asked.elapsed() < STOP_WAIT {
            clock::sleep(Duration::from_millis(5));
        }
        self.control.stop.is_set()
    }

    /// A sample of each running stream and of the host.
    fn sample_all(&mut self, at_us: u64) {
        let kept = self.keep.keeps_next();
        for (index, live) in self.live.iter_mut().enumerate().filter(|(_, live)| live.running) {
            live.last = self.streams.sample(index, at_us);
            if kept {
                live.kept.push(live.last.clone());
            }
        }
        if !kept {
            return;
        }
        self.host.push(HostSample { at_us, cpus: (self.sampling.cpu_times)() });
        if self.keep.is_full(self.host.len()) {
            Keep::thin(&mut self.host);
            for live in &mut self.live {
                // One that ended keeps its last sample.
                let last = (!live.running).then(|| live.kept.pop()).flatten();
                Keep::thin(&mut live.kept);
                live.kept.extend(last);
            }
        }
    }

    /// The last sample of a stream, and the remarks on it.
    fn end_stream(&mut self, index: usize, left: S::Left) {
        let ended_us = clock::micros_since(self.start);
        let Some(live) = self.live.get_mut(index).filter(|live| live.running) else { return };
        live.running = false;
        live.last = self.streams.sample(index, ended_us);
        let timing = Timing { end_us: self.rule.end_us, ended_us };
        let Remarks { remarks, loss } = self.streams.end(index, left, &mut live.last, timing);
        live.kept.push(live.last.clone());
        self.losses.extend(loss);
        self.sampling.remarks.extend(remarks);
    }

    /// Ends what does not end by itself.
    fn watch_end(&mut self, now: u64) {
        if self.is_due_to_end(now) {
            self.control.over.stop();
        }
        if self.control.is_over() {
            for (index, left) in self.streams.close().into_iter().enumerate() {
                self.end_stream(index, left);
            }
        }
    }

    fn is_due_to_end(&mut self, now: u64) -> bool {
        let Some(end) = self.rule.end_us else { return now > TcpPlan::LONGEST_MS * 1000 };
        self.streams.approach_end(end.saturating_sub(now));
        if now < end || (self.rule.after_senders && self.live.iter().any(|live| live.running && live.sends)) {
            return false;
        }
        let arrived = self.streams.arrived();
        if self.arrived.0 != arrived || self.arrived.1 < end {
            self.arrived = (arrived, now);
        }
        let grace_us = u64::try_from((GRACE * self.rule.graces).as_micros()).unwrap_or(u64::MAX);
        let idle = self.rule.when_idle && now - self.arrived.1 >= IDLE_AFTER_END_US;
        idle || now >= end + grace_us
    }

    fn progress(&self, at_us: u64, done: bool) -> Progress<S::Sample> {
        let streams =
            self.live.iter().map(|live| StreamProgress { id: live.id, flow: live.flow, sample: live.last.clone() });
        Progress { at_us, streams: streams.collect(), done }
    }
}
