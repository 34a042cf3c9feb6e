//! What an end measures with, as one interface: the collectors and the engines. The control plane knows no more of them
//! than this, so its tests can stand in others.

use crate::stop::Stop;
use narrows_collect::Missing;
use narrows_collect::drop_watch::{self, DropWatch};
use narrows_model::{Flow, InterfaceSample, LoadPlan, LoadRecord, Place, Progress, Snapshot, TcpPlan};
use narrows_sys::udp::Arrival;
use narrows_traffic::Connections;
use narrows_traffic::udp::UdpStream;
use narrows_wire::{Key, probe};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;

/// What counts the kernel's drops by reason while a trial runs.
#[derive(Debug, Default)]
pub struct Drops(Option<Result<DropWatch, Missing>>);

impl Drops {
    /// Begins to count, where this host can.
    #[must_use]
    pub fn watch() -> Self {
        Self(Some(DropWatch::start()))
    }

    /// Ends it and puts what was counted, or why nothing was, into the readings around the trial.
    pub fn end(self, before: &mut Snapshot, after: &mut Snapshot) {
        match self.0 {
            None => {}
            Some(Ok(watch)) => drop_watch::put(watch.finish(), before, after),
            Some(Err(why)) => drop_watch::put_absent(&why, before, after),
        }
    }
}

/// The instruments of one end. All act in the network namespace of the calling thread.
pub trait Instruments: Send + Sync + 'static {
    /// The host's own name.
    fn host_name(&self) -> String;

    /// All that the collectors know of this host, for the route to `peer`.
    fn inventory(&self, peer: Option<IpAddr>) -> Snapshot;

    /// The counters alone: cheap enough for right before and right after a load.
    fn counters(&self, peer: Option<IpAddr>) -> Snapshot;

    /// The interfaces of this host, with their traffic so far.
    ///
    /// # Errors
    /// Why they cannot be read, in a sentence.
    fn interfaces(&self) -> Result<Vec<InterfaceSample>, String>;

    /// Begins to count the kernel's drops.
    fn watch_drops(&self) -> Drops {
        Drops::default()
    }

    /// Sets the plan's options that belong before the handshake; on an accepted socket, right after it.
    ///
    /// # Errors
    /// The option that the kernel refused, in a sentence.
    fn prepare(&self, socket: BorrowedFd<'_>, place: Place, flow: Flow, plan: &TcpPlan) -> Result<(), String>;

    /// The client's end of the handshake of a UDP stream.
    ///
    /// # Errors
    /// Why there is no such stream, in a sentence.
    fn open_udp(
        &self,
        address: SocketAddr,
        key: &Key,
        id: u32,
        flow: Flow,
        plan: &LoadPlan,
    ) -> Result<UdpStream, String>;

    /// The server's end of the handshake: a socket of its own for the stream whose hello arrived.
    ///
    /// # Errors
    /// Why there is no such stream, in a sentence.
    fn accept_udp(&self, hello: &probe::Hello, arrival: &Arrival, plan: &LoadPlan) -> Result<UdpStream, String>;

    /// Runs one end of a trial until it is over or `stop` is raised. The snapshots of the record are left empty.
    ///
    /// # Errors
    /// Why no trial could be made, in a sentence; what goes wrong after the start is a remark in the record.
    fn run(
        &self,
        place: Place,
        plan: &LoadPlan,
        connections: Connections,
        stop: &Stop,
        on_progress: &mut dyn FnMut(Progress),
    ) -> Result<LoadRecord, String>;
}
