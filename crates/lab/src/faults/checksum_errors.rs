//! # checksum-errors
//!
//! A bit of some packets is flipped after their checksum was computed, as by a bad memory in a switch, or by a NIC that sums
//! damaged data: the link's own checksum is right, the transport's is not. The receiver verifies it and drops the packet
//! (`InCsumErrors` of UDP and TCP; for a datagram above 76 bytes only when it is read).
//!
//! Truth: the path's `corrupted`.

use super::{takes, Fault, PATH, Unit};

pub(super) const FAULT: Fault = Fault {
    id: "checksum-errors",
    about: "packets arrive with a wrong checksum",
    places: PATH,
    parameter: takes(Unit::Probability, "1%", "the share of packets that are spoiled"),
    path: Some(|path, value, _| path.corrupt = value.probability()),
    ..Fault::NONE
};
