//! One end of a profile: its socket, what it sends, what it hears.

use super::arrivals::Arrivals;
use super::sending;
use crate::common::engine;
use crate::common::error::TrafficError;
use crate::udp::{UdpError, UdpStream};
use narrows_model::{
    HostSample, Place, ProfileEndRecord, ProfilePlan, ProfileSample, ProfileStep, ProfileStream, Progress,
    StepReceived, StepSent, StreamProgress,
};
use narrows_sys::nanos::{self, EvenClock};
use narrows_sys::tcp;
use narrows_sys::udp::{ReceiveBatch, socket};
use narrows_wire::probe::{HEADER_BYTES, Header};
use narrows_wire::profile::{self, Note};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A call waits no longer for a datagram.
pub(super) const LISTEN: Duration = Duration::from_millis(5);
/// Bytes read of each datagram: enough for a whole note.
pub(super) const ROOM: usize = 4096;

/// A note of the peer, with its clock at sending and this end's at arrival.
pub(super) struct Heard {
    pub(super) note: Note,
    pub(super) sent_ns: u64,
    pub(super) arrived_ns: u64,
}

pub(super) struct End<'a, 'o> {
    pub(super) plan: &'a ProfilePlan,
    pub(super) stream: UdpStream,
    pub(super) record: ProfileEndRecord,
    pub(super) began_ns: u64,
    pub(super) clock: EvenClock,
    /// The step that is received.
    pub(super) arrivals: Arrivals,
    /// What is known of it beforehand.
    pub(super) expected: Option<ProfileStep>,
    observer: engine::End<'o>,
    batch: ReceiveBatch,
    sample: ProfileSample,
    /// The least delay of full datagrams so far.
    least_ns: Option<i64>,
    drops_before: u32,
    enough_sent_ns: u64,
    reported_ns: u64,
}

impl<'a, 'o> End<'a, 'o> {
    pub(super) fn new(
        plan: &'a ProfilePlan,
        mut stream: UdpStream,
        observer: engine::End<'o>,
    ) -> Result<Self, TrafficError> {
        stream.answerer = None;
        let option = |source| UdpError::Socket { stream: stream.id, source };
        socket::set_receive_stamps(&stream.socket, true).map_err(option)?;
        socket::set_coalescing(&stream.socket, false).map_err(option)?;
        let _ = stream.socket.set_read_timeout(Some(LISTEN));
        let header_bytes = socket::header_bytes(&stream.peer);
        let record = ProfileEndRecord {
            header_bytes,
            datagram_bytes: stream.datagram_bytes.min(ProfilePlan::MAX_DATAGRAM_BYTES),
            host: vec![HostSample { at_us: 0, cpus: (observer.cpu_times)() }],
            ..ProfileEndRecord::empty(observer.place)
        };
        Ok(Self {
            plan,
            stream,
            record,
            began_ns: nanos::monotonic(),
            clock: EvenClock::begin(),
            arrivals: Arrivals::new(0),
            expected: None,
            observer,
            batch: ReceiveBatch::new(64, ROOM),
            sample: ProfileSample::default(),
            least_ns: None,
            drops_before: 0,
            enough_sent_ns: 0,
            reported_ns: 0,
        })
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.observer.stop.is_set()
    }

    /// Since the trial began.
    pub(super) fn at_ns(&self) -> u64 {
        nanos::monotonic().saturating_sub(self.began_ns)
    }

    /// Sends a note; whoever waits for an answer sends it again.
    pub(super) fn send_note(&self, note: &Note) {
        let encode = |note: &Note| profile::encode(note, &self.stream.key, self.clock.now());
        let datagram = encode(note);
        let fits = datagram.len() <= self.record.datagram_bytes as usize;
        if !fits || self.stream.socket.send(&datagram).is_err() {
            let _ = self.stream.socket.send(&encode(&note.clone().short()));
        }
    }

    /// Sends a note filled up to a size.
    pub(super) fn send_filled_note(&self, note: &Note, bytes: usize) {
        let mut datagram = profile::encode(note, &self.stream.key, self.clock.now());
        // JSON allows for spaces at its end.
        datagram.resize(datagram.len().max(bytes), b' ');
        let _ = self.stream.socket.send(&datagram);
    }

