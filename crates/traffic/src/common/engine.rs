//! What an engine does with a plan of its kind.

use super::connections::Connections;
use super::error::TrafficError;
use super::stop::Stop;
use crate::rr::Answers;
use crate::udp::UdpStream;
use narrows_model::{CpuTimes, LoadRecord, Place, Progress, UdpPlan};

/// One end of a trial: which one, what stops it, and who observes it.
pub(crate) struct End<'a> {
    pub(crate) place: Place,
    pub(crate) stop: &'a Stop,
    /// Called at each sampling instant.
    pub(crate) cpu_times: &'a (dyn Fn() -> Vec<CpuTimes> + Sync),
    /// Called after each interval and once at the end.
    pub(crate) on_progress: &'a mut dyn FnMut(Progress),
}

/// One kind of load, by its plan. Implemented by the plan of each engine.
pub(crate) trait Engine {
    /// Runs one end of a checked plan, on streams in the order of their ids; see [`crate::run`].
    fn run(&self, connections: Connections, end: End<'_>) -> Result<LoadRecord, TrafficError>;

    /// The plan by which the sockets of its streams over UDP are opened.
    fn handshake(&self) -> UdpPlan {
        UdpPlan::default()
    }

    /// Sets what a socket over UDP needs before the trial begins on this end.
    fn prepare_udp(&self, _stream: &UdpStream) {}

    /// What answers the connections of a load that makes one for each transaction.
    fn answers(&self) -> Option<Answers> {
        None
    }
}
