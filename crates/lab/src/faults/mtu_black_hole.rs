//! # mtu-black-hole
//!
//! A link in the middle of the path has a smaller MTU than the hosts assume, without notice: packets that are too big are
//! lost, since a filter drops the ICMP messages that path MTU discovery needs (RFC 2923, section 2.1). Small packets pass.
//!
//! Truth: the path's `dropped_mtu`.

use super::{takes, Fault, PATH, Unit};

pub(super) const FAULT: Fault = Fault {
    id: "mtu-black-hole",
    about: "packets above the path MTU are dropped without an ICMP error",
    places: PATH,
    parameter: takes(Unit::Count, "1400", "the MTU of the path in bytes"),
    path: Some(|path, value, _| {
        path.mtu = value.number32().max(576);
        path.mtu_icmp = false;
    }),
    ..Fault::NONE
};
