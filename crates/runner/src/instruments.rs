//! What an end measures with: the collectors and the engines of this host, in the network namespace of the calling thread.

use narrows_collect::drop_watch::{self, DropWatch};
use narrows_collect::{Live, Missing};
use narrows_model::{Flow, InterfaceSample, LoadPlan, LoadRecord, Place, Progress, Snapshot, StreamSpec, TcpPlan};
use narrows_sys::udp::Arrival;
use narrows_traffic::udp::UdpStream;
use narrows_traffic::{Connections, Stop};
use narrows_wire::{Key, probe};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;

/// Counts the kernel's drops by reason while a trial runs.
#[derive(Debug, Default)]
pub(crate) struct Drops(Option<Result<DropWatch, Missing>>);

impl Drops {
    /// Ends it and puts what was counted, or why nothing was, into the readings around the trial.
    pub(crate) fn end(self, before: &mut Snapshot, after: &mut Snapshot) {
        match self.0 {
            None => {}
            Some(Ok(watch)) => drop_watch::put(watch.finish(), before, after),
            Some(Err(why)) => drop_watch::put_absent(&why, before, after),
        }
    }
}

/// The collectors and the engine of this host.
#[derive(Debug, Clone, Copy)]
pub struct LiveInstruments {
    /// Whether counters and CPU times are read around and during a trial; without them nothing can be diagnosed.
    pub collect: bool,
}

impl LiveInstruments {
    /// All that the collectors know of this host, for the route to `peer`.
    pub(crate) fn inventory(&self, peer: Option<IpAddr>) -> Snapshot {
        narrows_collect::inventory(&Live::new(), peer)
    }

    /// The counters alone: cheap enough for right before and right after a load.
    pub(crate) fn counters(&self, peer: Option<IpAddr>) -> Snapshot {
        if self.collect { narrows_collect::counters(&Live::new(), peer) } else { Snapshot::default() }
    }

    /// The interfaces of this host, with their traffic so far.
    pub(crate) fn interfaces(&self) -> Result<Vec<InterfaceSample>, String> {
        narrows_collect::interfaces().map_err(|missing| missing.to_string())
    }

    /// Begins to count the kernel's drops.
    pub(crate) fn watch_drops(&self) -> Drops {
        if self.collect { Drops(Some(DropWatch::start())) } else { Drops::default() }
    }

    /// Sets the plan's options that belong before the handshake; on an accepted socket, right after it.
    pub(crate) fn prepare(
        &self,
        socket: BorrowedFd<'_>,
        place: Place,
        flow: Flow,
        plan: &TcpPlan,
    ) -> Result<(), String> {
        narrows_traffic::tcp::prepare(socket, place, flow, plan).map_err(|error| error.to_string())
    }

    /// The client's end of the handshake of a UDP stream.
    pub(crate) fn open_udp(
        &self,
        address: SocketAddr,
        key: &Key,
        StreamSpec { id, flow, .. }: StreamSpec,
        plan: &LoadPlan,
    ) -> Result<UdpStream, String> {
        narrows_traffic::open_udp(address, key, id, flow, plan).map_err(|error| error.to_string())
    }

    /// The server's end of the handshake: a socket of its own for the stream whose hello arrived.
    pub(crate) fn accept_udp(
        &self,
        hello: &probe::Hello,
        arrival: &Arrival,
        plan: &LoadPlan,
    ) -> Result<UdpStream, String> {
        narrows_traffic::accept_udp(hello, arrival, plan).map_err(|error| error.to_string())
    }

    /// Runs one end of a trial until it is over or `stop` is raised. The snapshots of the record are left empty. What goes wrong after
    /// the start is a remark in the record.
    pub(crate) fn run(
        &self,
        place: Place,
        plan: &LoadPlan,
        connections: Connections,
        stop: &Stop,
        on_progress: &mut dyn FnMut(Progress),
    ) -> Result<LoadRecord, String> {
        let none = || Vec::new();
        let cpu_times: &(dyn Fn() -> _ + Sync) = if self.collect { &narrows_collect::cpu_times } else { &none };
        narrows_traffic::run(place, plan, connections, stop, cpu_times, on_progress).map_err(|error| error.to_string())
    }
}
