//! # softirq-core-saturated
//!
//! Each packet that the host receives costs so much in the softirq that one core is full of it. The cost is a number of packet
//! taps on the device, each with the longest filter there is, and packet steering (`rps_cpus`) brings all packets of the device to
//! one core, as a NIC with a single queue does. The backlog of that core overflows when it cannot keep up.

use super::costly_core::steer;
use super::{Fault, HOSTS, Parameter, Undo, Unit, Value};
use crate::Result;
use crate::host::Host;

pub(super) const FAULT: Fault = Fault {
    id: "softirq-core-saturated",
    about: "each received packet costs much in the softirq of one core",
    places: HOSTS,
    parameter: Some(Parameter {
        unit: Unit::Count,
        default: "128",
        about: "packet taps, each with a filter of 4096 steps",
    }),
    host: Some(inject),
    path: None,
};

fn inject(host: &Host, value: &Value) -> Result<Undo> {
    steer(host, value.number())
}
