//! # checksum-errors
//!
//! A bit of some packets is flipped after their checksum was computed, as by a bad memory in a switch, or by a NIC that sums
//! damaged data: the link's own checksum is right, the transport's is not. The receiver verifies it and drops the packet
//! (`InCsumErrors` of UDP and TCP; for a datagram above 76 bytes only when it is read).
//!
//! Truth: the path's `corrupted`.

use super::{Fault, PATH, Parameter, Unit, Value, Way};
use narrows_model::lab::Impairment;

pub(super) const FAULT: Fault = Fault {
    id: "checksum-errors",
    about: "packets arrive with a wrong checksum",
    places: PATH,
    parameter: Some(Parameter {
        unit: Unit::Probability,
        default: "1%",
        about: "the share of packets that are spoiled",
    }),
    host: None,
    path: Some(impair),
};

fn impair(path: &mut Impairment, value: &Value, _: Way) {
    path.corrupt = value.probability();
}
