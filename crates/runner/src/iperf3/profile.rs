//! The path profile with a server of iperf3: each step is a short test of its own over UDP.
//!
//! Down, each datagram has its number and the time at which it was sent. Up, the server tells how many arrived; how long the queue was at
//! the end, its answer to the end of the test shows, which left this host right behind the last datagram. When each arrived nobody tells.

use super::connect::{Iperf3Error, Peer};
use super::running;
use super::streams::REPEAT;
use super::test::{Opened, exchange, open};
use crate::ends::{EndsError, TrialFailed};
use crate::foreign::{Enough, Here, failed};
use narrows_model::load::udp::UdpRate;
use narrows_model::{
    DatagramSizes, Direction, LoadPlan, LoadSample, Place, ProfileEndRecord, ProfilePlan, ProfileProbe, ProfileSample,
    ProfileStep, ProfileStream, Progress, StepReceived, StepRecord, StepSent, StreamProgress, Trial, UdpPlan,
    UdpSample,
};
use narrows_search::profile::{Next, Staircase};
use narrows_sys::clock;
use narrows_sys::udp::socket;
use narrows_traffic::profile::iperf3;
use narrows_traffic::{DataStream, Socket};
use narrows_wire::iperf3::far;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

/// Streams of the first test, which opens and ends: the server replies to a datagram for each, one after another.
const PROBES: u32 = 10;
/// The rate of a test whose first burst is all that counts: the next one follows well after it.
const TRAIN_BPS: u64 = 400_000;
/// The server says nothing of what its own socket lost: none does at less.
const MOST_BPS: u64 = 2_000_000_000;
/// After so many times the plan's limit, which is of its load, no step begins, and none is tried again: each costs six round trips.
pub(super) const TAKES: u64 = 4;
/// So often a wait looks whether the user ended it.
const LOOK: Duration = Duration::from_millis(50);
/// Datagrams at the end of a step that the server may not have read.
const UNREAD: u64 = 3;
/// Datagrams this far apart are read as they come.
const SLOW_NS: u64 = 100_000;
/// A step of which the end is not known is made again so often.
const TRIES: u32 = 3;
/// A server closes its port between two tests, and refuses while it is busy with another client's: so long before the second try, and four times as
/// long before each further one.
const BUSY: Duration = Duration::from_millis(20);
const LONGEST_BUSY: Duration = Duration::from_secs(1);

struct Profile<'a> {
    peer: &'a Peer,
    plan: &'a ProfilePlan,
    here: &'a Here,
    record: ProfileEndRecord,
    began: Instant,
    slowest_ns: u64,
    /// How long the answer to the end of a test takes on the idle path.
    idle_ns: u64,
    bytes: u64,
}

/// Runs a profile.
/// Errors: the first test failed, or the user ended it.
pub(super) fn trial(peer: &Peer, plan: &ProfilePlan, here: &Here, enough: Enough<'_>) -> Result<Trial, TrialFailed> {
    let before = here.instruments.counters(Some(peer.address().ip()));
    let record = ProfileEndRecord::empty(Place::Client);
    let mut profile = Profile { peer, plan, here, record, began: clock::now(), slowest_ns: 0, idle_ns: 0, bytes: 0 };
    // Without a profile the diagnosis knows less, and goes on.
    profile.probe().map_err(|error| failed(error.to_string()))?;
    profile.steps(enough);
    let Profile { mut record, began, bytes, .. } = profile;
    let elapsed_us = clock::micros_since(began);
    let flow = plan.direction.flows().first().copied().unwrap_or_default();
    let last = ProfileSample { at_us: elapsed_us, steps: record.steps.len() as u32, bytes };
    record.streams = vec![ProfileStream { flow, samples: vec![ProfileSample::default(), last] }];
    (record.before, record.after) = (before, here.instruments.counters(Some(peer.address().ip())));
    let server = ProfileEndRecord::empty(Place::Server);
    let trial = Trial { plan: plan.clone().into(), client: record.into(), server: server.into(), elapsed_us };
    if here.stop.is_set() {
        return Err(TrialFailed { why: EndsError::Interrupted, partial: Some(Box::new(trial)) });
    }
    Ok(trial)
}