    /// Receives what is there, or within a few milliseconds: counts datagrams of steps, returns notes.
    pub(super) fn listen(&mut self, wait: bool) -> Vec<Heard> {
        let mut notes = Vec::new();
        let Ok(count) = self.batch.receive(&self.stream.socket, wait) else { return notes };
        let stamps = self.clock.stamps();
        for message in (0..count).filter_map(|index| self.batch.message(index)) {
            let arrived_ns = stamps.at(message.stamp_ns);
            let Ok(header) = Header::decode(message.bytes) else { continue };
            if let Some((step, n)) = profile::of_step(&header) {
                if step > self.arrivals.id {
                    self.arrivals = Arrivals::new(step);
                }
                if step == self.arrivals.id && step > 0 {
                    let delay_ns = i64::try_from(arrived_ns).unwrap_or(0) - i64::try_from(header.time_ns).unwrap_or(0);
                    let least_ns = self.least_ns.map_or(delay_ns, |least| least.min(delay_ns));
                    self.least_ns = Some(least_ns);
                    self.sample.bytes += message.length as u64;
                    self.arrivals.take(n, arrived_ns, delay_ns, delay_ns - least_ns, self.expected.as_ref());
                }
            } else if let Some((note, sent_ns)) = profile::decode(message.bytes, &self.stream.key) {
                notes.push(Heard { note, sent_ns, arrived_ns });
            }
        }
        self.stream.heard.fetch_add(1, Ordering::Relaxed);
        // Sent again now and then: it may be lost on a path that loses much.
        let monotonic = nanos::monotonic();
        let stops = self.expected.is_none_or(|step| step.stop_above_us > 0);
        if stops && self.arrivals.is_enough() && monotonic - self.enough_sent_ns > 20_000_000 {
            self.enough_sent_ns = monotonic;
            self.send_note(&Note::Enough { id: self.arrivals.id });
        }
        notes
    }

    /// Waits for a note that `accept` takes, until `until_ns` by the monotonic clock.
    pub(super) fn wait_for<T>(&mut self, until_ns: u64, mut accept: impl FnMut(&Heard) -> Option<T>) -> Option<T> {
        while nanos::monotonic() < until_ns && !self.is_stopped() {
            if let Some(found) = self.listen(true).iter().find_map(&mut accept) {
                return Some(found);
            }
        }
        None
    }

    /// Sends a step, until it is over, its receiver has seen enough, or the trial is stopped.
    pub(super) fn send(&mut self, step: &ProfileStep) -> StepSent {
        let Ok(socket) = self.stream.socket.try_clone() else { return StepSent::default() };
        let (clock, id, needs_listener) = (self.clock, step.id, self.observer.place == Place::Server);
        let fill = |n: u32, slot: &mut [u8]| {
            slot[..HEADER_BYTES].copy_from_slice(&profile::data(id, n, clock.now()).encode());
        };
        let mut checked_ns = nanos::monotonic();
        sending::send(&socket, step, needs_listener, fill, |took| {
            self.sample.bytes += took;
            let now_ns = nanos::monotonic();
            let looks = step.stop_above_us > 0 && now_ns - checked_ns > 2_000_000;
            if looks {
                checked_ns = now_ns;
            }
            let is_enough = looks && self.listen(false).iter().any(|heard| heard.note == Note::Enough { id });
            !is_enough && !self.is_stopped()
        })
    }

    /// Begins to receive a step.
    pub(super) fn expect(&mut self, step: ProfileStep) {
        if self.arrivals.id != step.id {
            self.arrivals = Arrivals::new(step.id);
        }
        self.expected = Some(step);
        self.drops_before = self.drops();
    }

    /// What arrived of the step that is received, of which so many datagrams were sent.
    pub(super) fn account(&self, sent: u32) -> StepReceived {
        self.arrivals.account(sent, self.drops().saturating_sub(self.drops_before))
    }

    /// The same of a step by its number; nothing of it where a later one was received.
    pub(super) fn account_of(&mut self, id: u16, sent: u32) -> StepReceived {
        let sent = sent.min(ProfilePlan::MAX_DATAGRAMS);
        if self.arrivals.id != id {
            return Arrivals::new(id).account(sent, 0);
        }
        self.account(sent)
    }

    fn drops(&self) -> u32 {
        tcp::memory(&self.stream.socket).map_or(0, |memory| memory.drops)
    }

    /// Reports the progress, a few times a second at most.
    pub(super) fn report(&mut self, steps: u32) {
        let now_ns = self.at_ns();
        if now_ns.saturating_sub(self.reported_ns) < 200_000_000 {
            return;
        }
        self.reported_ns = now_ns;
        (self.sample.at_us, self.sample.steps) = (now_ns / 1000, steps);
        let stream = StreamProgress { id: self.stream.id, flow: self.stream.flow, sample: self.sample.into() };
        (self.observer.on_progress)(Progress { at_us: self.sample.at_us, streams: vec![stream] });
    }

    /// The record, once the trial is over.
    pub(super) fn into_record(mut self) -> ProfileEndRecord {
        let at_us = self.at_ns() / 1000;
        self.sample.at_us = at_us;
        self.sample.steps = u32::try_from(self.record.steps.len()).unwrap_or(u32::MAX);
        self.record.host.push(HostSample { at_us, cpus: (self.observer.cpu_times)() });
        self.record.streams =
            vec![ProfileStream { flow: self.stream.flow, samples: vec![ProfileSample::default(), self.sample] }];
        self.record
    }
}
