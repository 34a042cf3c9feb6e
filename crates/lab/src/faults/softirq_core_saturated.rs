//! # softirq-core-saturated
//!
//! Each packet that the host receives costs so much softirq time that one core is saturated. The cost is a number of packet
//! taps on the interface, each with the longest possible filter, and packet steering (`rps_cpus`) brings all packets of the
//! interface to one core, as a NIC with a single queue does. That core's backlog overflows when it cannot keep up.

use super::costly_core::steer;
use super::{takes, Fault, HOSTS, Unit};

pub(super) const FAULT: Fault = Fault {
    id: "softirq-core-saturated",
    about: "each received packet is expensive in the softirq of one core",
    places: HOSTS,
    parameter: takes(Unit::Count, "128", "packet taps with a filter of 4096 instructions each"),
    host: Some(|host, value| steer(host, value.number())),
    ..Fault::NONE
};
