//! A port of the tester, wherever its device is: looked at, sent from, counted at. Here, and by whoever
//! implements [`Port`] for another place.

mod error;
mod format;
mod here;
mod links;
mod qualify;

pub use error::PortError;
pub use format::{Ends, frame_format};
pub use here::Here;
pub use links::counters;
pub use narrows_wire::api::frames::{PortState, Qualified, QualifyRequest};

use narrows_model::load::frames::{GeneratePlan, GenerateRecord, ReceivePlan, ReceiveRecord};
use narrows_traffic::Stop;
use std::net::IpAddr;
use std::time::Duration;

/// The host of a port.
pub trait Port: Send + Sync + std::fmt::Debug {
    /// How sentences call it.
    fn host(&self) -> &str;

    /// Why it is lost, if it is.
    fn lost(&self) -> Option<PortError> {
        None
    }

    /// The Ethernet addresses of a device and of the gateway behind it, where one is named.
    /// Errors: the device is not there or down, or no answer from the gateway.
    fn look(&self, device: &str, gateway: Option<IpAddr>) -> Result<PortState, PortError>;

    /// What the host alone can send and count.
    fn qualify(&self, request: &QualifyRequest, stop: &Stop) -> Result<Qualified, PortError>;

    /// Sends frames by all plans at the same time, and returns when the last is done.
    fn generate(&self, plans: &[GeneratePlan], stop: &Stop) -> Result<Vec<GenerateRecord>, PortError>;

    /// Begins to count frames. `watched`: the plan's intervals are kept.
    fn receive(&self, plan: &ReceivePlan, watched: bool) -> Result<Box<dyn Receiving>, PortError>;
}

/// A receiver at work. It ends when dropped.
pub trait Receiving: Send {
    /// Waits until so many frames were counted, or for the time; how many there are then.
    fn wait(&mut self, least: u64, within: Duration) -> Result<u64, PortError>;

    /// Reads everything and stops to count.
    fn finish(self: Box<Self>) -> Result<ReceiveRecord, PortError>;
}
