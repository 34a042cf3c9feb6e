//! The sampling thread of every engine: it opens the gate, samples all streams at the scheduled instants, and ends the trial.
//!
//! An engine gives its part as [`Streams`]: how a stream is sampled, what its thread leaves, and what arrived.

use super::engine::End;
use super::error::TrafficError;
use super::limits::GRACE;
use super::outcome::{Remarks, Timing};
use super::schedule::{Schedule, Starts, Thinning};
use super::threads::{Control, Event, Work};
use narrows_model::{Flow, HostSample, LoadSample, Progress, Sample, StreamProgress, TcpPlan};
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

/// The streams of one end, as their engine knows them. `index` is a stream's position.
pub(crate) trait Streams {
    /// The counters of a stream at one instant.
    type Sample: Sample + Clone + Default + Into<LoadSample>;
    /// What a stream's thread leaves at its end.
    type Left: Send;

    /// The counters of a stream now.
    fn sample(&self, index: usize, at_us: u64) -> Self::Sample;

    /// Takes what an ended stream leaves; may correct its `last` sample.
    fn end(&mut self, index: usize, left: Self::Left, last: &mut Self::Sample, timing: Timing) -> Remarks;

    /// A total that grows while data arrives.
    fn arrived(&self) -> u64;

    /// When the first data came, where no thread reports it.
    fn first_arrival(&self) -> Option<Instant> {
        None
    }

    /// Called at each check with the time since the start.
    fn check(&mut self, _now_us: u64) {}

    /// What there is to remark once the trial is over.
    fn remark(&mut self) -> Option<String> {
        None
    }

    /// Called at each check with the time left until the planned end.
    fn approach_end(&mut self, _left_us: u64) {}

    /// Ends the streams that have no thread, once the trial is over; what each of them leaves.
    fn close(&mut self) -> Vec<Self::Left> {
        Vec::new()
    }
}

/// How one end is sampled, and what ends a trial whose threads do not end by themselves.
pub(crate) struct Sampling {
    /// Number and flow of each stream, by position.
    pub(crate) streams: Vec<(u32, Flow)>,
    pub(crate) schedule: Schedule,
    pub(crate) starts: Starts,
    /// How many times [`GRACE`] this end waits after the planned end.
    pub(crate) graces: u32,
    /// Whether it ends earlier when nothing arrived for [`IDLE_AFTER_END_US`].
    pub(crate) when_idle: bool,
    /// Whether it waits for the senders of this end, however long they take.
    pub(crate) after_senders: bool,
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
    mut sampling: Sampling,
    end: End<'_>,
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
        let sampled = Sampler::new(control, streams, sampling, end).run(&inbox);
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

struct Sampler<'a, 'e, S: Streams> {
    control: &'a Control<'a>,
    streams: &'a mut S,
    live: Vec<Live<S::Sample>>,
    sampling: Sampling,
    end: End<'e>,
    host: Vec<HostSample>,
    losses: Vec<String>,
    thinning: Thinning,
    start: Instant,
    /// Whether the clock runs.
    moving: bool,
    /// What had arrived when that last changed, and when that was.
    arrived: (u64, u64),
}

impl<'a, 'e, S: Streams> Sampler<'a, 'e, S> {
    fn new(control: &'a Control<'a>, streams: &'a mut S, sampling: Sampling, end: End<'e>) -> Self {
        let live = |&(id, flow): &(u32, Flow)| Live {
            id,
            flow,
            sends: flow.sender() == end.place,
            running: true,
            last: S::Sample::default(),
            kept: Vec::new(),
        };
        let live: Vec<_> = sampling.streams.iter().map(live).collect();
        Self {
            thinning: Thinning::new(live.len()),
            moving: sampling.starts == Starts::AtGate,
            control,
            streams,
            live,
            sampling,
            end,
            host: Vec::new(),
            losses: Vec::new(),
            start: clock::now(),
            arrived: (0, 0),
        }
    }

