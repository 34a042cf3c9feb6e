//! What an end measures with, as one interface: the collectors and the engines. The control plane knows no more of them
//! than this, so its tests can stand in others.

use crate::stop::Stop;
use narrows_model::{Flow, LoadPlan, LoadRecord, Place, Snapshot, TcpPlan};
use narrows_wire::api::TrialProgress;
use std::net::{IpAddr, TcpStream};
use std::os::fd::BorrowedFd;

/// One connected data connection of a trial.
#[derive(Debug)]
pub struct DataStream {
    /// From 0, the same on both ends.
    pub id: u32,
    /// Which way its data goes.
    pub flow: Flow,
    /// Blocking.
    pub socket: TcpStream,
}

/// The instruments of one end. All act in the network namespace of the calling thread.
pub trait Instruments: Send + Sync + 'static {
    /// The host's own name.
    fn host_name(&self) -> String;

    /// All that the collectors know of this host, for the route to `peer`.
    fn inventory(&self, peer: Option<IpAddr>) -> Snapshot;

    /// The counters alone: cheap enough for right before and right after a load.
    fn counters(&self, peer: Option<IpAddr>) -> Snapshot;

    /// Sets the plan's options that belong before the handshake; on an accepted socket, right after it.
    ///
    /// # Errors
    /// The option that the kernel refused, in a sentence.
    fn prepare(&self, socket: BorrowedFd<'_>, place: Place, flow: Flow, plan: &TcpPlan) -> Result<(), String>;

    /// Runs one end of a trial until it is over or `stop` is raised. The snapshots of the record are left empty.
    ///
    /// # Errors
    /// Why no trial could be made, in a sentence; what goes wrong after the start is a remark in the record.
    fn run(
        &self,
        place: Place,
        plan: &LoadPlan,
        streams: Vec<DataStream>,
        stop: &Stop,
        on_progress: &mut dyn FnMut(TrialProgress),
    ) -> Result<LoadRecord, String>;
}
