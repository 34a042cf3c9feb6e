//! The data of a test, from the client's side: the engine runs beside the control connection, and this end says when it is over.

use super::connect::Iperf3Error;
use super::control::{ANSWER, Control};
use crate::instruments::LiveInstruments;
use narrows_model::{Flow, LoadPlan, LoadRecord, Place, Progress};
use narrows_sys::{clock, tcp};
use narrows_traffic::{Connections, DataStream, Socket, Stop};
use narrows_wire::iperf3::{Params, State};
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::sync::mpsc;
use std::time::Duration;

/// So that a server of iperf3 reads what its kernel has acknowledged: it reads no more once it knows of the end.
const LAST_BYTES: Duration = Duration::from_millis(50);
/// What is drained at once.
const DRAIN_BYTES: usize = 1 << 20;

/// What the data left.
pub(super) struct Running {
    pub(super) record: LoadRecord,
    /// Why it ended early, where the server is the reason.
    pub(super) failure: Option<Iperf3Error>,
}

/// Moves the data, ends the test, at its time or once `watch` says that it is enough, and waits for the server's word. `Err`: the engine
/// did not start.
pub(super) fn run(
    control: &mut Control,
    params: &Params,
    plan: &LoadPlan,
    streams: Vec<DataStream>,
    (instruments, stop): (LiveInstruments, &Stop),
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Running, String> {
    let kept: Vec<(Flow, TcpStream)> = streams.iter().filter_map(tcp_socket).collect();
    // A server that still sends would learn that nobody listens.
    let _udp: Vec<UdpSocket> = streams.iter().filter_map(udp_socket).collect();
    let enough = stop.below();
    // What comes down ends when this end says so; what goes up ends by itself.
    let ends_at = plan.duration_ms().filter(|_| params.reverse || params.bidirectional);
    let ends_at = ends_at.map(|ms| clock::now() + Duration::from_millis(ms));
    let peer = control.address.ip();
    let (outbox, inbox) = mpsc::channel();
    let (record, mut failure) = std::thread::scope(|scope| {
        let engine = scope.spawn(|| {
            let before = instruments.counters(Some(peer));
            let record = instruments.run(Place::Client, plan, Connections::of(streams), &enough, &mut |progress| {
                let _ = outbox.send(progress);
            });
            record.map(|record| record.between(before, instruments.counters(Some(peer))))
        });
        let (mut failure, mut is_enough) = (None, false);
        while !engine.is_finished() {
            inbox.try_iter().for_each(|progress| is_enough |= watch(&progress));
            if failure.is_none() {
                failure = match control.look() {
                    Ok(None) => None,
                    Ok(Some(found)) => Some(control.strange(found)),
                    Err(error) => Some(error),
                };
            } else {
                clock::sleep(Duration::from_millis(5));
            }
            let is_due = is_enough || ends_at.is_some_and(|at| clock::now() >= at) || has_all(&kept, params);
            if failure.is_some() || is_due {
                enough.stop();
            }
        }
        for progress in inbox.try_iter() {
            watch(&progress);
        }
        let record = engine.join().unwrap_or_else(|_| Err("the engine failed".to_owned()));
        (record, failure)
    });
    // A receiver of iperf3 waits for whole blocks.
    kept.iter().filter(|(flow, _)| *flow == Flow::Up).for_each(|(_, socket)| drop(socket.shutdown(Shutdown::Write)));
    if failure.is_none() && !stop.is_set() {
        if params.bytes > 0 && !params.reverse {
            clock::sleep(LAST_BYTES);
        }
        failure = end(control, &kept).err();
    }
    Ok(Running { record: record?, failure })
}

fn tcp_socket(stream: &DataStream) -> Option<(Flow, TcpStream)> {
    match &stream.socket {
        Socket::Tcp(socket) => Some((stream.flow, socket.try_clone().ok()?)),
        _ => None,
    }
}

fn udp_socket(stream: &DataStream) -> Option<UdpSocket> {
    match &stream.socket {
        Socket::Udp(stream) => stream.socket.try_clone().ok(),
        _ => None,
    }
}

/// Whether all bytes have come down that a test of bytes asked for.
fn has_all(kept: &[(Flow, TcpStream)], params: &Params) -> bool {
    if params.bytes == 0 || !(params.reverse || params.bidirectional) {
        return false;
    }
    let of = |(_, socket): &(Flow, TcpStream)| tcp::info(socket).ok().and_then(|info| info.bytes_received).unwrap_or(0);
    kept.iter().filter(|(flow, _)| *flow == Flow::Down).map(of).sum::<u64>() >= params.bytes
}

/// Tells the server that the test is over. What still comes down is read until it answers, so that it is not held up.
pub(super) fn end(control: &mut Control, kept: &[(Flow, TcpStream)]) -> Result<(), Iperf3Error> {
    control.tell(State::TestEnd)?;
    let until = clock::now() + ANSWER;
    for (_, socket) in kept {
        let _ = socket.set_nonblocking(true);
    }
    loop {
        for (_, socket) in kept.iter().filter(|(flow, _)| *flow == Flow::Down) {
            while matches!(tcp::discard(socket.as_fd(), DRAIN_BYTES), Ok(1..)) {}
        }
        match control.look()? {
            Some(State::ExchangeResults) => return Ok(()),
            Some(found) => return Err(control.strange(found)),
            None => control.check(until, "its results")?,
        }
    }
}