    fn run(mut self, inbox: &Receiver<Event<S::Left>>) -> Sampled<S::Sample> {
        self.sample_all(0);
        self.start = clock::now();
        let _ = self.control.gate.set(self.start);
        let mut due = self.sampling.schedule.next(0);
        while self.live.iter().any(|live| live.running) {
            if !self.moving
                && let Some(at) = self.streams.first_arrival().or_else(|| self.due_in_silence())
            {
                self.begin(at);
            }
            let now = clock::micros_since(self.start);
            if self.moving && now >= due.0 {
                self.sample_all(now);
                if due.1 {
                    self.report(now);
                }
                due = self.sampling.schedule.next(now);
            }
            if self.moving {
                self.streams.check(now);
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
        self.sample_host(now);
        self.report(now);
        let mut remarks = std::mem::take(&mut self.sampling.remarks);
        remarks.extend(self.streams.remark());
        if !self.losses.is_empty() && !self.is_stopped() {
            remarks.append(&mut self.losses);
        }
        if self.thinning.step() > 1 {
            remarks.push(format!("long trial: one in {} samples was kept", self.thinning.step()));
        }
        Sampled { samples: self.live.into_iter().map(|live| live.kept).collect(), host: self.host, remarks }
    }

    /// Starts the clock of an end that waits for the first data.
    const fn begin(&mut self, at: Instant) {
        if !self.moving {
            (self.moving, self.start) = (true, at);
        }
    }

    /// When the first data were due, once the silence since then is part of the trial.
    fn due_in_silence(&self) -> Option<Instant> {
        let due = self.sampling.starts.due_in_silence(self.start.elapsed(), self.end.place)?;
        Some(self.start + due)
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
        let kept = self.thinning.keeps_next();
        for (index, live) in self.live.iter_mut().enumerate().filter(|(_, live)| live.running) {
            live.last = self.streams.sample(index, at_us);
            if kept {
                live.kept.push(live.last.clone());
            }
        }
        if !kept {
            return;
        }
        self.sample_host(at_us);
        if self.thinning.is_full(self.host.len()) {
            Thinning::thin(&mut self.host);
            for live in &mut self.live {
                // One that ended keeps its last sample.
                let last = (!live.running).then(|| live.kept.pop()).flatten();
                Thinning::thin(&mut live.kept);
                live.kept.extend(last);
            }
        }
    }

    fn sample_host(&mut self, at_us: u64) {
        self.host.push(HostSample { at_us, cpus: (self.end.cpu_times)() });
    }

    /// The last sample of a stream, and the remarks on it.
    fn end_stream(&mut self, index: usize, left: S::Left) {
        let ended_us = clock::micros_since(self.start);
        let Some(live) = self.live.get_mut(index).filter(|live| live.running) else { return };
        live.running = false;
        live.last = self.streams.sample(index, ended_us);
        let timing = Timing { end_us: self.sampling.schedule.end_us, ended_us };
        let Remarks { remarks, loss } = self.streams.end(index, left, &mut live.last, timing);
        // It may be of an earlier instant, since when nothing was counted.
        while live.kept.len() > 1 && live.kept.last().is_some_and(|it| it.at_us() >= live.last.at_us()) {
            live.kept.pop();
        }
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
        let Some(end) = self.sampling.schedule.end_us else { return now > TcpPlan::LONGEST_MS * 1000 };
        self.streams.approach_end(end.saturating_sub(now));
        if now < end || (self.sampling.after_senders && self.live.iter().any(|live| live.running && live.sends)) {
            return false;
        }
        let arrived = self.streams.arrived();
        if self.arrived.0 != arrived || self.arrived.1 < end {
            self.arrived = (arrived, now);
        }
        let grace_us = u64::try_from((GRACE * self.sampling.graces).as_micros()).unwrap_or(u64::MAX);
        let idle = self.sampling.when_idle && now - self.arrived.1 >= IDLE_AFTER_END_US;
        idle || now >= end + grace_us
    }

    fn report(&mut self, at_us: u64) {
        let stream =
            |live: &Live<S::Sample>| StreamProgress { id: live.id, flow: live.flow, sample: live.last.clone().into() };
        (self.end.on_progress)(Progress { at_us, streams: self.live.iter().map(stream).collect() });
    }
}
