//! # softnet-backlog
//!
//! Packets come to the host in bursts of more than its backlog holds (`net.core.netdev_max_backlog`, 1000 where nobody changed
//! it), and are dropped before any protocol sees them, although the core that receives them has time left on average. The path
//! gathers what goes to the host and lets it go at once; packet steering brings it to the backlog of one core, where a few packet
//! taps make each packet cost more than it takes to bring it.
//!
//! The queue itself is not made shorter: its length is the machine's, not the host's. So the load must be high enough for the
//! time that is gathered: at 20,000 packets a second 100 ms are 2000. Of a burst of n about n - 1000 are lost.
//!
//! Truth: `rx_dropped` of the host's device; each packet comes by itself, so one drop is one datagram.

use super::costly_core::steer;
use super::{Fault, HOSTS, Parameter, Undo, Unit, Value, Way};
use crate::Result;
use crate::host::Host;
use narrows_model::lab::Impairment;

pub(super) const FAULT: Fault = Fault {
    id: "softnet-backlog",
    about: "bursts overflow the backlog of the core that receives them",
    places: HOSTS,
    parameter: Some(Parameter { unit: Unit::Duration, default: "100ms", about: "how long packets are gathered" }),
    host: Some(inject),
    path: Some(impair),
};

/// About 16 us a packet: ten times what it takes to bring one, and still 60,000 packets a second.
const TAPS: u64 = 4;

fn inject(host: &Host, _: &Value) -> Result<Undo> {
    steer(host, TAPS)
}

fn impair(path: &mut Impairment, value: &Value, way: Way) {
    if way.leads_to_it() {
        path.gather_us = value.number().min(1_000_000);
        path.single_packets = true;
    }
}
