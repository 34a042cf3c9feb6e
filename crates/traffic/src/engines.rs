//! What every load needs of its engine.

use crate::common::connections::Connections;
use crate::common::engine::Observer;
use crate::common::error::TrafficError;
use crate::common::stop::Stop;
use crate::engine;
use crate::rr::Answers;
use crate::udp::{self, UdpStream};
use narrows_model::{CpuTimes, Flow, LoadPlan, LoadRecord, Place, Progress};
use narrows_sys::udp::Arrival;
use narrows_wire::{Key, probe};
use std::net::SocketAddr;

/// Runs one end of a trial until it is over or `stop` is raised, and blocks until then. The record's `before` and `after` are left
/// empty.
///
/// `cpu_times` is called at each sampling instant; `on_progress` is called on this thread after each interval and once at the end.
/// All connections are closed on return.
///
/// # Errors
/// Why the trial did not start. Later failures are remarks in the record.
pub fn run(
    place: Place,
    plan: &LoadPlan,
    connections: Connections,
    stop: &Stop,
    cpu_times: &(dyn Fn() -> Vec<CpuTimes> + Sync),
    on_progress: &mut dyn FnMut(Progress),
) -> Result<LoadRecord, TrafficError> {
    engine(plan).run(place, connections, stop, Observer { cpu_times, on_progress })
}

/// What answers the connections of a load that makes one for each transaction; `None` of any other load.
#[must_use]
pub fn answers(plan: &LoadPlan) -> Option<Answers> {
    engine(plan).answers()
}

/// The client's end of the handshake of a stream over UDP; see [`udp::open()`].
///
/// # Errors
/// Why there is no such stream.
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
///
/// # Errors
/// Why there is no such stream.
pub fn accept_udp(hello: &probe::Hello, arrival: &Arrival, plan: &LoadPlan) -> Result<UdpStream, TrafficError> {
    let engine = engine(plan);
    let stream = udp::accept(hello, arrival, &engine.handshake())?;
    engine.prepare_udp(&stream);
    Ok(stream)
}
