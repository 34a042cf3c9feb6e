//! # codel
//!
//! The queue before the path's rate is a CoDel (RFC 8289): it keeps a standing queue short by early losses. A path without a rate gets
//! 100 Mbit/s. It is no cause: TCP fills such a path.

use super::{takes, Fault, PATH, Unit};

pub(super) const FAULT: Fault = Fault {
    id: "codel",
    about: "a queue that loses early (CoDel) before the path's bottleneck",
    places: PATH,
    parameter: takes(Unit::Rate, "100M", "rate of the bottleneck"),
    path: Some(|path, value, _| {
        path.rate_bps = value.number();
        path.codel = true;
    }),
    ..Fault::NONE
};