impl Profile<'_> {
    /// Opens a test of the profile's direction. With each socket how long the server's reply took, ns.
    fn open(&self, of: UdpPlan) -> Result<(Opened, Vec<(UdpSocket, u64)>), Iperf3Error> {
        let of = UdpPlan { direction: self.plan.direction, ..of };
        let plan = LoadPlan::Udp(of);
        let mut wait = BUSY;
        let mut opened = loop {
            match open(self.peer, &plan) {
                Err(Iperf3Error::Answered(..) | Iperf3Error::Lost(..) | Iperf3Error::Remote(_))
                    if wait <= LONGEST_BUSY && self.has_time() =>
                {
                    clock::sleep(wait);
                    wait *= 4;
                }
                other => break other?,
            }
        };
        let of_stream = |stream: DataStream| match stream.socket {
            Socket::Udp(udp) => Some((udp.socket, stream.connect_ns.unwrap_or(0))),
            _ => None,
        };
        let sockets = std::mem::take(&mut opened.streams).into_iter().filter_map(of_stream).collect();
        Ok((opened, sockets))
    }

    fn has_time(&self) -> bool {
        !self.here.stop.is_set() && self.began.elapsed() <= self.longest()
    }

    fn longest(&self) -> Duration {
        Duration::from_millis(self.plan.limit_ms * TAKES)
    }

    /// Waits, until the user ends it.
    fn wait(&self, time: Duration) {
        let began = clock::now();
        while let Some(left) = time.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) {
            if self.here.stop.is_set() {
                return;
            }
            clock::sleep(left.min(LOOK));
        }
    }

    /// The idle path: round trips of small datagrams, and what datagrams it takes.
    fn probe(&mut self) -> Result<(), Iperf3Error> {
        let rate = UdpRate::Bps(u64::from(PROBES) * 8_000);
        let plan =
            UdpPlan { streams: PROBES, rate_up: rate, rate_down: rate, duration_ms: 1_000, ..UdpPlan::default() };
        let (mut opened, sockets) = self.open(plan)?;
        let round_trip = |rtt_ns: u64| {
            let ns = i64::try_from(rtt_ns).unwrap_or(0);
            // Of either way nothing is known: each is as uneven as both together.
            ProfileProbe { bytes: 0, rtt_ns, up_ns: ns, down_ns: ns }
        };
        // Where the datagram or its reply was lost, it is the time until another one was sent.
        let whole = || sockets.iter().map(|(_, ns)| *ns).filter(|ns| *ns < REPEAT.as_nanos() as u64);
        self.record.probes = whole().map(round_trip).collect();
        self.record.probes_sent = PROBES;
        self.record.header_bytes = socket::header_bytes(&self.peer.address());
        self.record.datagram_bytes = match &opened.plan {
            LoadPlan::Udp(UdpPlan { sizes: DatagramSizes::Sequence(sizes), .. }) => sizes.first().copied().unwrap_or(0),
            _ => 0,
        };
        self.slowest_ns = whole().max().unwrap_or(REPEAT.as_nanos() as u64);
        self.end(&mut opened)?;
        if self.plan.direction == Direction::Down {
            return Ok(());
        }
        let rate = UdpRate::Bps(8_000);
        let (mut opened, _sockets) =
            self.open(UdpPlan { rate_up: rate, rate_down: rate, duration_ms: 1_000, ..UdpPlan::default() })?;
        // A server that has just begun a test answers late.
        clock::sleep(Duration::from_nanos(2 * self.slowest_ns) + BUSY);
        let asked = clock::now();
        self.end(&mut opened)?;
        self.idle_ns = nanos(asked.elapsed());
        let ns = i64::try_from(self.idle_ns).unwrap_or(i64::MAX);
        let (bytes, rtt_ns) = (self.record.datagram_bytes, self.idle_ns);
        self.record.probes.push(ProfileProbe { bytes, rtt_ns, up_ns: ns, down_ns: ns });
        Ok(())
    }

    /// Ends a test without data.
    fn end(&self, opened: &mut Opened) -> Result<(), Iperf3Error> {
        running::end(&mut opened.control, &[])?;
        exchange(&mut opened.control, &opened.plan, &counted(&opened.plan, StepSent::default(), 0)).map(|_| ())
    }

    fn steps(&mut self, enough: Enough<'_>) {
        let most = if self.plan.direction == Direction::Up { MOST_BPS } else { ProfilePlan::MAX_BPS };
        let max_bps = self.plan.max_bps.min(most).max(ProfilePlan::MIN_BPS);
        let plan = ProfilePlan { max_bps, start_bps: self.plan.start_bps.min(max_bps), ..self.plan.clone() };
        let record = &self.record;
        let mut staircase = Staircase::new(&plan, record.header_bytes, record.datagram_bytes, &record.probes);
        // The time that the tests take beside their data is none of the plan's.
        let mut loaded_ns = 0;
        while let Next::Step { step, wait_ns } = staircase.next(loaded_ns) {
            if self.began.elapsed() > self.longest() {
                let after = narrows_model::words::units::micros(clock::micros_since(self.began));
                self.record.remarks.push(format!("the profile ended after {after}, before it was over"));
                return;
            }
            self.wait(Duration::from_nanos(wait_ns));
            if self.here.stop.is_set() {
                return;
            }
            let at_us = clock::micros_since(self.began);
            let (sent, received) = match self.step(step) {
                Ok(found) => found,
                Err(error) => {
                    self.record.remarks.push(error.to_string());
                    return;
                }
            };
            if self.here.stop.is_set() {
                return;
            }
            loaded_ns = sent.span_ns.saturating_add(loaded_ns + wait_ns);
            self.bytes += u64::from(sent.datagrams) * u64::from(step.datagram_bytes);
            let record = StepRecord { at_us, step, sent, received };
            self.record.steps.push(record.clone());
            staircase.observe(record);
            let sample = ProfileSample {
                at_us: clock::micros_since(self.began),
                steps: self.record.steps.len() as u32,
                bytes: self.bytes,
            };
            let flow = plan.direction.flows().first().copied().unwrap_or_default();
            let stream = StreamProgress { id: 0, flow, sample: LoadSample::from(sample) };
            if enough(Place::Client, &Progress { at_us: sample.at_us, streams: vec![stream] }) {
                return;
            }
        }
    }

    /// Makes a step, again where the server's answer to its end was lost on the way.
    fn step(&self, step: ProfileStep) -> Result<(StepSent, Option<StepReceived>), Iperf3Error> {
        let mut tries = 1;
        loop {
            match self.one(step)? {
                (_, None) if tries < TRIES && self.has_time() => tries += 1,
                known => return Ok(known),
            }
        }
    }

    fn one(&self, step: ProfileStep) -> Result<(StepSent, Option<StepReceived>), Iperf3Error> {
        let bits = u64::from(step.datagram_bytes) * 8;
        let bps = (bits * 1_000_000_000).checked_div(step.gap_ns).unwrap_or(TRAIN_BPS);
        let plan = UdpPlan {
            rate_up: UdpRate::Bps(bps),
            rate_down: UdpRate::Bps(bps),
            sizes: DatagramSizes::Sequence(vec![step.datagram_bytes]),
            duration_ms: step.planned_ns() / 1_000_000 + 2_000,
            burst_datagrams: (step.gap_ns == 0).then_some(step.datagrams),
            ..UdpPlan::default()
        };
        let (Opened { mut control, plan, .. }, sockets) = self.open(plan)?;
        let Some((socket, _)) = sockets.first() else { return Ok((StepSent::default(), None)) };
        let stop = &self.here.stop;
        if self.plan.direction == Direction::Down {
            let found = iperf3::receive(socket, &step, 2 * self.slowest_ns + 500_000_000, stop);
            running::end(&mut control, &[])?;
            let (sent, received) = found.map_or((StepSent::default(), None), |(sent, found)| (sent, Some(found)));
            exchange(&mut control, &plan, &counted(&plan, sent, step.datagram_bytes))?;
            return Ok((sent, received));
        }
        let sent = iperf3::send(socket, &step, stop);
        let before = control.retransmits();
        let asked = clock::now();
        running::end(&mut control, &[])?;
        let answered_ns = nanos(asked.elapsed());
        // An end that was lost on the way says nothing of the queue.
        let is_exact = control.retransmits() == before;
        let theirs = exchange(&mut control, &plan, &counted(&plan, sent, step.datagram_bytes))?;
        let (packets, lost) = theirs.streams.first().map_or((0, 0), |it| (it.packets, it.lost));
        let arrived = u32::try_from(packets.saturating_sub(lost)).unwrap_or(u32::MAX);
        // The server reads no more once it knows of the end, which may overtake the last datagrams at its own socket.
        let unread = u64::from(sent.datagrams).saturating_sub(packets);
        let sent = if unread <= UNREAD { StepSent { datagrams: sent.datagrams - unread as u32, ..sent } } else { sent };
        let earlier = self.record.steps.iter().filter_map(|it| u64::try_from(it.received.as_ref()?.min_delay_ns).ok());
        let least_ns = earlier.fold(self.idle_ns.min(answered_ns), u64::min);
        // Where each flow has a queue of its own, the end overtakes the data: what waits there is not lost.
        let part = if step.gap_ns > SLOW_NS { 100 } else { 20 };
        let overtook = step.gap_ns > 0 && unread > UNREAD.max(u64::from(sent.datagrams) / part);
        let received = || far::step(sent, arrived, answered_ns, least_ns);
        Ok((sent, (is_exact && !overtook && arrived > 0).then(received)))
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// What this end tells the server of a step.
fn counted(plan: &LoadPlan, sent: StepSent, datagram_bytes: u32) -> narrows_model::LoadRecord {
    let datagrams = u64::from(sent.datagrams);
    let bytes = datagrams * u64::from(datagram_bytes);
    let last = UdpSample { at_us: sent.span_ns / 1_000 + 1, datagrams, bytes, ..UdpSample::default() };
    let flow = plan.streams().first().map(|spec| spec.flow).unwrap_or_default();
    let report = |sample: UdpSample| {
        let stream = StreamProgress { id: 0, flow, sample: LoadSample::from(sample.clone()) };
        Progress { at_us: sample.at_us, streams: vec![stream] }
    };
    plan.partial_record(Place::Client, &[report(UdpSample::default()), report(last)], String::new())
}
