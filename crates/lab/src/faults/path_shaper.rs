//! # path-shaper
//!
//! A token bucket with a queue: a burst passes at once, then packets leave at the rate and wait in a queue of 50 ms.

use super::{takes, Fault, PATH, Unit};

pub(super) const FAULT: Fault = Fault {
    id: "path-shaper",
    about: "a shaper instead of the rate of the path: a burst passes at once, then its rate, with a queue",
    places: PATH,
    parameter: takes(Unit::Rate, "100M", "the rate of the shaper"),
    path: Some(|path, value, _| {
        path.rate_bps = value.number();
        path.burst_bytes = value.number() / 8 * BUCKET_MS / 1000;
        path.queue_packets = 0;
        path.queue_bytes = (value.number() / 8 * QUEUE_MS / 1000).max(64 << 10);
    }),
    ..Fault::NONE
};

/// The burst that passes at once after an idle time: as much as the rate passes in this time. A small bucket is not noticed.
const BUCKET_MS: u64 = 500;
const QUEUE_MS: u64 = 50;
