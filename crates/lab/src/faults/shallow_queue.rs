//! # shallow-queue
//!
//! The queue in front of the path's rate holds few packets: bursts are lost although the path is not full on average. A path
//! without a rate gets 1 Gbit/s.

use super::{takes, Fault, PATH, Unit};

pub(super) const FAULT: Fault = Fault {
    id: "shallow-queue",
    about: "a short queue before the path's bottleneck",
    places: PATH,
    parameter: takes(Unit::Count, "20", "queue limit in packets"),
    path: Some(|path, value, _| {
        if path.rate_bps == 0 {
            path.rate_bps = 1_000_000_000;
        }
        path.queue_packets = value.number();
        path.queue_bytes = 0;
    }),
    ..Fault::NONE
};
