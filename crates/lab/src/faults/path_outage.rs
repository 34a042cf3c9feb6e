//! # path-outage
//!
//! Again and again nothing passes the path for a tenth of the time: handovers, a flapping link.

use super::{takes, Fault, PATH, Unit};

pub(super) const FAULT: Fault = Fault {
    id: "path-outage",
    about: "the path carries nothing for a time, again and again",
    places: PATH,
    parameter: takes(Unit::Duration, "250ms", "length of each outage, one in ten times as long"),
    path: Some(|path, value, _| {
        path.outage_us = value.number();
        path.outage_each_us = value.number().saturating_mul(10);
    }),
    ..Fault::NONE
};
