//! A sending stream: its loop, and the messages before and after.

use super::feedback::Feedback;
use super::load::Load;
use super::sending::Sending;
use super::size::sizes;
use super::stream::Dialect;
use super::worker::{Left, Worker};
use super::{answerer, size};
use crate::common::outcome::Outcome;
use narrows_model::{DatagramSizes, Place, UdpPlan};
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

/// Sends until the plan is over, then reports the end; `moving` is called before the first datagram.
pub(super) fn run(worker: &Worker<'_>, moving: impl FnOnce(Instant)) -> Left {
    thread::exact_timers();
    let (plan, stream) = (worker.plan, worker.stream);
    let mut sizes = sizes(plan, stream.datagram_bytes.max(UdpPlan::MIN_BYTES));
    let mut outcome = Outcome::Complete;
    let probe = stream.dialect == Dialect::Probe;
    if probe && worker.place == Place::Server {
        match await_go(worker) {
            Ok(bytes) if matches!(plan.sizes, DatagramSizes::Largest) => {
                let most = stream.path_mtu_bytes.map_or(u32::MAX, |mtu| mtu - socket::header_bytes(&stream.peer));
                sizes = vec![bytes.min(most).clamp(UdpPlan::MIN_BYTES, UdpPlan::MAX_BYTES)];
            }
            Ok(_) => {}
            Err(other) => outcome = other,
        }
    }
    let datagram_bytes = size::largest(&sizes);
    let load = Load::of(plan, stream.flow, &sizes);
    let mut sending = Sending::new(worker, sizes);
    let (mut intended, mut skipped) = (0, 0);
    let mut waited = Duration::ZERO;
    if matches!(outcome, Outcome::Complete) {
        moving(clock::now());
        (intended, skipped) = match &load.costs_ns {
            Some(costs) => sending.paced(costs, &load),
            None => sending.unpaced(load.mean_bytes),
        };
        let over = clock::now();
        match sending.feedback.as_mut().and_then(Feedback::lost) {
            // Nobody is there to confirm the end.
            Some(why) => outcome = Outcome::Incomplete(why.to_owned()),
            None if probe => finish(worker, sending.next),
            None => {}
        }
        waited = over.elapsed();
        if worker.control.stop.is_set() {
            outcome = Outcome::Stopped;
        }
    }
    Left {
        outcome,
        waited,
        datagram_bytes: Some(datagram_bytes),
        method: if sending.segmented { "sendmmsg+segment" } else { "sendmmsg" },
        sent: Some(sending.departures.finish(intended, skipped)),
        received: None,
        remark: sending.remark,
    }
}

/// Waits until the client is ready; the datagram size that it found.
fn await_go(worker: &Worker<'_>) -> Result<u32, Outcome> {
    let no_go = || Outcome::Incomplete("nothing sent: the receiver was not ready".to_owned());
    let began = clock::now();
    let own = &worker.stream.socket;
    let mut buffer = vec![0; 65_536];
    while began.elapsed() < GO_PATIENCE {
        if worker.control.is_over() {
            return Err(Outcome::Stopped);
        }
        // A time-out or an ICMP error: the next read decides.
        let Ok(length) = own.recv(&mut buffer) else { continue };
        let bytes = &buffer[..length];
        match Header::decode(bytes) {
            Ok(header) if header.kind == Kind::Go && header.stream == worker.stream.number => {
                return go_bytes(bytes).map_err(|_| no_go());
            }
            _ => {
                answerer::answer(own, &worker.stream.key, worker.stream.cookie, bytes, length);
            }
        }
    }
    Err(no_go())
}

/// Reports to the receiver how many numbers were used, until it confirms.
fn finish(worker: &Worker<'_>, total: u64) {
    let began = clock::now();
    let own = &worker.stream.socket;
    if own.set_read_timeout(Some(FIN_EVERY)).is_err() {
        return;
    }
    let mut buffer = [0; 64];
    loop {
        let patience = if worker.control.is_over() { FIN_PATIENCE_IF_STOPPED } else { FIN_PATIENCE };
        if began.elapsed() >= patience {
            return;
        }
        let stream = worker.stream.number;
        // A refusal by the host or by the peer's closed port shows below.
        let _ = own.send(&Header { kind: Kind::Fin, stream, sequence: total, time_ns: nanos::real() }.encode());
        let asked = clock::now();
        while asked.elapsed() < FIN_EVERY {
            match own.recv(&mut buffer).map(|length| Header::decode(&buffer[..length])) {
                Ok(Ok(answer)) if (answer.kind, answer.stream, answer.sequence) == (Kind::FinAck, stream, total) => {
                    return;
                }
                Ok(_) => {}
                // The receiver is gone.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return,
                Err(_) => break,
            }
        }
    }
}
