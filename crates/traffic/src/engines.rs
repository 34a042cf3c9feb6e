//! What every load needs from its engine.

use crate::common::connections::{Connections, DataStream, Socket};
use crate::common::engine::End;
use crate::common::error::TrafficError;
use crate::common::stop::Stop;
use crate::engine;
use crate::rr::Answers;
use crate::udp::{self, UdpStream};
use narrows_model::{Carrier, CpuTimes, Flow, LoadPlan, LoadRecord, Place, Progress};
use narrows_sys::udp::Arrival;
use narrows_wire::{Key, probe};
use std::net::SocketAddr;

/// Runs one end of a trial until it is over or `stop` is raised, and blocks until then. The record's `before` and `after` are left
/// empty.
///
/// `cpu_times` is called at each sampling instant; `on_progress` is called on this thread after each interval and once at the end.
/// All connections are closed on return. Every trial stops by itself: a receiver [`crate::GRACE`] after the planned end at the
/// latest.
/// Errors: why the trial did not start. Later failures are remarks in the record.
pub fn run(
    place: Place,
    plan: &LoadPlan,
    mut connections: Connections,
    stop: &Stop,
    cpu_times: &(dyn Fn() -> Vec<CpuTimes> + Sync),
    on_progress: &mut dyn FnMut(Progress),
) -> Result<LoadRecord, TrafficError> {
    plan.check().map_err(TrafficError::Plan)?;
    if place == Place::Path {
        return Err(TrafficError::NotAnEnd);
    }
    check_sockets(plan, &connections.streams)?;
    connections.streams.sort_by_key(|stream| stream.id);
    engine(plan).run(connections, End { place, stop, cpu_times, on_progress })
}

/// Whether the sockets are of the protocols in the plan.
fn check_sockets(plan: &LoadPlan, streams: &[DataStream]) -> Result<(), TrafficError> {
    let planned = plan.streams();
    if streams.is_empty() && !planned.is_empty() {
        return Err(TrafficError::NoStreams);
    }
    let carrier = |stream: &DataStream| match stream.socket {
        Socket::Tcp(_) | Socket::Layered(..) | Socket::Own(..) => Carrier::Tcp,
        Socket::Udp(_) => Carrier::Udp,
    };
    let fits = |stream: &DataStream| planned.iter().any(|it| (it.id, it.carrier) == (stream.id, carrier(stream)));
    if streams.iter().all(fits) {
        Ok(())
    } else {
        Err(TrafficError::Sockets("the plan and the sockets have different protocols".to_owned()))
    }
}

/// What answers the connections of a load that makes one for each transaction; `None` of any other load.
pub fn answers(plan: &LoadPlan) -> Option<Answers> {
    engine(plan).answers()
}

/// The client's end of the handshake of a stream over UDP; see [`udp::open()`].
/// Errors: why there is no such stream.
pub fn open_udp(
    address: SocketAddr,
    key: &Key,
    id: u32,
    flow: Flow,
    plan: &LoadPlan,
) -> Result<UdpStream, TrafficError> {
    let engine = engine(plan);
    let stream = udp::open(address, key, id, flow, &engine.handshake())?;
    engine.prepare_udp(&stream);
    Ok(stream)
}

/// The server's end of the handshake; see [`udp::accept()`].
/// Errors: why there is no such stream.
pub fn accept_udp(hello: &probe::Hello, arrival: &Arrival, plan: &LoadPlan) -> Result<UdpStream, TrafficError> {
    let engine = engine(plan);
    let stream = udp::accept(hello, arrival, &engine.handshake())?;
    engine.prepare_udp(&stream);
    Ok(stream)
}
