//! A sending stream: its loop, and the messages before and after.

use super::answerer;
use super::counters::Counters;
use super::load::Load;
use super::outcome::Outcome;
use super::sending::Sending;
use super::stream::UdpStream;
use crate::common::threads::Control;
use narrows_model::{DatagramSizes, Place, UdpPlan, UdpSent};
use narrows_sys::udp::socket;
use narrows_sys::{clock, nanos, thread};
use narrows_wire::probe::{Header, Kind, go_bytes};
use std::io;
use std::time::{Duration, Instant};

/// How long and how often the receiver is asked to confirm the end.
const FIN_PATIENCE: Duration = Duration::from_secs(1);
const FIN_PATIENCE_IF_STOPPED: Duration = Duration::from_millis(300);
const FIN_EVERY: Duration = Duration::from_millis(20);
/// How long a server waits, after the trial began there, for the client to report that it is ready.
const GO_PATIENCE: Duration = Duration::from_secs(10);

/// Everything a sending thread needs.
pub(crate) struct Sender<'a> {
    pub(crate) stream: &'a UdpStream,
    pub(crate) plan: &'a UdpPlan,
    pub(crate) place: Place,
    pub(crate) counters: &'a Counters,
    pub(crate) control: &'a Control<'a>,
    /// Where in its flow the stream is: the bursts of several streams take turns.
    pub(crate) turn: u32,
}

/// What a sending stream leaves behind.
pub(crate) struct Sent {
    pub(crate) sent: UdpSent,
    pub(crate) datagram_bytes: u32,
    pub(crate) method: &'static str,
    pub(crate) remark: Option<String>,
}

impl Sender<'_> {
    /// Sends until the plan is over, then reports the end; `moving` is called before the first datagram.
    pub(crate) fn run(&self, moving: impl FnOnce(Instant)) -> (Outcome, Sent) {
        thread::exact_timers();
        let mut sizes = self.stream.sizes(self.plan);
        let mut outcome = Outcome::Complete;
        if self.place == Place::Server {
            match self.await_go() {
                Ok(bytes) if matches!(self.plan.sizes, DatagramSizes::Largest) => {
                    let most = self
                        .stream
                        .path_mtu_bytes
                        .map_or(u32::MAX, |mtu| mtu - socket::header_bytes(&self.stream.peer));
                    sizes = vec![bytes.min(most).clamp(UdpPlan::LEAST_BYTES, UdpPlan::MOST_BYTES)];
                }
                Ok(_) => {}
                Err(other) => outcome = other,
            }
        }
        let datagram_bytes = sizes.iter().copied().max().unwrap_or(0);
        let load = Load::of(self.plan, self.stream.flow, &sizes);
        let mut sending = Sending::new(self, sizes);
        let (mut intended, mut skipped) = (0, 0);
        if matches!(outcome, Outcome::Complete) {
            moving(clock::now());
            (intended, skipped) = match &load.costs_ns {
                Some(costs) => sending.paced(costs, &load),
                None => sending.unpaced(load.mean_bytes),
            };
            self.finish(sending.next);
            if self.control.stop.is_set() {
                outcome = Outcome::Stopped;
            }
        }
        let sent = sending.departures.finish(intended, skipped);
        let method = if sending.segmented { "sendmmsg+segment" } else { "sendmmsg" };
        (outcome, Sent { sent, datagram_bytes, method, remark: sending.remark })
    }

    pub(super) fn is_over(&self) -> bool {
        self.control.is_over()
    }

    /// Waits until the client is ready; the datagram size that it found.
    fn await_go(&self) -> Result<u32, Outcome> {
        let began = clock::now();
        let own = &self.stream.socket;
        let mut buffer = vec![0; 65_536];
        while began.elapsed() < GO_PATIENCE {
            if self.is_over() {
                return Err(Outcome::Stopped);
            }
            // A time-out or an ICMP error: the next read decides.
            let Ok(length) = own.recv(&mut buffer) else { continue };
            let bytes = &buffer[..length];
            match Header::decode(bytes) {
                Ok(header) if header.kind == Kind::Go && header.stream == self.stream.number => {
                    return go_bytes(bytes).map_err(|_| Outcome::NoGo);
                }
                _ => {
                    answerer::answer(own, &self.stream.key, bytes, length);
                }
            }
        }
        Err(Outcome::NoGo)
    }

    /// Reports to the receiver how many numbers were used, until it confirms.
    fn finish(&self, total: u64) {
        let began = clock::now();
        let own = &self.stream.socket;
        if own.set_read_timeout(Some(FIN_EVERY)).is_err() {
            return;
        }
        let mut buffer = [0; 64];
        loop {
            let patience = if self.is_over() { FIN_PATIENCE_IF_STOPPED } else { FIN_PATIENCE };
            if began.elapsed() >= patience {
                return;
            }
            let header =
                Header { kind: Kind::Fin, stream: self.stream.number, sequence: total, time_ns: nanos::real() };
            // A refusal by the host or by the peer's closed port shows below.
            let _ = own.send(&header.encode());
            let asked = clock::now();
            while asked.elapsed() < FIN_EVERY {
                match own.recv(&mut buffer) {
                    Ok(length) => {
                        if let Ok(Header { kind: Kind::FinAck, stream, sequence, .. }) =
                            Header::decode(&buffer[..length])
                            && (stream, sequence) == (self.stream.number, total)
                        {
                            return;
                        }
                    }
                    // The receiver is gone.
                    Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return,
                    Err(_) => break,
                }
            }
        }
    }
}
