//! A port of the tester, wherever its device is: looked at, sent from, counted at. One file for each place.

mod far;
mod here;

pub(crate) use here::Here;
pub(crate) use narrows_wire::api::frames::{PortState, Qualified, QualifyRequest};

use super::error::ForwardingError;
use super::reach::Reach;
use far::Far;
use narrows_model::forwarding::ForwardingPlan;
use narrows_model::load::frames::{GeneratePlan, GenerateRecord, ReceivePlan, ReceiveRecord};
use narrows_traffic::Stop;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// The host of a port.
pub(crate) trait Port: Send + Sync + std::fmt::Debug {
    /// How sentences call it.
    fn host(&self) -> &str;

    /// Why it is lost, if it is.
    fn lost(&self) -> Option<ForwardingError> {
        None
    }

    /// The Ethernet addresses of a device and of the gateway behind it, where one is named.
    ///
    /// # Errors
    /// The device is not there or down, or nobody answers for the gateway.
    fn look(&self, device: &str, gateway: Option<IpAddr>) -> Result<PortState, ForwardingError>;

    /// What the host alone can send and count.
    ///
    /// # Errors
    /// It cannot make a network of its own, or frames not be sent there.
    fn qualify(&self, request: &QualifyRequest, stop: &Stop) -> Result<Qualified, ForwardingError>;

    /// Sends frames by all plans at the same time, and returns when the last is done.
    ///
    /// # Errors
    /// No frames can be sent.
    fn generate(&self, plans: &[GeneratePlan], stop: &Stop) -> Result<Vec<GenerateRecord>, ForwardingError>;

    /// Begins to count frames. `watched`: the plan's intervals are kept.
    ///
    /// # Errors
    /// None can be counted.
    fn receive(&self, plan: &ReceivePlan, watched: bool) -> Result<Box<dyn Receiving>, ForwardingError>;
}

/// A receiver at work. It ends when dropped.
pub(crate) trait Receiving: Send {
    /// Waits until so many frames were counted, or for the time; how many there are then.
    ///
    /// # Errors
    /// The counters cannot be read.
    fn wait(&mut self, least: u64, within: Duration) -> Result<u64, ForwardingError>;

    /// Reads everything and stops to count.
    ///
    /// # Errors
    /// The counters cannot be read.
    fn finish(self: Box<Self>) -> Result<ReceiveRecord, ForwardingError>;
}

/// Generator's and receiver's. A host is connected to once, by whatever words the plan calls it.
///
/// # Errors
/// A host cannot be reached.
pub(crate) fn of(
    plan: &ForwardingPlan,
    reach: &Reach,
    stop: &Stop,
    says: &mut dyn FnMut(&str),
) -> Result<[Arc<dyn Port>; 2], ForwardingError> {
    let mut open = |port, word: &str, known: Option<&Far>| Far::open(plan, port, word, known, reach, stop, says);
    let here = || Arc::new(Here) as Arc<dyn Port>;
    let (generator, receiver) = (&plan.generator, &plan.receiver);
    Ok(match (&generator.host, &receiver.host) {
        (None, None) => [here(), here()],
        (Some(host), None) => [Arc::new(open(generator, host, None)?), here()],
        (None, Some(host)) => [here(), Arc::new(open(receiver, host, None)?)],
        (Some(sends), Some(counts)) => {
            let first = open(generator, sends, None)?;
            let second = if sends == counts { first.clone() } else { open(receiver, counts, Some(&first))? };
            [Arc::new(first), Arc::new(second)]
        }
    })
}
